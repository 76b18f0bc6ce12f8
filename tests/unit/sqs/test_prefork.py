"""What processes say arrives whole and in order, and jobs that run for too long are noticed."""

from __future__ import annotations

import os
import pickle
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from kombu.asynchronous import Hub

from skincare.sqs import prefork
from skincare.sqs.prefork import ResultHandler, TimeLimits, split


def framed(said: object) -> bytes:
    """As billiard writes it."""
    body = pickle.dumps(said)
    return struct.pack("!i", len(body)) + body


sayings = st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=300)), max_size=8)


@given(sayings, st.data())
def test_what_is_split_and_what_remains_are_what_came(said: list[Any], data: st.DataObject) -> None:
    received = b"".join(framed(one) for one in said)
    cut = data.draw(st.integers(0, len(received)))

    whole, rest = split(received[:cut])

    again, nothing = split(rest + received[cut:])
    assert [pickle.loads(one) for one in whole + again] == said  # noqa: S301
    assert nothing == b""


@dataclass
class Process:
    """A pool process as its parent's loop sees it: a pipe, and what has been heard of it."""

    hub: Hub
    reader: int
    writer: int
    heard: list[Any] = field(default_factory=list)

    def write(self, part: bytes) -> None:
        while part:
            part = part[os.write(self.writer, part[:4096]) :]
            self.hub.run_once()


@contextmanager
def process() -> Iterator[Process]:
    hub = Hub()
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    one = Process(hub, reader, writer)
    handler = ResultHandler(
        *(None, None, {}, None, None, None, None, None, None),
        fileno_to_outq={reader: one},
        on_process_alive=None,
    )
    handler.on_state_change = one.heard.append
    handler.register_with_event_loop(hub)
    hub.add_reader(reader, handler.handle_event, reader)
    try:
        yield one
    finally:
        hub.close()
        os.close(reader)
        os.close(writer)


@given(sayings, st.lists(st.integers(1, 200), min_size=1, max_size=20))
def test_whatever_the_parts_that_arrive_all_is_heard_in_order(
    said: list[Any], sizes: list[int]
) -> None:
    written = b"".join(framed(one) for one in said)
    with process() as one:
        for number in range(len(written)):
            size = sizes[number % len(sizes)]
            if not written:
                break
            one.write(written[:size])
            written = written[size:]
        while len(one.heard) < len(said):
            one.hub.run_once()

        assert one.heard == said
        assert one.reader in one.hub.readers


def test_a_long_message_between_two_short_ones_is_heard() -> None:
    said = ["took it", "x" * 200_000, "took another"]
    with process() as one:
        for message in said:
            one.write(framed(message))
        while len(one.heard) < len(said):
            one.hub.run_once()

        assert one.heard == said


def test_a_process_that_is_gone_is_not_listened_to() -> None:
    with process() as one:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, one.writer)  # the pipe has no writer any more
        os.close(nothing)
        one.hub.run_once()

        assert one.reader not in one.hub.readers


@dataclass
class Timer:
    at: float
    call: Callable[[], object]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


class Clock:
    """Time, and an event loop's timers in it."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.timers: list[Timer] = []

    def call_later(self, delay: float, call: Callable[[], object]) -> Timer:
        self.timers.append(timer := Timer(self.now + delay, call))
        return timer

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [timer for timer in self.timers if timer.at <= end]:
            timer = min(due, key=lambda timer: timer.at)
            self.timers.remove(timer)
            self.now = max(self.now, timer.at)
            if not timer.cancelled:
                timer.call()
        self.now = end


class Limits(RuleBasedStateMachine):
    """Jobs start and end, and time passes: each limit is reached once, when it is due."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.clock = Clock()
        self.patch.setattr(prefork.time, "monotonic", lambda: self.clock.now)
        self.reached: list[tuple[str, int]] = []
        self.limits = TimeLimits(
            self.clock,  # type: ignore[arg-type]
            soft=lambda job: self.reach("soft", job),
            hard=lambda job: self.reach("hard", job),
        )
        self.expected: dict[tuple[str, int], float] = {}
        self.due: list[tuple[str, int]] = []
        self.jobs = 0

    def reach(self, limit: str, job: int) -> None:
        self.reached.append((limit, job))
        if job % 5 == 0:
            raise OSError("a process that cannot be killed")

    def teardown(self) -> None:
        self.patch.undo()

    @rule(soft=st.none() | st.integers(1, 80), hard=st.none() | st.integers(1, 100))
    def start(self, soft: int | None, hard: int | None) -> None:
        self.jobs += 1
        self.limits.start(self.jobs, soft=soft, hard=hard)
        if soft:
            self.expected["soft", self.jobs] = self.clock.now + soft
        if hard:
            at = self.clock.now + hard
            self.expected["hard", self.jobs] = max(at, self.expected.get(("soft", self.jobs), at))

    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        job = data.draw(st.integers(0, self.jobs))
        self.limits.end(job)
        for limit in ("soft", "hard"):
            self.expected.pop((limit, job), None)

    @rule(seconds=st.integers(1, 60))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)
        for what, at in list(self.expected.items()):
            if at <= self.clock.now:
                self.due.append(what)
                del self.expected[what]

    @invariant()
    def all_that_is_due_was_reached_and_nothing_else(self) -> None:
        assert sorted(self.reached) == sorted(self.due)


TestLimits = Limits.TestCase


def test_jobs_that_end_in_time_leave_no_timers_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(prefork.time, "monotonic", lambda: clock.now)
    limits = TimeLimits(clock, soft=print, hard=print)  # type: ignore[arg-type]

    for job in range(10_000):
        limits.start(job, soft=75, hard=90)
        clock.advance(0.0005)
        limits.end(job)

    assert len(clock.timers) == 1


def pythons() -> list[str]:
    """This one, and those of the image's release that are here."""
    of_pyenv = (Path.home() / ".pyenv" / "versions").glob("3.13.*/bin/python")
    return [sys.executable, *map(str, of_pyenv), *filter(None, [shutil.which("python3.13")])]


def test_no_attribute_of_a_thread_hides_a_method_of_the_result_handler() -> None:
    # It is a thread, and Python 3.13 gave threads a `_handle`.
    own = {name for name in vars(ResultHandler) if not name.startswith("__")}
    for python in pythons():
        printed = subprocess.run(
            [python, "-c", "import threading; print(*vars(threading.Thread()))"],
            check=python == sys.executable,  # one of pyenv's own commands may lead nowhere
            capture_output=True,
            text=True,
        )
        assert not own & set(printed.stdout.split())
