"""A real SQS server that lives as long as this process: `ministack`, in its own environment.

It emulates many AWS services; all but SQS are off, and so are its listeners on other ports and its
search for containers to remove. It listens on 127.0.0.1 only. Queues do not outlive the process.
"""

import os
import random
import shutil
import socket
import sys
import tempfile
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from skincare.local.supervised import ProgramError, Supervised

REGION = "ap-southeast-3"  # Jakarta
CLIENT_ENVIRONMENT = {
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""What a client of the local server needs: any credentials will do, but boto3 wants some."""

PROGRAM = Path(sys.prefix) / "sqs-server" / "bin" / "ministack"
"""It pins its own botocore, so it has its own environment inside ours (`make setup` makes both)."""

#: Says from which port to which outgoing connections go.
_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")
_DRAWS = 50
_DRAW = random.SystemRandom()  # tests that run side by side seed the other one alike
#: Processes that run side by side, whose ids follow each other, draw from shares of their own.
_SHARES = 64
#: The last ports that this process found: their servers may not listen yet.
_found: deque[int] = deque(maxlen=50)

START_TRIES = 3
"""Another program may take the free port between our finding it and the server's binding it."""


class SQSServer:
    """One SQS server without queues. Also a context manager that stops it."""

    def __init__(self, *, preferred_port: int = 0) -> None:
        """Start it and wait until it answers; on another port where the preferred one is taken.

        Raises LookupError when ministack is not installed, ProgramError when it does not start.
        """
        if not PROGRAM.exists():
            raise LookupError(f"{PROGRAM} is missing: run `make setup`")
        for tries_left in reversed(range(START_TRIES)):
            try:
                self._start(free_port(preferred=preferred_port))
            except ProgramError:
                if not tries_left:
                    raise
            else:
                return

    def _start(self, port: int) -> None:
        self.port = port
        self.folder = Path(tempfile.mkdtemp(prefix="skincare-sqs-"))
        try:
            self._server = Supervised(
                [str(PROGRAM)],
                name="the SQS server",
                env=server_environment(self.port, self.folder),
                cwd=self.folder,
                remove=self.folder,
            )
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        try:
            self._server.wait_ready(self._answers)
        except BaseException:
            self.stop()
            raise

    @property
    def endpoint_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._server.pid

    def log_tail(self) -> str:
        return self._server.log_tail()

    def reset(self) -> None:
        """Forget all queues and messages."""
        request = urllib.request.Request(f"{self.endpoint_url}/_ministack/reset", method="POST")  # noqa: S310
        urllib.request.urlopen(request, timeout=5).close()  # noqa: S310 our own loopback address

    def stop(self) -> None:
        self._server.stop()

    def _answers(self) -> bool:
        if not self._server.listens(self.port):
            return False  # whoever answers there, it is another program
        try:
            urllib.request.urlopen(f"{self.endpoint_url}/_ministack/health", timeout=5).close()  # noqa: S310
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@contextmanager
def sqs_endpoint(*, preferred_port: int = 0) -> Iterator[str]:
    """The SQS endpoint to use: SQS_ENDPOINT_URL of the environment, else a server of our own."""
    if url := os.environ.get("SQS_ENDPOINT_URL"):
        yield url
    else:
        with SQSServer(preferred_port=preferred_port) as server:
            yield server.endpoint_url


def free_port(*, preferred: int = 0) -> int:
    """A TCP port of 127.0.0.1 on which nobody listens now: the preferred one, else any.

    Until its server listens, a second later, no outgoing connection is given it: the kernel takes
    theirs from a range of their own; and it is hardly found once more, here or by another process
    that asks. Raises OSError where none is found.
    """
    drawn = [port for port in _DRAW.choices(_ports(), k=_DRAWS) if port not in _found]
    for port in (preferred, *drawn) if preferred else drawn:
        with socket.socket() as listener, suppress(OSError):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            _found.append(port)
            return port
    raise OSError(f"none of {_DRAWS} ports of 127.0.0.1 is free")


def _ports() -> range:
    """This process's share of the ports below those of outgoing connections; of all where nothing
    is below."""
    try:
        outgoing = int(_OUTGOING.read_text().split()[0])
    except OSError:  # not Linux
        outgoing = 32_768
    first, end = (20_000, outgoing) if outgoing > 20_000 else (1_024, 65_536)
    return range(first + os.getpid() % _SHARES, end, _SHARES)


def server_environment(port: int, folder: Path) -> dict[str, str]:
    """The server's whole environment: nothing of ours (credentials least of all) reaches it."""
    return {
        "PATH": os.defpath,
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "MINISTACK_REGION": REGION,
        "SERVICES": "sqs",
        "LOG_LEVEL": "WARNING",
        # It would listen on 0.0.0.0:8883 and 0.0.0.0:2222.
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        # It would remove containers that it takes for its own, through whatever daemon there is.
        "DOCKER_HOST": f"unix://{folder}/no-docker.sock",
    }
