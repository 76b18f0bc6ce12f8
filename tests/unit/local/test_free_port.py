"""A port that was found free is still so when its server listens, a second later."""

import random
import socket

from skincare.local import sqs
from skincare.local.sqs import free_port


def test_no_outgoing_connection_is_given_it() -> None:
    outgoing = int(sqs._OUTGOING.read_text().split()[0])

    assert all(20_000 <= free_port() < outgoing for _ in range(20))


def test_processes_with_one_seed_find_different_ones() -> None:
    found = []
    for _ in range(2):
        random.seed(1)
        found.append([free_port() for _ in range(5)])

    assert found[0] != found[1]


def test_the_preferred_one_is_found_unless_somebody_listens_on_it() -> None:
    port = free_port()
    assert free_port(preferred=port) == port

    with socket.create_server(("127.0.0.1", port)):
        assert free_port(preferred=port) != port
