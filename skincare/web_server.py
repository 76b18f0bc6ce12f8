"""The web server: gunicorn's processes, and in each of them waitress, which reads the requests.

gunicorn forks, watches and replaces the processes. waitress has one thread that reads all
connections, and hands a request to a worker thread only when it is complete, body and all: a client
that sends a byte every ten seconds costs a socket, and no thread.
What is here joins the two: a deadline for reading, pools of threads that cannot
starve each other, connections to the process that is free, one log line for each request, and an
end that answers what was taken.
"""

import json
import os
import resource
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any, Final

import structlog
from django.conf import settings
from gunicorn.config import Config
from gunicorn.workers.base import Worker
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import TcpWSGIServer, UnixWSGIServer
from waitress.task import ErrorTask, Task, ThreadedTaskDispatcher, WSGITask
from waitress.utilities import Error

from skincare.telemetry.web_server import log_request

log = structlog.get_logger(__name__)

#: Paths, by how they begin, of requests that can wait for a lock; each kind has threads of its own,
#: so that a product or an order that is locked stops only requests of its kind.
POOLS: Final[Mapping[str, tuple[str, ...]]] = {
    "health": ("/healthz", "/readyz"),
    "checkout": ("/v1/checkout", "/v1/orders"),
    "webhooks": ("/v1/webhooks",),
}
OTHERS: Final = "pages"
#: One for each of the two paths, neither of which waits for anything.
HEALTH_THREADS: Final = 2
#: So often a process in which requests wait for a thread looks for connections that nobody wanted.
FULL_LOOK_SECONDS: Final = 0.01
#: So many it takes at one look at most.
MOST_TAKEN: Final = 64
#: Bytes of all headers of a request, as the load balancer allows a little more.
MAX_HEADER_BYTES: Final = 32 * 1024
#: gunicorn's options that it leaves to its workers, and why this one does not act by them.
REFUSED_OPTIONS: Final[Mapping[str, str]] = {
    "certfile": "Requests would be read in the clear: leave --certfile out, TLS ends before here.",
    "max_requests": "No process ends after so many requests: leave --max-requests out.",
}


class Overloaded(Error):
    """The request waited for a thread so long that its client has gone, or would rather know."""

    code = 503
    reason = "Service Unavailable"


def pool_of(path: str) -> str:
    """Return the name of the pool of threads that serves `path`."""
    for name, prefixes in POOLS.items():
        if path.startswith(prefixes):
            return name
    return OTHERS


class Pools:
    """Threads by the kind of request. `threads`: of all kinds together, at least one of each."""

    def __init__(self, threads: int) -> None:
        share = max(1, threads // len(POOLS))
        self._pools = {name: ThreadedTaskDispatcher() for name in (*POOLS, OTHERS)}
        for name, pool in self._pools.items():
            pool.set_thread_count(HEALTH_THREADS if name == "health" else share)

    def add_task(self, channel: "Channel") -> None:
        """Let the next request of the channel be served."""
        path = getattr(channel.requests[0], "path", "")  # none where it could not be read
        self._pools[pool_of(path)].add_task(channel)

    @property
    def are_full(self) -> bool:
        """Whether a request waits for a thread."""
        return any(pool.queue for pool in self._pools.values())

    def shutdown(self) -> None:
        """End the threads; nothing is served any more."""
        for pool in self._pools.values():
            pool.shutdown(timeout=1)


class BodyUnlessHead(Task):
    """An answer to HEAD ends with its headers: a body after them would be taken for the beginning
    of the next answer, which a load balancer may give to somebody else.
    """

    def build_response_header(self) -> bytes:
        """Return the headers, which are those of GET."""
        headers: bytes = super().build_response_header()
        if self._is_head:
            self.chunked_response = False
        return headers

    def write(self, data: bytes) -> None:
        """Write a part of the body."""
        super().write(b"" if self._is_head else data)

    @property
    def _is_head(self) -> bool:
        return getattr(self.request, "command", "") == "HEAD"


class Request(BodyUnlessHead, WSGITask):
    """One request in its thread."""

    def service(self) -> None:
        """Serve it, and write its log line."""
        if self.channel.server.is_ending:
            self.set_close_on_finish()
        started = time.monotonic()
        try:
            super().service()
        finally:
            log_request(
                method=self.request.command,
                path=self.request.path,
                status=int(self.status.split(None, 1)[0]),
                headers=self.response_headers,
                seconds=time.monotonic() - started,
                size=self.content_bytes_written,
            )


class Refusal(BodyUnlessHead, ErrorTask):
    """What could not be read, or came too late to be served, is answered with a problem."""

    def execute(self) -> None:
        """Write the problem (RFC 9457), and a log line without the request's own words."""
        error = self.request.error
        self.status = f"{error.code} {error.reason}"
        body = json.dumps(
            {"type": "about:blank", "title": error.reason, "status": error.code}
        ).encode()
        self.response_headers = [("Content-Type", "application/problem+json")]
        if error.code == Overloaded.code:
            self.response_headers.append(("Retry-After", str(settings.WEB_RETRY_AFTER_SECONDS)))
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)
        log.warning("request_unreadable", status=error.code)


class Parser(HTTPRequestParser):
    """Reads one request. What follows it on its connection is read by another one."""

    def __init__(self, adj: Adjustments) -> None:
        super().__init__(adj)
        self.begun_at = self.complete_at = time.time()

    def received(self, data: bytes) -> int:
        """Take bytes of the client; return how many are of this request."""
        took: int = super().received(data)
        if self.completed:
            self.complete_at = time.time()
        return took

    def parse_header(self, header_plus: bytes) -> None:
        """Raise ParsingError for what is no HTTP/1.0 or 1.1; waitress would take it for 1.0. And
        for a body whose end two servers can see in two places (RFC 9112, 6.1): the rest would be
        somebody's next request.
        """
        try:
            super().parse_header(header_plus)
        except ValueError:  # a length of thousands of digits, an address that is none
            raise ParsingError("Header is invalid") from None
        if self.version not in ("1.0", "1.1"):
            raise ParsingError("Version is not supported")
        # waitress has taken the header away where it obeys it, as 1.1 asks for.
        if "TRANSFER_ENCODING" in self.headers or (
            self.chunked and "CONTENT_LENGTH" in self.headers
        ):
            raise ParsingError("Length is ambiguous")


class Channel(HTTPChannel):
    """One connection."""

    parser_class = Parser
    task_class = Request
    error_task_class = Refusal
    #: When the last part of an answer was ready to be sent.
    _ready_at: float = 0.0

    def service(self) -> None:
        """Serve the next request, in a worker thread, unless it has waited too long for one."""
        request = self.requests[0]
        if time.time() - request.complete_at > settings.WEB_QUEUE_SECONDS and not request.error:
            request.error = Overloaded("")
        super().service()

    def write_soon(self, data: Any) -> int:
        """Send a part of an answer, in a worker thread."""
        self._ready_at = time.time()
        took: int = super().write_soon(data)
        return took

    def is_late(self, now: float) -> bool:
        """Whether the client sends its request, or reads its answer, slower than it may."""
        if self.requests:
            return False  # it waits for us
        if self.total_outbufs_len:
            return now - self._ready_at > settings.WEB_WRITE_SECONDS
        if self.request is None:
            return False
        # What is sent ahead is not read before the answer to what came first.
        begun_at: float = max(self.request.begun_at, self._ready_at)
        return now - begun_at > settings.WEB_READ_SECONDS


class Server(TcpWSGIServer):
    """The listening socket and its connections.

    All processes listen on the same socket, and a connection stays with the one that takes it. The
    first to wake would take most of those that come together, and their requests would wait for its
    few threads while the threads of the others are idle. So a process in which requests wait does
    not wake for a connection: it looks now and then, and takes one that nobody wanted. Where there
    are more at the next look, it takes twice as many: a crowd that waits for one kind of page must
    not keep a webhook, which has threads of its own, from being read.
    """

    channel_class = Channel
    is_ending = False
    _next_look: float = 0.0
    _share: int = 1

    def readable(self) -> bool:
        """Whether to wake for a connection."""
        return super().readable() and not self.task_dispatcher.are_full

    def look(self, now: float) -> None:
        """Take unwanted connections if requests wait; nothing if there was a look just now."""
        if not self.task_dispatcher.are_full:
            self._share = 1  # the crowd is over
        elif now >= self._next_look:
            self._take_unwanted(now)

    def _take_unwanted(self, now: float) -> None:
        self._next_look = now + FULL_LOOK_SECONDS
        for _ in range(self._share):
            held = len(self.active_channels)
            if super().readable():
                self.handle_accept()
            if len(self.active_channels) == held:
                self._share = 1
                return
        self._share = min(2 * self._share, MOST_TAKEN)

    def maintenance(self, now: float) -> None:
        """Hang up on idle and on late clients; called once a second."""
        super().maintenance(now)
        for channel in self.active_channels.values():
            if channel.is_late(now):
                channel.will_close = True

    def stop_accepting(self) -> None:
        """Leave new connections to the other processes; answers close theirs from now on."""
        self.is_ending = True
        self.accepting = False
        self.del_channel()  # of the listening socket; gunicorn closes it

    @property
    def is_busy(self) -> bool:
        """Whether a request is being read or served, or an answer written."""
        return any(
            channel.requests or channel.request is not None or channel.total_outbufs_len
            for channel in self.active_channels.values()
        )


class UnixServer(Server):
    """The same on a socket in the file system, as a proxy on this machine may want it."""

    getsockname = UnixWSGIServer.getsockname
    fix_addr = UnixWSGIServer.fix_addr
    set_socket_options = UnixWSGIServer.set_socket_options


class BufferingWorker(Worker):
    """A process of gunicorn whose requests waitress reads. gunicorn.conf.py names it."""

    @classmethod
    def check_config(cls, cfg: Config, _log: Any) -> None:
        """End with a sentence, before any process is made, where an option would do nothing."""
        for option, sentence in REFUSED_OPTIONS.items():
            if getattr(cfg, option):
                raise SystemExit(sentence)

    def run(self) -> None:
        """Serve until SIGTERM, then answer what was taken."""
        connections: dict[int, wasyncore.dispatcher] = {}
        pools = Pools(self.cfg.threads)
        servers = [
            (UnixServer if listening.FAMILY == socket.AF_UNIX else Server)(
                self.wsgi,
                map=connections,
                _sock=listening.sock,
                dispatcher=pools,
                adj=self._adjustments(),
                sockinfo=(listening.FAMILY, None, None, None),
                bind_socket=False,
            )
            for listening in self.sockets
        ]
        while self.alive and self.ppid == os.getppid():
            self._turn(connections, seconds=FULL_LOOK_SECONDS if pools.are_full else 1)
            for server in servers:
                server.look(time.monotonic())
        for server in servers:
            server.stop_accepting()
        self._turn(connections, seconds=0)  # what has come on connections that were just taken
        deadline = time.monotonic() + self.cfg.graceful_timeout
        while any(server.is_busy for server in servers) and time.monotonic() < deadline:
            self._turn(connections)
        pools.shutdown()

    def _turn(self, connections: dict[int, wasyncore.dispatcher], *, seconds: float = 1) -> None:
        self.notify()
        wasyncore.loop(timeout=seconds, use_poll=True, map=connections, count=1)

    def _adjustments(self) -> Adjustments:
        options: dict[str, Any] = {
            "threads": self.cfg.threads,
            "backlog": self.cfg.backlog,
            "connection_limit": min(self.cfg.worker_connections, _most_connections()),
            "channel_timeout": self.cfg.keepalive,
            "cleanup_interval": 1,
            "max_request_header_size": MAX_HEADER_BYTES,
            # A little more than the application takes, which refuses it with more words. What is
            # longer than "inbuf_overflow" waits in a file, not in memory.
            "max_request_body_size": settings.WEBHOOK_MAX_BYTES
            + settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
            "inbuf_overflow": 2 * settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
            "ident": None,
            "clear_untrusted_proxy_headers": True,
        }
        if settings.TRUSTED_PROXY_COUNT:
            options |= {
                "trusted_proxy": "*",
                "trusted_proxy_count": settings.TRUSTED_PROXY_COUNT,
                "trusted_proxy_headers": {"x-forwarded-for", "x-forwarded-proto"},
            }
        return Adjustments(**options)


def _most_connections() -> int:
    """Return how many the process may hold: half of the descriptors that it may open. The others
    are for PostgreSQL, SQS, and bodies that wait in files.
    """
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return descriptors // 2 if descriptors != resource.RLIM_INFINITY else sys.maxsize
