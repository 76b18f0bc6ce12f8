"""HTTP over kombu's event loop with libcurl.

Instead of kombu's own client, which sets no timeouts, hands libcurl's milliseconds to the loop as
seconds, registers every socket again at every event, and wakes up each second to make up for it.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import pycurl
from kombu.asynchronous import Hub
from kombu.asynchronous.hub import ERR, READ, WRITE

from skincare.sqs.alarm import Alarm

log = logging.getLogger(__name__)

_EVENTS = {pycurl.POLL_IN: READ, pycurl.POLL_OUT: WRITE, pycurl.POLL_INOUT: READ | WRITE}


@dataclass(frozen=True)
class Reply:
    """An HTTP answer, or why there is none: then `status` is 0 and `error` says it."""

    status: int
    body: bytes = b""
    error: str = ""


Done = Callable[[Reply], None]


@dataclass
class _Exchange:
    done: Done
    answer: BytesIO


class HttpClient:
    """POSTs requests and keeps connections open between them. Lives in the loop's thread."""

    def __init__(self, hub: Hub, *, connect_timeout: float, ca_bundle: str | None) -> None:
        self._hub = hub
        self._connect_timeout = connect_timeout
        self._ca_bundle = ca_bundle
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer_change)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket_change)
        self._closed = False
        self._alarm = Alarm(hub, self._on_timeout)
        self._sockets: set[int] = set()
        self._idle: list[pycurl.Curl] = []
        self._exchanges: dict[pycurl.Curl, _Exchange] = {}

    def post(
        self, url: str, headers: Mapping[str, str], body: bytes, *, timeout: float, done: Done
    ) -> None:
        """Send a request; `done` is called once, from the loop, within `timeout` seconds.

        Raises RuntimeError after `close`, and pycurl.error where the request cannot be sent.
        """
        if self._closed:
            raise RuntimeError("the HTTP client is closed")
        curl = self._idle.pop() if self._idle else pycurl.Curl()
        answer = BytesIO()
        curl.reset()
        curl.setopt(pycurl.URL, url)
        # Without "Expect:" curl would ask before it sends a long body, at the cost of a round trip.
        curl.setopt(pycurl.HTTPHEADER, [f"{k}: {v}" for k, v in headers.items()] + ["Expect:"])
        curl.setopt(pycurl.POST, 1)
        curl.setopt(pycurl.POSTFIELDS, body)
        curl.setopt(pycurl.WRITEDATA, answer)
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, max(round(self._connect_timeout * 1000), 1))
        curl.setopt(pycurl.TIMEOUT_MS, max(round(timeout * 1000), 1))
        if self._ca_bundle:
            curl.setopt(pycurl.CAINFO, self._ca_bundle)
        self._multi.add_handle(curl)
        self._exchanges[curl] = _Exchange(done, answer)

    def close(self) -> None:
        """Drop all exchanges and connections. Nothing that waits for an answer is called."""
        if self._closed:
            return
        self._closed = True
        self._alarm.unset()
        for curl in self._exchanges:
            self._multi.remove_handle(curl)
            curl.close()
        self._exchanges.clear()
        for curl in self._idle:
            curl.close()
        self._idle.clear()
        for fd in self._sockets:
            self._hub.remove(fd)
        self._sockets.clear()
        # It waits for look-ups that hang, which can be longer than the process still has.
        threading.Thread(target=self._multi.close, name="sqs-http-close", daemon=True).start()

    # -- What libcurl asks of the loop ------------------------------------------------------------

    def _on_timer_change(self, milliseconds: int) -> None:
        if milliseconds < 0 or self._closed:
            self._alarm.unset()
        else:  # never act inside this callback: libcurl forbids it
            self._alarm.set(time.monotonic() + milliseconds / 1000)

    def _on_socket_change(self, event: int, fd: int, _multi: Any, _data: Any) -> None:
        # Always again: libcurl may have closed the descriptor and got the same number again, which
        # epoll forgets without a word.
        if fd in self._sockets:
            self._sockets.discard(fd)
            self._hub.remove(fd)
        if event in _EVENTS and not self._closed:
            flags = _EVENTS[event]
            self._hub.add(fd, self._on_event, flags | ERR, (fd,))
            if flags == READ | WRITE:
                self._hub.writers[fd] = self._hub.readers[fd]  # add() files it as a reader only
            self._sockets.add(fd)

    # -- What the loop reports to libcurl ----------------------------------------------------------

    def _on_timeout(self) -> None:
        self._act(pycurl.SOCKET_TIMEOUT)

    def _on_event(self, fd: int) -> None:
        self._act(fd)

    def _act(self, fd: int) -> None:
        try:
            self._multi.socket_action(fd, 0)  # 0: libcurl looks for itself what is ready
        except pycurl.error as error:
            log.warning("http_client_error", extra={"error": str(error)})
        for curl, reply in self._finished():
            self._finish(curl, reply)

    def _finished(self) -> list[tuple[pycurl.Curl, Reply]]:
        finished: list[tuple[pycurl.Curl, Reply]] = []
        queued = 1
        while queued:
            queued, succeeded, failed = self._multi.info_read()
            for curl in succeeded:
                body = self._exchanges[curl].answer.getvalue()
                finished.append((curl, Reply(curl.getinfo(pycurl.RESPONSE_CODE), body)))
            for curl, number, text in failed:
                finished.append((curl, Reply(0, error=f"{text} (curl {number})")))
        return finished

    def _finish(self, curl: pycurl.Curl, reply: Reply) -> None:
        self._multi.remove_handle(curl)
        self._idle.append(curl)
        exchange = self._exchanges.pop(curl)
        try:
            exchange.done(reply)
        except Exception:  # an error in here would end the worker
            log.exception("http_callback_failed")
