"""An SMTP server on 127.0.0.1 that takes every email, after a while."""

import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

MAIL_SECONDS = 0.05


class _Session(socketserver.StreamRequestHandler):
    """As much of RFC 5321 as one email needs."""

    def handle(self) -> None:
        self._say("220 ready")
        while line := self.rfile.readline().decode().strip():
            match line.split(" ")[0].upper():
                case "DATA":
                    self._say("354 go on")
                    while self.rfile.readline() != b".\r\n":
                        pass
                    time.sleep(MAIL_SECONDS)
                    self._say("250 taken")
                case "QUIT":
                    self._say("221 bye")
                    return
                case _:
                    self._say("250 ok")

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64


@contextmanager
def slow_mail() -> Iterator[int]:
    """Run the server; yields its port."""
    with _Server(("127.0.0.1", 0), _Session) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
