"""What becomes of received messages: deleted, or visible again; many in one call.

In the event loop that is for a `BatchedAcknowledger`; what is left when the loop is over is for
`final_flush`.
"""

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from botocore.exceptions import BotoCoreError, ClientError
from kombu.asynchronous import Hub

from skincare.sqs.async_client import LATE, NO_ANSWER, AsyncSQS, Result, SQSError
from skincare.sqs.backoff import ACKNOWLEDGE_BACKOFF, full_jitter
from skincare.sqs.client import MAX_ENTRIES, in_batches, make_client
from skincare.sqs.decoder import ReceivedMessage
from skincare.sqs.policy import MAX_VISIBILITY_TIMEOUT, Observer, SQSPolicy, Wiring, notify

log = logging.getLogger(__name__)

#: Seconds that a change of visibility waits for others to share its call.
VISIBILITY_LINGER = 0.01

#: Seconds that an extension has to gain; at the end of the 12 hours there is nothing to gain.
_WORTH_A_CALL = 2.0

#: Ids of the entries of a call.
_POSITIONS = frozenset(str(n) for n in range(MAX_ENTRIES))
#: The handle is too old, or the message is gone: the same call will never succeed.
_HOPELESS_CODES = frozenset({"ReceiptHandleIsInvalid", "InvalidIdFormat"})


@dataclass
class Acknowledgement:
    """What is to be said to SQS about one message."""

    message: ReceivedMessage
    #: `time.monotonic()` at which it is to be visible; in the past, so at once, unless given.
    visible_at: float = 0.0
    tries: int = 0
    #: `time.monotonic()` until which the message is ours once SQS confirms what was sent last.
    invisible_until: float = 0.0

    @property
    def visibility_timeout(self) -> int:
        """Whole seconds from now until `visible_at`, less for each try that failed.

        SQS refuses more than 12 hours since the receive.
        """
        now = time.monotonic()
        seconds = math.ceil(self.visible_at - now - 0.05)
        longest = MAX_VISIBILITY_TIMEOUT - math.ceil(now - self.message.received_at)
        return max(min(seconds, longest), 0)


class BatchedAcknowledger:
    """Collects acknowledgements of one queue and one kind, and sends them in batches.

    A batch goes out when it is full or `linger` seconds after its first entry. What fails is sent
    again while the message is still ours, then given up: SQS shows it again by itself. Whatever
    goes wrong with an answer or a timer, `supervise` sees that each is sent.
    """

    action: ClassVar[str]
    #: The key under which it counts, and the log line for what it gives up.
    counted: ClassVar[str]
    gave_up: ClassVar[str]

    def __init__(
        self,
        hub: Hub,
        sqs: AsyncSQS,
        *,
        url: str,
        linger: float,
        call_timeout: float,
        counts: Counter[str],
        observer: Observer,
    ) -> None:
        self._hub = hub
        self._sqs = sqs
        self._url = url
        self._linger = linger
        self._call_timeout = call_timeout
        self._counts = counts
        self._observer = observer
        self._frozen = False
        self._collected: list[Acknowledgement] = []
        self._timer: Any = None
        #: With the `time.monotonic()` at which the answer, or the retry, is due.
        self._in_call: dict[int, tuple[float, Sequence[Acknowledgement]]] = {}
        self._waiting_for_retry: dict[int, tuple[float, Sequence[Acknowledgement]]] = {}
        self._flush_at = 0.0
        self._numbers = 0
        #: Whether our role lacks the permission, as far as the answers show.
        self.denied = False

    @property
    def unfinished(self) -> list[Acknowledgement]:
        """All that SQS has not confirmed, in no order."""
        timed = (*self._in_call.values(), *self._waiting_for_retry.values())
        return self._collected + [one for _, group in timed for one in group]

    def __len__(self) -> int:
        timed = (*self._in_call.values(), *self._waiting_for_retry.values())
        return len(self._collected) + sum(len(group) for _, group in timed)

    def add(self, acknowledgement: Acknowledgement) -> None:
        """Send it soon. Returns at once."""
        self._collected.append(acknowledgement)
        if self._frozen:
            return
        if len(self._collected) >= MAX_ENTRIES:
            self.flush()
        elif self._timer is None:
            self._flush_at = time.monotonic() + self._linger
            self._timer = self._hub.call_later(self._linger, self.flush)

    def flush(self) -> None:
        """Send now what has been collected."""
        self._cancel_timer()
        collected, self._collected = self._collected, []
        for batch in in_batches(collected):
            self._send(batch)

    def freeze(self) -> None:
        """Only collect from now on: the loop is over. `final_flush` sends what is unfinished."""
        self._frozen = True
        self._cancel_timer()

    def entry(self, acknowledgement: Acknowledgement) -> dict[str, Any]:
        """Return what the call says of this message beside its id."""
        return {"ReceiptHandle": acknowledgement.message.receipt_handle}

    def confirmed(self, acknowledgement: Acknowledgement) -> None:
        """SQS has done it."""

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _send(self, batch: Sequence[Acknowledgement]) -> None:
        self._numbers += 1
        number = self._numbers
        self._in_call[number] = (time.monotonic() + self._call_timeout, batch)
        entries = [{"Id": str(n), **self.entry(one)} for n, one in enumerate(batch)]
        self._sqs.call(
            self.action,
            {"QueueUrl": self._url, "Entries": entries},
            timeout=self._call_timeout,
            done=lambda result: self._answered(number, result),
        )

    def supervise(self) -> None:
        """Make up for an answer that never came, or a timer that did not fire."""
        late = time.monotonic() - LATE
        for number, (due_at, _) in list(self._in_call.items()):
            if due_at < late:
                self._answered(number, SQSError(0, NO_ANSWER, "the answer was lost"))
        for number, (due_at, _) in list(self._waiting_for_retry.items()):
            if due_at < late:
                self._retry(number)
        if self._collected and not self._frozen and self._flush_at < late:
            self.flush()

    def _answered(self, number: int, result: Result) -> None:
        if number not in self._in_call:
            return  # given up already
        _, batch = self._in_call.pop(number)
        try:
            self._take(batch, result)
        except Exception:
            log.exception("acknowledgement_answer_failed", extra={"action": self.action})
            self._keep_for_retry(batch, ACKNOWLEDGE_BACKOFF[1])

    def _take(self, batch: Sequence[Acknowledgement], result: Result) -> None:
        errors = batch_errors(result, len(batch))
        for position, acknowledgement in enumerate(batch):
            if position not in errors:
                self.confirmed(acknowledgement)
        self._counts[self.counted] += len(batch) - len(errors)
        denied = sum(error.denied for error in errors.values())
        self._counts[f"{self.counted}_denied"] += denied
        if denied:
            self.denied = True
        elif len(errors) < len(batch):
            self.denied = False
        again = []
        for position, error in errors.items():
            acknowledgement = batch[position]
            acknowledgement.tries += 1
            if error.code in _HOPELESS_CODES or acknowledgement.message.seconds_left <= 0:
                self._give_up(acknowledgement, error)
            else:
                again.append((acknowledgement, error))
        if again:
            self._retry_later(again)

    def _retry_later(self, again: list[tuple[Acknowledgement, SQSError]]) -> None:
        delay = full_jitter(max(one.tries for one, _ in again), ACKNOWLEDGE_BACKOFF)
        for error in dict.fromkeys(error for _, error in again):
            self._report(
                error, [failed for failed, its_error in again if its_error == error], delay
            )
        self._keep_for_retry([one for one, _ in again], delay)

    def _keep_for_retry(self, batch: Sequence[Acknowledgement], delay: float) -> None:
        self._numbers += 1
        self._waiting_for_retry[self._numbers] = (time.monotonic() + delay, batch)
        self._hub.call_later(delay, self._retry, self._numbers)

    def _report(self, error: SQSError, failed: list[Acknowledgement], delay: float | None) -> None:
        log.log(
            logging.ERROR if error.denied else logging.WARNING,
            "settlement_failed",
            extra={
                "action": self.action,
                "queue": failed[0].message.queue,
                "sqs_message_ids": [one.message.message_id for one in failed],
                "status": error.status,
                "code": error.code,
                "tries": max(one.tries for one in failed),
                "retry_in": delay and round(delay, 3),
            },
        )
        if error.denied:
            notify(self._observer.acknowledgement_denied, self.action)

    def _retry(self, number: int) -> None:
        _, batch = self._waiting_for_retry.pop(number, (0.0, ()))
        for acknowledgement in batch:
            self.add(acknowledgement)

    def _give_up(self, acknowledgement: Acknowledgement, error: SQSError) -> None:
        log.error(
            self.gave_up,
            extra={
                **acknowledgement.message.log_fields,
                "action": self.action,
                "status": error.status,
                "code": error.code,
                "tries": acknowledgement.tries,
            },
        )


class Deletes(BatchedAcknowledger):
    """Deletes processed messages."""

    action = "DeleteMessageBatch"
    counted = "deleted"
    gave_up = "delete_given_up"


class VisibilityChanges(BatchedAcknowledger):
    """Makes messages visible again that were not processed, at once or later."""

    action = "ChangeMessageVisibilityBatch"
    counted = "released"
    gave_up = "release_given_up"

    def entry(self, acknowledgement: Acknowledgement) -> dict[str, Any]:
        timeout = acknowledgement.visibility_timeout
        return super().entry(acknowledgement) | {"VisibilityTimeout": timeout}


class Extensions(VisibilityChanges):
    """Keeps messages invisible that wait in this worker.

    Not tried again: it is asked for again as long as it is wanted, and one that came late could
    hide a message that was made visible meanwhile.
    """

    counted = "extended"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._followers: list[tuple[ReceivedMessage, Callable[[], None]]] = []

    def __len__(self) -> int:
        """Count what somebody waits for; an extension itself need not be waited for."""
        return len(self._followers)

    def then(self, message: ReceivedMessage, follow: Callable[[], None]) -> None:
        """Call `follow` when no extension of the message is under way: now, or at its answer.

        One that reached SQS after the message's next change would hide it once more.
        """
        self._collected = [one for one in self._collected if one.message is not message]
        self._followers.append((message, follow))
        self._call_followers()

    def freeze(self) -> None:
        super().freeze()
        followers, self._followers = self._followers, []
        for _, follow in followers:
            follow()

    def _answered(self, number: int, result: Result) -> None:
        super()._answered(number, result)
        self._call_followers()

    def _call_followers(self) -> None:
        busy = [one.message for one in self.unfinished]
        followers, self._followers = self._followers, []
        for message, follow in followers:
            if any(message is other for other in busy):
                self._followers.append((message, follow))
            else:
                follow()

    def extend(self, message: ReceivedMessage, *, policy: SQSPolicy) -> None:
        """Keep a message invisible, if it is time to, so that its task could start at any moment.

        For at most 12 hours since its receive. To be called every few seconds.
        """
        enough = (policy.visibility_timeout + policy.hard_time_limit) / 2
        visible_at = time.monotonic() + policy.visibility_timeout
        longest = message.received_at + MAX_VISIBILITY_TIMEOUT
        if (
            message.seconds_left < enough
            and min(visible_at, longest) > message.invisible_until + _WORTH_A_CALL
            and not any(asked.message is message for asked in self.unfinished)
        ):
            self.add(Acknowledgement(message, visible_at))

    def entry(self, acknowledgement: Acknowledgement) -> dict[str, Any]:
        entry = super().entry(acknowledgement)
        acknowledgement.invisible_until = time.monotonic() + entry["VisibilityTimeout"]
        return entry

    def confirmed(self, acknowledgement: Acknowledgement) -> None:
        acknowledgement.message.invisible_until = acknowledgement.invisible_until

    def _retry_later(self, again: list[tuple[Acknowledgement, SQSError]]) -> None:
        for error in dict.fromkeys(error for _, error in again):
            self._report(error, [one for one, its_error in again if its_error == error], None)


def batch_errors(result: Result, size: int) -> dict[int, SQSError]:
    """Return the errors of a batch call by the position of their entries.

    An entry that the answer does not name as successful has failed.
    """
    if isinstance(result, SQSError):
        return dict.fromkeys(range(size), result)
    errors = dict.fromkeys(
        range(size), SQSError(200, NO_ANSWER, "the answer does not name this entry")
    )
    for entry in _entries(result.get("Successful")):
        errors.pop(_position(entry), None)
    for entry in _entries(result.get("Failed")):
        position = _position(entry)
        if 0 <= position < size:
            code, message = str(entry.get("Code", "")), str(entry.get("Message", ""))
            errors[position] = SQSError(200, code, message)
    return errors


def _entries(value: object) -> list[Mapping[str, Any]]:
    if not isinstance(value, list):
        return []
    return [entry for entry in value if isinstance(entry, Mapping)]


def _position(entry: Mapping[str, Any]) -> int:
    text = entry.get("Id")
    return int(text) if isinstance(text, str) and text in _POSITIONS else -1


def final_flush(
    url: str,
    wiring: Wiring,
    *,
    deletes: Sequence[Acknowledgement],
    visibility_changes: Sequence[Acknowledgement],
) -> bool:
    """Send what one queue's acknowledgers have not; return whether SQS answered.

    With blocking calls, for when the event loop is over. The first failure ends it: the visibility
    timeout does the rest.
    """
    if not deletes and not visibility_changes:
        return True
    client = make_client(
        region=wiring.region, endpoint_url=wiring.endpoint_url, policy=wiring.policy, attempts=1
    )
    try:
        for batch in in_batches(deletes):
            client.delete_message_batch(
                QueueUrl=url,
                Entries=[
                    {"Id": str(n), "ReceiptHandle": one.message.receipt_handle}
                    for n, one in enumerate(batch)
                ],
            )
        for batch in in_batches(visibility_changes):
            client.change_message_visibility_batch(
                QueueUrl=url,
                Entries=[
                    {
                        "Id": str(n),
                        "ReceiptHandle": one.message.receipt_handle,
                        "VisibilityTimeout": one.visibility_timeout,
                    }
                    for n, one in enumerate(batch)
                ],
            )
    except (BotoCoreError, ClientError, OSError, ValueError) as error:
        log.error("leftovers_not_settled", extra={"error": type(error).__name__})
        return False
    log.info(
        "leftovers_settled",
        extra={"deleted": len(deletes), "released": len(visibility_changes)},
    )
    return True
