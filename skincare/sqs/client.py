"""The blocking SQS client, and sending many messages with few calls.

For everything outside the worker's event loop: web processes, commands, a worker's last calls.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar, cast

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.loaders import create_loader
from botocore.session import Session

from skincare.sqs.policy import SQSPolicy

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
MAX_ENTRIES = 10  # of one SendMessageBatch, DeleteMessageBatch or ChangeMessageVisibilityBatch
MAX_BYTES = 1_048_576  # of one message, and of all messages of one SendMessageBatch

TOO_LONG = "MessageTooLong"
NO_ANSWER = "NoAnswer"

T = TypeVar("T")

#: AWS's descriptions of SQS and of its endpoints, read once. To read them is most of what a client
#: costs, 60 ms of CPU, and a relay with a backlog makes several while requests are served.
_DESCRIPTIONS: Final = create_loader()


def make_client(
    *, region: str, endpoint_url: str | None, policy: SQSPolicy, attempts: int | None = None
) -> "SQSClient":
    """Return a botocore SQS client that gives up when the policy says so.

    Credentials come from its default chain. `attempts` replaces the policy's number of tries. Its
    own defaults are 60 s for the connection, 60 s for the answer, and 5 tries.
    """
    # A session of its own: one is not safe to use from several threads.
    session = Session()
    session.set_config_variable("region", region)  # credentials may come from a region's service
    session.register_component("data_loader", _DESCRIPTIONS)
    client = session.create_client(
        "sqs",
        endpoint_url=endpoint_url,
        config=Config(
            connect_timeout=policy.connect_timeout,
            read_timeout=policy.read_timeout,
            retries={"mode": "standard", "total_max_attempts": attempts or policy.attempts},
        ),
    )
    return cast("SQSClient", client)


def error_code(error: ClientError) -> str:
    """Return SQS's word for why it refused a call, "" where it gave none."""
    return str(error.response.get("Error", {}).get("Code", ""))


def in_batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split into parts of one batch call."""
    for start in range(0, len(items), MAX_ENTRIES):
        yield items[start : start + MAX_ENTRIES]


@dataclass(frozen=True)
class SendFailure:
    """Why a message was not sent. `sender_fault`: the same message will never be taken."""

    code: str
    message: str
    sender_fault: bool


@dataclass(frozen=True)
class Outgoing:
    """A message on its way to a queue."""

    task_id: str
    queue_url: str
    body: str
    size: int  # bytes


@dataclass
class Batch:
    """Messages collected for SendMessageBatch.

    After the end of its `with` block, `failures` says by task id which were not sent. A message
    whose call was not answered counts as not sent, although SQS may have taken it.
    """

    failures: dict[str, SendFailure] = field(default_factory=dict)
    _messages: list[Outgoing] = field(default_factory=list)

    def add(self, *, task_id: str, queue_url: str, body: str) -> None:
        """Collect a message; one that SQS would never take is a failure at once."""
        size = len(body.encode())
        if size > MAX_BYTES:
            self.failures[task_id] = SendFailure(
                TOO_LONG, f"{size} bytes are more than {MAX_BYTES}", sender_fault=True
            )
            return
        self._messages.append(Outgoing(task_id, queue_url, body, size))

    def take(self) -> list[Outgoing]:
        """Return what was collected. It is not sent."""
        messages, self._messages = self._messages, []
        return messages

    def send(self, client: "SQSClient") -> None:
        """Send what was collected. Never raises for what SQS or the network does.

        After a call without an answer no other is tried: each would take as long.
        """
        messages = self.take()
        unanswered: SendFailure | None = None
        for part in parts(messages):
            if unanswered is None:
                try:
                    self.failures.update(_send(client, part))
                    continue
                except (BotoCoreError, OSError, ValueError) as error:  # ValueError: it is not JSON
                    unanswered = SendFailure(type(error).__name__, str(error), sender_fault=False)
            self.failures.update({message.task_id: unanswered for message in part})


def parts(messages: Iterable[Outgoing]) -> Iterator[list[Outgoing]]:
    """Split the messages into calls of one queue, at most MAX_ENTRIES and MAX_BYTES, in order."""
    by_queue: dict[str, list[Outgoing]] = {}
    for message in messages:
        by_queue.setdefault(message.queue_url, []).append(message)
    for queued in by_queue.values():
        part: list[Outgoing] = []
        size = 0
        for message in queued:
            if part and (len(part) == MAX_ENTRIES or size + message.size > MAX_BYTES):
                yield part
                part, size = [], 0
            part.append(message)
            size += message.size
        if part:
            yield part


def _send(client: "SQSClient", part: list[Outgoing]) -> dict[str, SendFailure]:
    """Return the failures of one call by task id. Raises botocore's error if it got no answer."""
    try:
        answer = client.send_message_batch(
            QueueUrl=part[0].queue_url,
            Entries=[{"Id": str(n), "MessageBody": m.body} for n, m in enumerate(part)],
        )
    except ClientError as error:
        failure = _failure_of_call(error)
        return {message.task_id: failure for message in part}
    failed = {
        entry["Id"]: SendFailure(
            entry.get("Code", ""), entry.get("Message", ""), bool(entry.get("SenderFault"))
        )
        for entry in answer.get("Failed", [])
    }
    sent = {entry["Id"] for entry in answer.get("Successful", [])}
    failures = {}
    for number, message in enumerate(part):
        if str(number) in failed:
            failures[message.task_id] = failed[str(number)]
        elif str(number) not in sent:
            failures[message.task_id] = SendFailure(
                NO_ANSWER, "the answer does not name this message", sender_fault=False
            )
    return failures


def _failure_of_call(error: ClientError) -> SendFailure:
    # A call that SQS refuses as a whole (denied, throttled, no such queue, or one entry that it
    # will not even look at) says nothing about a single message.
    message = error.response.get("Error", {}).get("Message", "")
    return SendFailure(error_code(error), message, sender_fault=False)
