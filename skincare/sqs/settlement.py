"""What becomes of delivered messages: deleted or shown again, many in one call."""

import logging
import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from kombu.asynchronous import Hub

from skincare.sqs.async_client import NO_ANSWER, AsyncSQS, Result, SQSError
from skincare.sqs.batch import MAX_ENTRIES
from skincare.sqs.decoder import ReceivedMessage
from skincare.sqs.delays import SETTLE_BACKOFF, full_jitter
from skincare.sqs.policy import MAX_VISIBILITY_TIMEOUT

log = logging.getLogger(__name__)

#: Seconds that a message to be shown again waits for others to share its call.
RELEASE_LINGER = 0.01

#: Ids of the entries of a call.
_POSITIONS = frozenset(str(n) for n in range(MAX_ENTRIES))
#: The handle is too old, or the message is gone: the same call will fail for ever.
_HOPELESS_CODES = frozenset({"ReceiptHandleIsInvalid", "InvalidIdFormat"})


@dataclass
class Settlement:
    """One message's way out of our hands."""

    message: ReceivedMessage
    #: `time.monotonic()` at which it shall be visible; in the past, so at once, unless told.
    visible_at: float = 0.0
    tries: int = 0

    @property
    def visibility_timeout(self) -> int:
        """Whole seconds from now until `visible_at`, less for each try that failed.

        SQS refuses more than 12 hours since the receive.
        """
        now = time.monotonic()
        seconds = math.ceil(self.visible_at - now - 0.05)
        longest = MAX_VISIBILITY_TIMEOUT - math.ceil(now - self.message.received_at)
        return max(min(seconds, longest), 0)


class Settler:
    """Collects settlements of one queue and one kind, and sends them in batches.

    A batch goes out when it is full or `linger` seconds after its first entry. What fails is sent
    again while the message is still ours, then given up: SQS shows it again by itself.
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
    ) -> None:
        self._hub = hub
        self._sqs = sqs
        self._url = url
        self._linger = linger
        self._call_timeout = call_timeout
        self._counts = counts
        self._frozen = False
        self._waiting: list[Settlement] = []
        self._timer: Any = None
        self._in_call: dict[int, list[Settlement]] = {}
        self._resting: dict[int, list[Settlement]] = {}
        self._numbers = 0
        #: Whether our role lacks the permission, by the last answer that tells.
        self.denied = False

    @property
    def unfinished(self) -> list[Settlement]:
        """All that are not answered for, in no order."""
        groups = [self._waiting, *self._in_call.values(), *self._resting.values()]
        return [settlement for group in groups for settlement in group]

    def __len__(self) -> int:
        groups = (self._in_call, self._resting)
        return len(self._waiting) + sum(len(part) for group in groups for part in group.values())

    def add(self, settlement: Settlement) -> None:
        """Send it soon. Returns at once."""
        self._waiting.append(settlement)
        if self._frozen:
            return
        if len(self._waiting) >= MAX_ENTRIES:
            self.flush()
        elif self._timer is None:
            self._timer = self._hub.call_later(self._linger, self.flush)

    def flush(self) -> None:
        """Send now what waits for company."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            part, self._waiting = self._waiting[:MAX_ENTRIES], self._waiting[MAX_ENTRIES:]
            self._send(part)

    def freeze(self) -> None:
        """Only collect from now on: the loop is over. What is unfinished is for another to end."""
        self._frozen = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def entry(self, settlement: Settlement) -> dict[str, Any]:
        """Return what the call says of this message beside its id."""
        return {"ReceiptHandle": settlement.message.receipt_handle}

    def _send(self, part: list[Settlement]) -> None:
        self._numbers += 1
        number = self._numbers
        self._in_call[number] = part
        entries = [{"Id": str(n), **self.entry(s)} for n, s in enumerate(part)]
        self._sqs.call(
            self.action,
            {"QueueUrl": self._url, "Entries": entries},
            timeout=self._call_timeout,
            done=lambda result: self._answered(number, result),
        )

    def _answered(self, number: int, result: Result) -> None:
        part = self._in_call.pop(number)
        errors = batch_errors(result, len(part))
        self._counts[self.counted] += len(part) - len(errors)
        denied = sum(error.denied for error in errors.values())
        self._counts[f"{self.counted}_denied"] += denied
        if denied:
            self.denied = True
        elif len(errors) < len(part):
            self.denied = False
        again = []
        for position, error in errors.items():
            settlement = part[position]
            settlement.tries += 1
            if error.code in _HOPELESS_CODES or settlement.message.seconds_left <= 0:
                self._give_up(settlement, error)
            else:
                again.append((settlement, error))
        if again:
            self._rest(again)

    def _rest(self, again: list[tuple[Settlement, SQSError]]) -> None:
        delay = full_jitter(max(settlement.tries for settlement, _ in again), SETTLE_BACKOFF)
        for error in dict.fromkeys(error for _, error in again):
            failed = [settlement for settlement, its_error in again if its_error == error]
            self._log_failure(error, failed, delay)
        self._numbers += 1
        number = self._numbers
        self._resting[number] = [settlement for settlement, _ in again]
        self._hub.call_later(delay, self._wake, number)

    def _log_failure(self, error: SQSError, failed: list[Settlement], delay: float) -> None:
        log.log(
            logging.ERROR if error.denied else logging.WARNING,
            "settlement_failed",
            extra={
                "action": self.action,
                "queue": failed[0].message.queue,
                "sqs_message_ids": [settlement.message.message_id for settlement in failed],
                "status": error.status,
                "code": error.code,
                "tries": max(settlement.tries for settlement in failed),
                "retry_in": round(delay, 3),
            },
        )

    def _wake(self, number: int) -> None:
        for settlement in self._resting.pop(number, ()):
            self.add(settlement)

    def _give_up(self, settlement: Settlement, error: SQSError) -> None:
        log.error(
            self.gave_up,
            extra={
                **settlement.message.log_fields,
                "action": self.action,
                "status": error.status,
                "code": error.code,
                "tries": settlement.tries,
            },
        )


class Deleter(Settler):
    """Deletes processed messages."""

    action = "DeleteMessageBatch"
    counted = "deleted"
    gave_up = "delete_given_up"


class Releaser(Settler):
    """Shows messages again that were not processed, at once or later."""

    action = "ChangeMessageVisibilityBatch"
    counted = "released"
    gave_up = "release_given_up"

    def entry(self, settlement: Settlement) -> dict[str, Any]:
        return super().entry(settlement) | {"VisibilityTimeout": settlement.visibility_timeout}


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
