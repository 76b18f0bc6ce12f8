"""Where a program listens is asked of that program, not of whoever answers."""

import socket
import sys

import pytest

from skincare.local.sqs import free_port
from skincare.local.supervised import ProgramError, Supervised

SERVER = [sys.executable, "-m", "http.server", "--bind=127.0.0.1"]
PARENT = [sys.executable, "-c", "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"]


@pytest.mark.parametrize("command", [SERVER, PARENT + SERVER], ids=["itself", "its child"])
def test_it_listens_where_it_or_its_child_does(command: list[str]) -> None:
    port = free_port()

    with Supervised([*command, str(port)], name="the server") as program:
        program.wait_listening(port)

        assert program.listens(port)
        assert not program.listens(port, free_port())

    assert not program.listens(port)


def test_another_program_at_its_port_is_not_taken_for_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        with (
            Supervised([*SERVER, str(port)], name="the server") as program,
            pytest.raises(ProgramError, match=r"the server ended with status 1\n[\s\S]*in use"),
        ):
            program.wait_listening(port)
