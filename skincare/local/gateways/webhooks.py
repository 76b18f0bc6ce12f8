"""The gateways' calls to the shop: in which order, how often again, and what goes wrong with them.

A gateway hands over a call with `send`. On its way it can be lost, doubled, delayed or held back to
be released in reverse. What is not answered as the gateway wants it is sent again after the waits
of that gateway's table.
"""

import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, Literal
from urllib.error import HTTPError
from urllib.parse import urljoin
from urllib.request import HTTPRedirectHandler, Request, build_opener

from skincare.local.gateways.clock import Clock

#: (status of the answer or None for none in time, tries so far) → seconds until the next try, None
#: for no more.
RetryPlan = Callable[[int | None, int], float | None]

_MINUTE: Final = 60.0
_HOUR: Final = 3600.0

#: Midtrans: seconds between the tries. GUESS: without the jitter that its documentation mentions.
#: https://docs.midtrans.com/docs/https-notification-webhooks
_MIDTRANS_WAITS: Final = (2 * _MINUTE, 10 * _MINUTE, 30 * _MINUTE, 1.5 * _HOUR, 3.5 * _HOUR)
_MIDTRANS_TRIES_AGAIN: Final = {500: 1, 503: 4, 400: 2, 404: 2, 301: 0, 302: 0, 303: 0}
MIDTRANS_TIMEOUT: Final = 15.0  # seconds

#: Xendit: seconds after the first try. https://docs.xendit.co/docs/handling-webhooks
_XENDIT_AT: Final = (0.25 * _HOUR, 1 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR, 24 * _HOUR)
XENDIT_TIMEOUT: Final = 30.0  # seconds

_MAX_REDIRECTS: Final = 5


def midtrans_retry(status: int | None, tries: int) -> float | None:
    """Midtrans looks at the answer; a redirect that drops the body ends it."""
    if status is not None and 200 <= status < 300:
        return None
    again = _MIDTRANS_TRIES_AGAIN.get(status or 0, len(_MIDTRANS_WAITS))
    return _MIDTRANS_WAITS[tries - 1] if tries <= again else None


def xendit_retry(status: int | None, tries: int) -> float | None:
    """Xendit tries six times more, whatever the answer was, unless it was a 2xx."""
    if (status is not None and 200 <= status < 300) or tries > len(_XENDIT_AT):
        return None
    return _XENDIT_AT[tries - 1] - (_XENDIT_AT[tries - 2] if tries > 1 else 0.0)


@dataclass
class Delivery:
    """One call, its tries and their answers (None where none came in time)."""

    number: int
    gateway: str
    url: str
    document: dict[str, Any]
    headers: Mapping[str, str]
    due: float
    answers: list[int | None] = field(default_factory=list)
    state: Literal["waiting", "held", "under way", "lost", "done", "given up"] = "waiting"

    def summary(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "gateway": self.gateway,
            "url": self.url,
            "document": self.document,
            "answers": self.answers,
            "state": self.state,
        }


@dataclass
class Trouble:
    """What happens to the next calls of one gateway."""

    lose: int = 0  # how many vanish; -1 for all
    double: int = 0  # how many are sent twice
    delay: float = 0.0  # seconds before each is sent
    hold: bool = False  # each waits for `release`


class Webhooks:
    """All calls of all gateways since the start, and those that still have to be made."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._senders = ThreadPoolExecutor(8, thread_name_prefix="webhooks")
        self._under_way: dict[int, Future[None]] = {}
        self.all: list[Delivery] = []
        self.trouble: dict[str, Trouble] = {}

    def send(
        self,
        gateway: str,
        url: str,
        document: dict[str, Any],
        *,
        headers: Mapping[str, str] | None = None,
        after: float = 0.0,
    ) -> None:
        """Call `url` with `document` as JSON, `after` seconds from now."""
        with self._lock:
            trouble = self.trouble.setdefault(gateway, Trouble())
            lost = trouble.lose != 0
            trouble.lose -= trouble.lose > 0
            twice = not lost and trouble.double > 0
            trouble.double -= twice
            for _ in range(2 if twice else 1):
                call = Delivery(
                    number=next(self._numbers),
                    gateway=gateway,
                    url=url,
                    document=document,
                    headers=headers or {},
                    due=self._clock.now() + after + trouble.delay,
                )
                if lost or not url:
                    call.state = "lost"
                elif trouble.hold:
                    call.state = "held"
                self.all.append(call)

    def release(self, gateway: str, *, reverse: bool) -> None:
        """Send what is held back, one after the other, the last first if `reverse`."""
        with self._lock:
            held = [d for d in self.all if d.gateway == gateway and d.state == "held"]
            self.trouble.setdefault(gateway, Trouble()).hold = False
        for call in reversed(held) if reverse else held:
            self._try(call)

    def resend(self, number: int) -> None:
        """Send a call once more, as the gateways' dashboards can."""
        call = next(d for d in self.all if d.number == number)
        self.send(call.gateway, call.url, call.document, headers=call.headers)

    def next_due(self) -> float | None:
        with self._lock:
            return min((d.due for d in self.all if d.state == "waiting"), default=None)

    def start_due(self) -> None:
        """Make all calls that are due, at the same time, and wait for none."""
        now = self._clock.now()
        with self._lock:
            for call in self.all:
                if call.state == "waiting" and call.due <= now:
                    call.state = "under way"
                    self._under_way[call.number] = self._senders.submit(self._try, call)

    def run_due(self) -> None:
        """Make all calls that are due, and wait for the answers of these and of earlier ones."""
        self.start_due()
        with self._lock:
            under_way = list(self._under_way.values())
        wait(under_way)

    def close(self) -> None:
        """Send nothing more."""
        self._senders.shutdown(wait=False, cancel_futures=True)

    def _try(self, call: Delivery) -> None:
        timeout, retry = (
            (MIDTRANS_TIMEOUT, midtrans_retry)
            if call.gateway == "midtrans"
            else (XENDIT_TIMEOUT, xendit_retry)
        )
        status = post(call.url, call.document, call.headers, timeout=timeout)
        with self._lock:
            call.answers.append(status)
            pause = retry(status, len(call.answers))
            if pause is not None:
                call.state, call.due = "waiting", self._clock.now() + pause
            else:
                is_taken = status is not None and 200 <= status < 300
                call.state = "done" if is_taken else "given up"
            self._under_way.pop(call.number, None)


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


_opener = build_opener(_NoRedirects)


def post(
    url: str, document: dict[str, Any], headers: Mapping[str, str], *, timeout: float
) -> int | None:
    """Send `document` to `url`; return the status of the answer, None where there is none.

    307 and 308 keep the body and are followed; other redirects are not.
    """
    for _ in range(_MAX_REDIRECTS + 1):
        request = Request(  # noqa: S310 the shop's address, as its operator gave it
            url,
            data=json.dumps(document).encode(),
            headers={"Content-Type": "application/json", **headers},
            method="POST",
        )
        try:
            with _opener.open(request, timeout=timeout) as answer:
                status: int = answer.status
                return status
        except HTTPError as error:
            error.close()
            if error.code not in (307, 308):
                return error.code
            url = urljoin(url, error.headers.get("Location", ""))
        except OSError:
            return None
    return None
