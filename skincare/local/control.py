"""Orders to a running `make run` from another terminal: start, stop or restart a program.

python -m skincare.local.control stop worker
"""

import argparse
import os
import queue
import shutil
import socketserver
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from socket import AF_UNIX, socket
from typing import Self

from skincare.local.stack import RUN_FOLDER

VERBS = ("start", "stop", "restart")
PROGRAMS = ("worker", "api")
ANSWER_SECONDS = 150.0  # a program may take START_SECONDS until it is ready


@dataclass
class Order:
    verb: str
    program: str
    answered: "queue.Queue[str]" = field(default_factory=lambda: queue.Queue(1))

    def answer(self, text: str) -> None:
        self.answered.put(text)


class Control:
    """Where orders come in; a context manager. Its socket's path is in the file `control`.

    The socket itself is in a folder of its own, because a socket's path has at most 107 bytes.
    """

    def __init__(self, folder: Path) -> None:
        self._pointer = folder / "control"
        self._orders: queue.Queue[Order] = queue.Queue()

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="skincare-control-"))  # mode 0700
        orders = self._orders

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                verb, _, program = self.rfile.readline(80).decode().strip().partition(" ")
                order = Order(verb, program)
                orders.put(order)
                self.wfile.write(order.answered.get().encode())

        self._server = socketserver.ThreadingUnixStreamServer(str(self._folder / "socket"), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._pointer.write_text(self._server.server_address)  # type: ignore[arg-type]
        return self

    def __exit__(self, *_: object) -> None:
        self._pointer.unlink(missing_ok=True)
        self._server.shutdown()
        self._server.socket.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def next(self, *, seconds: float) -> Order | None:
        """The next order, waited for so long at most."""
        try:
            return self._orders.get(timeout=seconds)
        except queue.Empty:
            return None


def send(folder: Path, verb: str, program: str) -> str:
    """Give the order, and return the answer. Raises ConnectionError where nothing runs."""
    try:
        address = (folder / "control").read_text()
        with socket(AF_UNIX) as line:
            line.settimeout(ANSWER_SECONDS)
            line.connect(address)
            line.sendall(f"{verb} {program}\n".encode())
            return line.makefile().read()
    except FileNotFoundError as error:
        raise ConnectionError("Nothing runs here: start it with `make run`.") from error
    except OSError as error:
        raise ConnectionError(
            f"The shop does not answer: {os.strerror(error.errno or 0)}"
        ) from error


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=VERBS)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--folder", type=Path, default=RUN_FOLDER, help="default: %(default)s")
    options = parser.parse_args()
    try:
        print(send(options.folder, options.verb, options.program))
    except ConnectionError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
