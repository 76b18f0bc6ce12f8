"""A small SMTP server on 127.0.0.1 that answers as told, and keeps what it takes."""

import socketserver
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from threading import Lock, Thread

#: Instead of an answer: the connection is cut.
CUT = "cut"


@dataclass
class MailServer:
    """`answers` are those to RCPT TO, one for each try; then everything is taken."""

    port: int = 0
    answers: list[str] = field(default_factory=list)
    tries: int = 0
    #: Seconds between two emails that are taken; what comes earlier is throttled.
    every: float = 0.0
    next_at: float = 0.0
    taken: list[Message] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def throttle(self) -> str:
        """Return the answer to an email that comes now, by the rate of `every`."""
        with self.lock:
            if time.monotonic() < self.next_at:
                return "454 Throttling failure: Maximum sending rate exceeded."
            self.next_at = time.monotonic() + self.every
            return "250 ok"


class _Session(socketserver.StreamRequestHandler):
    """As much of RFC 5321 as one email needs."""

    def handle(self) -> None:
        self._say("220 ready")
        while line := self.rfile.readline().decode().strip():
            match line.split(" ")[0].upper():
                case "EHLO" | "HELO":
                    self._say("250 mail.test")
                case "RCPT":
                    if not self._answer_recipient():
                        return
                case "DATA":
                    self._say("354 go on")
                    self._take()
                case "QUIT":
                    self._say("221 bye")
                    return
                case _:
                    self._say("250 ok")

    def _answer_recipient(self) -> bool:
        mail_server: MailServer = self.server.mail_server  # type: ignore[attr-defined]
        mail_server.tries += 1
        answer = mail_server.answers.pop(0) if mail_server.answers else mail_server.throttle()
        if answer == CUT:
            return False
        self._say(answer)
        return True

    def _take(self) -> None:
        lines = list(iter(self.rfile.readline, b".\r\n"))
        self.server.mail_server.taken.append(message_from_bytes(b"".join(lines)))  # type: ignore[attr-defined]
        self._say("250 taken")

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


@contextmanager
def mail_server(answers: Sequence[str] = (), *, every: float = 0.0) -> Iterator[MailServer]:
    """Run the server; its port is free and its own."""
    with _Server(("127.0.0.1", 0), _Session) as server:
        described = MailServer(port=server.server_address[1], answers=list(answers), every=every)
        server.mail_server = described  # type: ignore[attr-defined]
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield described
        finally:
            server.shutdown()
            thread.join()
