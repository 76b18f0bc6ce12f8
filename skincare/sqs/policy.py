"""What the queue, the worker and the clients of one application must agree on."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skincare.sqs.health import default_health_file

if TYPE_CHECKING:
    from skincare.sqs.decoder import BareMessageAdapter

log = logging.getLogger(__name__)

# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
MAX_VISIBILITY_TIMEOUT = 43_200  # seconds, 12 hours
MAX_LONG_POLL = 20  # seconds
MAX_RECEIVE_COUNT = 1_000
# https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_ContainerDefinition.html
MAX_STOP_TIMEOUT = 120  # seconds, on Fargate

#: Seconds that must lie between the hard time limit and the end of the visibility timeout: a killed
#: task's process may need that long to be gone.
VISIBILITY_MARGIN = 10
#: Seconds of `stop_timeout` that a shutdown keeps for its last calls and for Celery's own end.
STOP_RESERVE = 10


@dataclass(frozen=True)
class SQSPolicy:
    """Times in seconds; how long, how often, how many.

    `problems()` says what contradicts what.
    """

    #: How long a received message stays invisible to others; sent with each ReceiveMessage.
    visibility_timeout: int = 120
    #: A task gets SoftTimeLimitExceeded after the first, its process is killed after the second.
    soft_time_limit: float = 75
    hard_time_limit: float = 90
    #: What the platform waits between SIGTERM and SIGKILL.
    stop_timeout: float = 120
    #: How long SQS holds a ReceiveMessage that finds no message.
    long_poll: int = 15
    #: Receives after which SQS moves a message to the dead-letter queue.
    max_receive_count: int = 5
    #: How long a failed message stays invisible after its first, second, … receive, and the part
    #: of it that is random, so that messages which failed together do not return together.
    backoff: tuple[float, ...] = (10, 30, 60, 120)
    backoff_jitter: float = 0.2
    #: First and longest wait before another try of a message whose task lacks what it needs.
    outage_backoff: tuple[float, float] = (1.0, 15.0)
    #: Worker processes; each works on one message. A few more wait for a moment where tasks are
    #: short (see `prefetch`).
    concurrency: int = 5
    connect_timeout: float = 2
    read_timeout: float = 5
    #: Tries of one call by the blocking client, the first one included.
    attempts: int = 2
    #: A poll that is not answered this long after its long poll had to end is given up.
    poll_timeout_margin: float = 10
    #: How long a finished message waits for others to be deleted in the same call.
    delete_linger: float = 0.1
    #: How long after its hard time limit a task, or without any a process that has not taken its
    #: task, is given up: the process is killed and the message made visible again.
    watchdog_margin: float = 30
    #: Where the worker writes its health; the default gets the process's id in its name.
    health_file: str = ""

    def __post_init__(self) -> None:
        if not self.backoff:  # not only a problem to report: no failed task could be settled
            raise ValueError("backoff is empty: give at least one step")
        if not self.health_file:
            object.__setattr__(self, "health_file", default_health_file())

    @property
    def poll_timeout(self) -> float:
        """Seconds after which an unanswered poll is given up."""
        return self.long_poll + self.poll_timeout_margin

    @property
    def call_timeout(self) -> float:
        """Seconds after which any other unanswered call is given up."""
        return self.connect_timeout + self.read_timeout

    def problems(self) -> list[str]:
        """Return a sentence, with its remedy, for each broken invariant."""
        return [sentence for broken, sentence in self._invariants() if broken]

    def _invariants(self) -> list[tuple[bool, str]]:
        return [
            (
                not 0 < self.soft_time_limit < self.hard_time_limit,
                f"soft_time_limit ({self.soft_time_limit} s) is not between 0 and hard_time_limit "
                f"({self.hard_time_limit} s): a task would be killed before it is asked to stop. "
                "Lower soft_time_limit.",
            ),
            (
                self.visibility_timeout <= self.hard_time_limit + VISIBILITY_MARGIN,
                f"visibility_timeout ({self.visibility_timeout} s) is not above hard_time_limit + "
                f"{VISIBILITY_MARGIN} s ({self.hard_time_limit + VISIBILITY_MARGIN} s): a message "
                "would be given to another worker while its task runs. Raise visibility_timeout.",
            ),
            (
                self.hard_time_limit + VISIBILITY_MARGIN
                < self.visibility_timeout
                < self.hard_time_limit + VISIBILITY_MARGIN + min(self.long_poll, MAX_LONG_POLL),
                f"visibility_timeout ({self.visibility_timeout} s) is below hard_time_limit + "
                f"long_poll + {VISIBILITY_MARGIN} s "
                f"({self.hard_time_limit + self.long_poll + VISIBILITY_MARGIN} s): a message that "
                "a long poll brings at its end would be too old to start. Raise "
                "visibility_timeout or lower long_poll.",
            ),
            (
                not 0 < self.visibility_timeout <= MAX_VISIBILITY_TIMEOUT,
                f"visibility_timeout ({self.visibility_timeout} s) is not between 1 and "
                f"{MAX_VISIBILITY_TIMEOUT} s, which is what SQS takes.",
            ),
            (
                self.stop_timeout < self.hard_time_limit + STOP_RESERVE,
                f"stop_timeout ({self.stop_timeout} s) is below hard_time_limit + {STOP_RESERVE} s "
                f"({self.hard_time_limit + STOP_RESERVE} s): a stopping worker would be killed in "
                "the middle of a task. Raise stop_timeout.",
            ),
            (
                self.stop_timeout <= self.poll_timeout,
                f"stop_timeout ({self.stop_timeout} s) is not above long_poll + "
                f"poll_timeout_margin ({self.poll_timeout} s): a stopping worker would be killed "
                "before its last poll is answered. Raise stop_timeout.",
            ),
            (
                self.stop_timeout > MAX_STOP_TIMEOUT,
                f"stop_timeout ({self.stop_timeout} s) is above {MAX_STOP_TIMEOUT} s, the most "
                "that Fargate waits. Lower stop_timeout and hard_time_limit.",
            ),
            (
                not 0 <= self.long_poll <= MAX_LONG_POLL,
                f"long_poll ({self.long_poll} s) is not between 0 and {MAX_LONG_POLL} s, which is "
                "what SQS takes.",
            ),
            (
                self.poll_timeout_margin <= 0,
                f"poll_timeout_margin ({self.poll_timeout_margin} s) is not above 0: the client "
                "would give up each poll before SQS ends it. Raise poll_timeout_margin.",
            ),
            (
                not 2 <= self.max_receive_count <= MAX_RECEIVE_COUNT,
                f"max_receive_count ({self.max_receive_count}) is not between 2 and "
                f"{MAX_RECEIVE_COUNT}: deploys and crashes cost receives too.",
            ),
            (
                len(self.backoff) < self.max_receive_count - 1,
                f"backoff has {len(self.backoff)} steps for {self.max_receive_count - 1} receives "
                "that may be followed by another. Give one step for each.",
            ),
            (
                any(not 0 <= step <= MAX_VISIBILITY_TIMEOUT for step in self.backoff),
                f"backoff {self.backoff} has a step outside 0..{MAX_VISIBILITY_TIMEOUT} s, which "
                "is what SQS takes.",
            ),
            (
                not 0 <= self.backoff_jitter < 1,
                f"backoff_jitter ({self.backoff_jitter}) is not at least 0 and below 1.",
            ),
            (
                not 0 < self.outage_backoff[0] <= self.outage_backoff[1],
                f"outage_backoff {self.outage_backoff} is not a first wait above 0 s and a longest "
                "one that is not shorter.",
            ),
            (self.concurrency < 1, f"concurrency ({self.concurrency}) is below 1."),
            (
                self.connect_timeout <= 0 or self.read_timeout <= 0 or self.attempts < 1,
                f"connect_timeout ({self.connect_timeout} s), read_timeout ({self.read_timeout} s) "
                f"and attempts ({self.attempts}) must all be above 0.",
            ),
            (
                self.watchdog_margin <= 0,
                f"watchdog_margin ({self.watchdog_margin} s) is not above 0: processes would be "
                "killed that are about to end. Raise watchdog_margin.",
            ),
            (
                not 0 <= self.delete_linger <= 1,
                f"delete_linger ({self.delete_linger} s) is not between 0 and 1 s: a finished "
                "message must not wait longer to be deleted.",
            ),
        ]


def delivery_settings(policy: SQSPolicy) -> dict[str, object]:
    """Celery's settings for at-least-once message without results or remote control."""
    return {
        "task_acks_late": True,
        "task_acks_on_failure": False,
        "task_acks_on_timeout": False,
        "task_reject_on_worker_lost": True,
        "task_time_limit": policy.hard_time_limit,
        "task_soft_time_limit": policy.soft_time_limit,
        "task_serializer": "json",
        "accept_content": ["json"],
        "result_backend": None,
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        "worker_consumer": "skincare.sqs.worker:WorkerConsumer",
        "worker_pool": "skincare.sqs.prefork:TaskPool",
        "worker_concurrency": policy.concurrency,
        "worker_prefetch_multiplier": 1,
        "worker_enable_remote_control": False,
        "worker_send_task_events": False,
        "worker_cancel_long_running_tasks_on_connection_loss": True,
    }


class Observer:
    """What the transport reports to the application of its worker, for metrics; here, to nobody.

    Called in the event loop: a method that blocks stops the worker, one that raises is logged.
    """

    def poll_failed(self, queue: str) -> None:
        """A poll had no answer or a wrong one."""

    def acknowledgement_denied(self, action: str) -> None:
        """Our role may not do `action`, a batch call such as DeleteMessageBatch."""

    def message_quarantined(self, message_id: str) -> None:
        """No task can be made of a message. Reported for each of its receives."""

    def task_lost(self, task: str) -> None:
        """The process of a task died, or was killed at the hard time limit."""


#: The key of the wiring in Celery's `broker_transport_options`.
OPTION = "skincare_sqs"


def notify(report: Callable[[str], None], about: str) -> None:
    """Call an observer's method, whatever it raises."""
    try:
        report(about)
    except Exception:
        log.exception("observer_failed")


@dataclass(frozen=True)
class Wiring:
    """Made once by `configure`; every connection and channel of the application reads it."""

    policy: SQSPolicy
    #: URL of each queue by its name in Celery.
    queues: Mapping[str, str]
    region: str
    #: None means the endpoint of the region at AWS.
    endpoint_url: str | None
    #: How a bare document becomes a task call; None quarantines bare documents.
    adapter: "BareMessageAdapter | None"
    #: Returns the application's tasks by name. Asked late: to list them, Celery loads them all.
    tasks: Callable[[], Mapping[str, Any]]
    observer: Observer
