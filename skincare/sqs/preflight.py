"""What a worker checks before it starts."""

import logging
import sys
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from celery import Celery, bootsteps
from celery.concurrency.prefork import TaskPool
from celery.platforms import EX_FAILURE

from skincare.sqs.client import error_code, make_client
from skincare.sqs.outcome import OUTCOMES
from skincare.sqs.policy import OPTION, SQSPolicy, Wiring, delivery_settings
from skincare.sqs.queues import queue_problems
from skincare.sqs.task import Task
from skincare.sqs.validation import CELERYS_TASKS

log = logging.getLogger(__name__)

#: A definite no to GetQueueAttributes, as opposed to a network or a server that fails for a while.
_DEFINITE = range(400, 429)


class Preflight(bootsteps.Step):
    """Refuses to start a worker whose settings, tasks or queues contradict each other."""

    def __init__(self, worker: Any, skip_preflight: bool = False, **options: Any) -> None:
        """Exit with a sentence for each problem, before the pool or anything else is made.

        Celery initializes all steps before it creates the first one. Which it creates first is a
        matter of chance, and a pool that is refused may fail at that.
        """
        super().__init__(worker, **options)
        wiring: Wiring = worker.app.conf.broker_transport_options[OPTION]
        found = worker_problems(worker, options, wiring.policy)
        found += setting_problems(worker.app, wiring.policy) + task_problems(worker.app, wiring)
        found += wiring.policy.problems() + _queue_problems(wiring)
        for problem in found:
            log.error("preflight_failed", extra={"problem": problem})
            print(f"preflight: {problem}", file=sys.stderr)
        if found and not skip_preflight:
            print("preflight: --skip-preflight starts the worker anyway", file=sys.stderr)
            raise SystemExit(EX_FAILURE)


def worker_problems(worker: Any, options: Mapping[str, Any], policy: SQSPolicy) -> list[str]:
    """Return a sentence for each option of the command line that this transport cannot serve."""
    problems = []
    if not (isinstance(worker.pool_cls, type) and issubclass(worker.pool_cls, TaskPool)):
        problems.append("The pool is not prefork, so time limits do not work: leave --pool out.")
    if worker.pool_start_method != "fork":
        problems.append(
            "Processes are only forked here, as what `configure` was given cannot be sent to new "
            "interpreters: leave --pool-start-method out."
        )
    if worker.prefetch_multiplier != 1:
        problems.append(
            f"The prefetch multiplier is {worker.prefetch_multiplier}: messages would wait behind "
            "others while their visibility runs out. Leave --prefetch-multiplier out."
        )
    if worker.time_limit != policy.hard_time_limit:
        problems.append(
            f"The time limit is {worker.time_limit} s, the policy's hard_time_limit "
            f"{policy.hard_time_limit} s, by which visibility_timeout is reckoned: leave "
            "--time-limit out."
        )
    if worker.soft_time_limit != policy.soft_time_limit:
        problems.append(
            f"The soft time limit is {worker.soft_time_limit} s, the policy's soft_time_limit "
            f"{policy.soft_time_limit} s: leave --soft-time-limit out."
        )
    if options.get("autoscale"):
        problems.append(
            "Autoscaling ends processes whose messages are held: leave --autoscale out, and start "
            "more workers instead."
        )
    if options.get("purge"):
        problems.append("Purging would delete what waits for a worker: leave --purge out.")
    if options.get("beat"):
        problems.append(
            "Each worker with a beat of its own would send the whole schedule: leave -B (--beat) "
            "out, and send from one place."
        )
    if worker.statedb:
        problems.append(
            f"What {worker.statedb} names as revoked would end in the dead-letter queue, at every "
            "start again: leave --statedb out."
        )
    if worker.task_events:
        problems.append("Task events are off, because SQS cannot broadcast: leave -E out.")
    if not worker.app.amqp.queues.consume_from:
        problems.append("No queue is left to consume: leave -X out.")
    return problems


def setting_problems(app: Celery, policy: SQSPolicy) -> list[str]:
    """Return a sentence for each of Celery's settings that was changed after `configure`."""
    return [
        f"The setting {name} is {app.conf[name]!r}, and has to be {value!r} on this transport: do "
        "not set it."
        for name, value in delivery_settings(policy).items()
        if name != "worker_concurrency" and app.conf[name] != value
    ]


def task_problems(app: Celery, wiring: Wiring) -> list[str]:
    """Return a sentence for each task that asks for what this transport cannot do."""
    limit = wiring.policy.hard_time_limit
    problems = []
    for name, task in sorted(app.tasks.items()):
        if name.startswith(CELERYS_TASKS):
            continue
        if not isinstance(task, Task):
            problems.append(
                f"Task {name} has a base class that is not of this transport, so its messages "
                "could not be acknowledged: derive it from skincare.sqs.Task."
            )
        if getattr(task, "autoretry_for", ()) and not _leaves_outcomes(task):
            problems.append(
                f"Task {name} has an autoretry_for that swallows Terminal, RetryLater and "
                "Unavailable: leave dont_autoretry_for as it is, or name them in it."
            )
        if (task.time_limit or 0) > limit or (task.soft_time_limit or 0) > limit:
            problems.append(
                f"Task {name} has a time limit above hard_time_limit ({limit} s): its message "
                "would be given to another worker while it runs. Lower it."
            )
        if task.rate_limit:
            problems.append(
                f"Task {name} has a rate_limit: its messages would wait in memory until they are "
                "visible to others. Remove it, or raise RetryLater in the task."
            )
    return problems


def _leaves_outcomes(task: Any) -> bool:
    kept = tuple(getattr(task, "dont_autoretry_for", ()))
    return all(
        issubclass(outcome, kept) or not issubclass(outcome, tuple(task.autoretry_for))
        for outcome in OUTCOMES
    )


def _queue_problems(wiring: Wiring) -> list[str]:
    client = make_client(
        region=wiring.region, endpoint_url=wiring.endpoint_url, policy=wiring.policy
    )
    problems = []
    for url in wiring.queues.values():
        try:
            problems += queue_problems(client, url, wiring.policy)
        except ClientError as error:
            code = error_code(error)
            if error.response["ResponseMetadata"]["HTTPStatusCode"] in _DEFINITE:
                problems.append(
                    f"The attributes of queue {url} cannot be read ({code}): see that the queue "
                    "exists and that the role has sqs:GetQueueAttributes on it."
                )
            else:
                log.warning("preflight_skipped", extra={"queue_url": url, "code": code})
        except (BotoCoreError, OSError, ValueError) as error:
            # An outage is no reason not to start: polling goes on until it is over.
            code = type(error).__name__
            log.warning("preflight_skipped", extra={"queue_url": url, "code": code})
    return problems
