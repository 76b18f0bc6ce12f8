"""The dead-letter queue of a queue: looked through, deleted from, moved back. Knows no task.

SQS has no way to read a message without receiving it. So whoever looks receives with a visibility
timeout, holds what came until the walk is over, and then shows it again at once. Each look costs a
message one receive, which does nothing in a dead-letter queue: it has no RedrivePolicy.
"""

import json
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

from skincare.sqs.client import error_code, in_batches
from skincare.sqs.prefetch import MAX_MESSAGES
from skincare.sqs.queues import Depth, depth

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

log = logging.getLogger(__name__)

#: Seconds. A long poll asks all of a queue's servers; a short one asks some, and misses messages.
_WAIT: Final = 1
#: Receives in a row that bring only what was seen, before the queue counts as looked through.
_NOTHING_NEW: Final = 3
#: Seconds that a walk holds messages: a slow look through a deep queue must not meet them twice.
_SHORTEST_HOLD: Final = 30
_LONGEST_HOLD: Final = 3600
_HOLD_PER_MESSAGE: Final = 0.05


class Unreachable(Exception):
    """SQS did not answer, or refused: the text says which."""


class NoDeadLetterQueue(Exception):
    """The queue has no RedrivePolicy that names a dead-letter queue."""


@dataclass(frozen=True)
class DLQMessage:
    """A message of a dead-letter queue. `receive_count` counts the looks too."""

    message_id: str
    receipt_handle: str
    body: str = field(repr=False)
    receive_count: int
    #: When it was first sent to its queue: the dead-letter queue keeps that time.
    sent_at: datetime


@dataclass(frozen=True)
class Move:
    """A move that SQS makes by itself. `status` is SQS's word, such as RUNNING or COMPLETED.

    `moved` is approximate.
    """

    status: str
    moved: int
    failure: str

    @property
    def is_over(self) -> bool:
        return self.status not in ("RUNNING", "CANCELLING")


@contextmanager
def answered() -> Iterator[None]:
    """Raise `Unreachable` for whatever goes wrong with a call to SQS."""
    try:
        yield
    except ClientError as error:
        code = error_code(error) or "unknown"
        raise Unreachable(f"SQS refused {error.operation_name}: {code}") from error
    except (BotoCoreError, OSError) as error:
        raise Unreachable(f"SQS does not answer: {type(error).__name__}") from error


class DeadLetterQueue:
    """The dead-letter queue that `queue_url`'s RedrivePolicy names.

    One walk at a time. Raises `NoDeadLetterQueue`; every method raises `Unreachable`.
    """

    def __init__(self, client: "SQSClient", queue_url: str) -> None:
        self._client = client
        with answered():
            answer = client.get_queue_attributes(
                QueueUrl=queue_url, AttributeNames=["RedrivePolicy", "QueueArn"]
            )
        attributes = answer.get("Attributes", {})
        self.source_arn = attributes.get("QueueArn", "")
        try:
            self.arn = str(json.loads(attributes["RedrivePolicy"])["deadLetterTargetArn"])
        except (ValueError, KeyError, TypeError):
            raise NoDeadLetterQueue(queue_url) from None
        # Always in the same account and region as its queue, says AWS:
        # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
        self.name = self.arn.rsplit(":", 1)[-1]
        self.url = f"{queue_url.rsplit('/', 1)[0]}/{self.name}"
        self._held: dict[str, DLQMessage] = {}

    def depth(self) -> Depth:
        """Return how many messages it holds, approximately."""
        with answered():
            return depth(self._client, self.url)

    def sample(self) -> list[DLQMessage]:
        """Return up to ten of its messages, approximately the oldest, without hiding them."""
        return self._receive(visibility=0, wait=0)

    def walk(self) -> Iterator[list[DLQMessage]]:
        """Yield all messages in batches of up to ten, each message once.

        Not those that were sent since the walk began: with what is put back meanwhile and fails
        again at once, it would never end.

        They are invisible to others until the walk ends (or is closed), and then visible at once,
        except those that were deleted. Killed half-way, they come back by themselves: after 30
        seconds, or 1 second for each 20 messages, at most an hour.
        """
        hold = min(_SHORTEST_HOLD + self.depth().visible * _HOLD_PER_MESSAGE, _LONGEST_HOLD)
        began_at = datetime.now(UTC)
        seen: set[str] = set()
        nothing_new = 0
        try:
            while nothing_new < _NOTHING_NEW:
                received = self._receive(visibility=round(hold), wait=_WAIT)
                if not received:
                    return
                self._held.update({message.message_id: message for message in received})
                new = [
                    message
                    for message in received
                    if message.message_id not in seen and message.sent_at <= began_at
                ]
                seen.update(message.message_id for message in new)
                nothing_new = 0 if new else nothing_new + 1
                if new:
                    yield new
        finally:
            self._release(list(self._held.values()))
            self._held.clear()

    def delete(self, messages: Iterable[DLQMessage]) -> set[str]:
        """Delete messages of the walk under way; return the ids of those that are gone."""
        gone: set[str] = set()
        for batch in in_batches(list(messages)):
            with answered():
                answer = self._client.delete_message_batch(
                    QueueUrl=self.url,
                    Entries=[
                        {"Id": str(number), "ReceiptHandle": message.receipt_handle}
                        for number, message in enumerate(batch)
                    ],
                )
            for done in answer.get("Successful", []):
                message = batch[int(done["Id"])]
                gone.add(message.message_id)
                self._held.pop(message.message_id, None)
            for failed in answer.get("Failed", []):
                log.warning(
                    "dead_letter_not_deleted",
                    extra={
                        "message_id": batch[int(failed["Id"])].message_id,
                        "code": failed["Code"],
                    },
                )
        return gone

    def start_move(self) -> str:
        """Let SQS move all messages to the queue, as they are; return the task's handle.

        The queue is named, because SQS knows no origin of messages that were sent here by hand, and
        fails at the first of them. One task at a time for each queue, 500 messages a second.
        https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
        """
        with answered():
            return self._client.start_message_move_task(
                SourceArn=self.arn, DestinationArn=self.source_arn
            )["TaskHandle"]

    def move(self) -> Move:
        """Return how far the newest move of this queue is."""
        with answered():
            answer = self._client.list_message_move_tasks(SourceArn=self.arn, MaxResults=1)
        tasks = answer.get("Results", [])
        if not tasks:
            return Move("NONE", 0, "")
        newest = tasks[0]
        return Move(
            newest.get("Status", ""),
            newest.get("ApproximateNumberOfMessagesMoved", 0),
            newest.get("FailureReason", ""),
        )

    def _receive(self, *, visibility: int, wait: int) -> list[DLQMessage]:
        with answered():
            answer = self._client.receive_message(
                QueueUrl=self.url,
                MaxNumberOfMessages=MAX_MESSAGES,
                VisibilityTimeout=visibility,
                WaitTimeSeconds=wait,
                MessageSystemAttributeNames=["ApproximateReceiveCount", "SentTimestamp"],
            )
        return [_message(found) for found in answer.get("Messages", [])]

    def _release(self, messages: list[DLQMessage]) -> None:
        """Show messages again at once. What cannot be shown comes back when its time is over."""
        for batch in in_batches(messages):
            try:
                self._client.change_message_visibility_batch(
                    QueueUrl=self.url,
                    Entries=[
                        {
                            "Id": str(number),
                            "ReceiptHandle": message.receipt_handle,
                            "VisibilityTimeout": 0,
                        }
                        for number, message in enumerate(batch)
                    ],
                )
            except (BotoCoreError, ClientError, OSError) as error:
                log.warning("dead_letters_not_released", extra={"error": type(error).__name__})
                return


def _message(found: "MessageTypeDef") -> DLQMessage:
    attributes = found["Attributes"]
    return DLQMessage(
        message_id=found["MessageId"],
        receipt_handle=found["ReceiptHandle"],
        body=found["Body"],
        receive_count=int(attributes["ApproximateReceiveCount"]),
        sent_at=datetime.fromtimestamp(int(attributes["SentTimestamp"]) / 1000, UTC),
    )
