"""A port that was found free is still so when its server listens, a second later."""

import os
import random
import socket

import pytest

from skincare.local import sqs
from skincare.local.sqs import free_port


def test_no_outgoing_connection_is_given_it() -> None:
    outgoing = int(sqs._OUTGOING.read_text().split()[0])

    assert all(20_000 <= free_port() < outgoing for _ in range(20))


def test_none_is_found_again_before_its_server_listens() -> None:
    found = [free_port() for _ in range(30)]

    assert len(set(found)) == len(found)


def test_processes_side_by_side_draw_from_different_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[set[int]] = []
    for pid in (4_001, 4_002):
        monkeypatch.setattr(os, "getpid", lambda pid=pid: pid)
        found.append({free_port() for _ in range(30)})

    assert found[0].isdisjoint(found[1])


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
