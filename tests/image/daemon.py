"""A Docker daemon: the one that answers, else one of our own, which ends with this process."""

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from skincare.local.deadline import busyness
from skincare.local.supervised import ProgramError, Supervised

DATA = Path(__file__).parents[2] / "var" / "docker"
"""Its images and build cache, so that the next run starts in seconds; `make clean` removes them."""


class NoDaemon(Exception):
    """No Docker daemon answers and none can be started; the message says why."""


@functools.cache
def docker_program() -> str:
    """The first `docker` on the path that builds with BuildKit: some come without its plugin.

    Raises NoDaemon when there is none.
    """
    for folder in os.get_exec_path():
        program = shutil.which("docker", path=folder)
        if program and "--secret" in _output(program, "build", "--help"):
            return program
    raise NoDaemon("there is no docker command that builds with BuildKit")


def run_docker(
    host: str, *arguments: str | Path, seconds: float = 60
) -> "subprocess.CompletedProcess[str]":
    """Run a docker command. One that takes too long has failed: on a busy machine, longer."""
    command = [docker_program(), "--host", host, *map(str, arguments)]
    try:
        return subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            timeout=seconds * busyness(),
            env={**os.environ, "DOCKER_BUILDKIT": "1"},
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"not done after {seconds:g} s")


def _output(*command: str) -> str:
    return subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "DOCKER_BUILDKIT": "1"},
    ).stdout


@contextmanager
def docker_host() -> Iterator[str]:
    """The address of a daemon that answers. Raises NoDaemon."""
    address = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if _answers(address):
        yield address
        return
    if not shutil.which("dockerd"):
        raise NoDaemon(
            f"no Docker daemon answers at {address}, and there is no dockerd to start one "
            "(on Debian: apt-get install docker.io)"
        )
    if os.geteuid() != 0:
        raise NoDaemon(f"no Docker daemon answers at {address}, and only root can start one")
    with _own_daemon() as address:
        yield address


@contextmanager
def _own_daemon() -> Iterator[str]:
    """A daemon without networks: its containers use the host's, or none."""
    DATA.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="skincare-docker-") as folder:
        address = f"unix://{folder}/docker.sock"
        try:
            daemon = Supervised(
                [
                    *("dockerd", "--host", address, "--data-root", str(DATA)),
                    *("--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid"),
                    *("--bridge=none", "--iptables=false", "--ip6tables=false"),
                ],
                name="dockerd",
                grace=30.0,
            )
            with daemon:
                daemon.wait_ready(lambda: _answers(address), seconds=60)
                yield address
        except ProgramError as error:
            raise NoDaemon(f"dockerd does not run on this machine: {error}") from error
        finally:  # dockerd leaves the mount of the host's network behind
            _output("umount", f"{folder}/exec/netns/default")


def _answers(address: str) -> bool:
    return run_docker(address, "version").returncode == 0
