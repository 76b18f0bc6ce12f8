"""When a message that waits for the end of an outage is tried, and what follows for the others."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from skincare.sqs import SQSPolicy
from skincare.sqs.acknowledger import Extensions
from skincare.sqs.decoder import Incoming, ReceivedMessage, TaskCall
from skincare.sqs.outage import WaitingRoom
from skincare.sqs.policy import Observer
from skincare.sqs.prefetch import PrefetchBudget
from tests.unit.sqs.loop import Loop

POLICY = SQSPolicy()


class Tap:
    """A poller that only notes whether it may poll."""

    queue = "q"

    def __init__(self) -> None:
        self.is_open = True

    def pause(self) -> None:
        self.is_open = False

    def resume(self) -> None:
        self.is_open = True


class Worker:
    """A waiting room with a loop, `slots` processes, and what was started in it."""

    def __init__(self, slots: int = 2) -> None:
        self.loop = Loop()
        self.tap = Tap()
        self.budget = PrefetchBudget(capacity=slots)
        self.started: list[Incoming] = []
        self.extensions = Extensions(
            self.loop,  # type: ignore[arg-type]
            self.loop,  # type: ignore[arg-type]
            url="http://sqs/1/q",
            linger=0.01,
            call_timeout=5.0,
            counts=Counter(),
            observer=Observer(),
        )
        self.room = WaitingRoom(
            self.loop,  # type: ignore[arg-type]
            self.tap,  # type: ignore[arg-type]
            self.extensions,
            policy=POLICY,
            budget=self.budget,
            start=self.start,
        )

    def start(self, incoming: Incoming) -> None:
        self.budget.held += 1
        self.started.append(incoming)

    def end(self, incoming: Incoming, outcome: str) -> None:
        """A task that was started ends; what the consumer does then."""
        self.started.remove(incoming)
        if outcome == "unavailable":
            self.room.unavailable(incoming, "PostgreSQL")
        else:
            self.room.ended(incoming, succeeded=outcome == "success")
        self.budget.held -= 1
        self.room.start_recovered()

    def fire(self) -> None:
        """Fire the timer of the next look."""
        looks = [timer for timer in self.loop.timers if not timer.cancelled]
        self.loop.timers = []
        for timer in looks:
            timer.call()


def incoming(age: float = 0.0) -> Incoming:
    received_at = time.monotonic() - age
    message = ReceivedMessage("q", "m", "h", 1, "{}", received_at, received_at + 120)
    return Incoming(message, TaskCall("t", "id", [], {}))


def meet_outage(worker: Worker, *messages: Incoming) -> None:
    for message in messages:
        worker.start(message)
    for message in messages:
        worker.end(message, "unavailable")


def test_during_an_outage_one_message_is_tried_at_a_time_and_no_poll_begins() -> None:
    worker = Worker()
    one, two, three = incoming(), incoming(), incoming()
    meet_outage(worker, one, two)
    worker.room.add(three)
    assert (worker.started, worker.tap.is_open) == ([], False)

    worker.fire()
    assert worker.started == [one]
    worker.end(one, "unavailable")
    worker.fire()

    assert worker.started == [two]
    assert not worker.tap.is_open


def test_the_first_success_opens_the_flow_for_what_waits_and_then_for_the_queue() -> None:
    worker = Worker(slots=2)
    one, two, three, four = [incoming() for _ in range(4)]
    meet_outage(worker, one, two)
    worker.room.add(three)
    worker.room.add(four)
    worker.fire()

    worker.end(one, "success")
    assert worker.started == [two, three]
    assert not worker.tap.is_open  # one still waits for a slot
    worker.end(two, "success")

    assert worker.started == [three, four]
    assert worker.tap.is_open
    assert not worker.room.is_open


def test_a_message_that_fails_for_reasons_of_its_own_lets_the_next_be_tried() -> None:
    worker = Worker()
    one, two = incoming(), incoming()
    meet_outage(worker, one, two)
    worker.fire()

    worker.end(one, "failure")
    assert worker.started == []
    worker.fire()

    assert worker.started == [two]
    assert not worker.tap.is_open


def test_if_nothing_waits_any_more_the_queue_is_polled_for_a_message_to_try() -> None:
    worker = Worker()
    meet_outage(worker, one := incoming())
    worker.fire()
    worker.end(one, "failure")
    worker.fire()

    assert worker.tap.is_open


def test_a_task_that_succeeds_but_began_before_says_nothing() -> None:
    worker = Worker()
    one, earlier = incoming(), incoming()
    worker.start(earlier)
    meet_outage(worker, one)

    worker.end(earlier, "success")

    assert (worker.started, worker.tap.is_open) == ([], False)


def test_what_waits_stays_invisible_and_can_be_started_at_any_time() -> None:
    worker = Worker()
    fresh, old = incoming(age=5), incoming(age=20)
    meet_outage(worker, fresh, old)

    worker.room.keep_invisible()
    worker.room.keep_invisible()
    worker.extensions.flush()

    [(action, [entry], answer)] = worker.loop.calls
    assert (action, entry["VisibilityTimeout"]) == ("ChangeMessageVisibilityBatch", 120)
    answer({"Successful": [{"Id": "0"}]})
    assert old.message.seconds_left == pytest.approx(120, abs=1)


def test_a_message_whose_visibility_could_not_be_extended_is_forgotten() -> None:
    worker = Worker()
    meet_outage(worker, incoming(age=121), kept := incoming())

    worker.room.keep_invisible()

    assert worker.room.messages == [kept]


def test_an_extension_that_failed_is_not_sent_again_by_itself() -> None:
    """It could come after the message was made visible, and hide it for another two minutes."""
    worker = Worker()
    meet_outage(worker, incoming(age=20))
    worker.room.keep_invisible()
    worker.extensions.flush()
    worker.loop.answer({"Failed": [{"Id": "0", "Code": "InternalError"}]})

    assert worker.extensions.unfinished == []
    worker.room.keep_invisible()
    assert len(worker.extensions.unfinished) == 1


def test_what_follows_an_extension_waits_for_its_answer_and_nothing_else_does() -> None:
    """Else the extension could arrive after the release, and hide the message once more."""
    worker = Worker()
    old, other = incoming(age=20), incoming(age=5)
    meet_outage(worker, old, other)
    worker.room.keep_invisible()
    worker.extensions.flush()
    done: list[str] = []

    worker.extensions.then(other.message, lambda: done.append("other"))
    worker.extensions.then(old.message, lambda: done.append("old"))
    assert done == ["other"]
    assert len(worker.extensions) == 1

    worker.loop.answer({"Failed": [{"Id": "0", "Code": "InternalError"}]})
    assert done == ["other", "old"]
    assert len(worker.extensions) == 0


def test_an_extension_that_was_not_sent_yet_is_dropped_for_what_follows() -> None:
    worker = Worker()
    meet_outage(worker, old := incoming(age=20))
    worker.room.keep_invisible()
    done: list[str] = []

    worker.extensions.then(old.message, lambda: done.append("old"))
    worker.extensions.flush()

    assert done == ["old"]
    assert worker.loop.calls == []


def test_what_follows_an_extension_that_is_not_answered_is_done_at_the_end_of_the_loop() -> None:
    worker = Worker()
    meet_outage(worker, old := incoming(age=20))
    worker.room.keep_invisible()
    worker.extensions.flush()
    done: list[str] = []
    worker.extensions.then(old.message, lambda: done.append("old"))

    worker.extensions.freeze()

    assert done == ["old"]


HOUR = 3600.0


class Hours:
    """An outage by a clock that is moved on, in front of an SQS that keeps to its rules."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = time.monotonic()
        patch.setattr(time, "monotonic", lambda: self.now)
        self.worker = Worker()
        self.message = incoming()
        self.received_at = self.now
        self.visible_at = self.now + POLICY.visibility_timeout
        meet_outage(self.worker, self.message)

    def pass_until(self, moment: float) -> None:
        """Let the worker live, with a sign of life every five seconds, until so long after the
        receive or until SQS shows the message again; each try lacks the database still.
        """
        while self.now < min(self.received_at + moment, self.visible_at):
            self.now += 5.0
            self.worker.room.keep_invisible()
            self.worker.extensions.flush()
            for _, entries, answer in self.worker.loop.calls:
                [entry] = entries
                self.extend(entry["VisibilityTimeout"])
                answer({"Successful": [{"Id": "0"}]})
            self.worker.loop.calls.clear()
            self.worker.fire()
            for started in list(self.worker.started):
                assert self.visible_at - self.now >= POLICY.hard_time_limit
                self.worker.end(started, "unavailable")

    def extend(self, seconds: int) -> None:
        """https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html"""
        assert self.now - self.received_at + seconds <= 12 * HOUR, "SQS refuses it"
        assert self.visible_at > self.now, "it was visible, and may be with another worker"
        self.visible_at = self.now + seconds


def test_one_receive_lasts_for_an_hour_and_for_as_long_as_sqs_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outage = Hours(monkeypatch)

    outage.pass_until(1 * HOUR)
    assert outage.worker.room.messages == [outage.message]
    assert outage.visible_at > outage.now

    outage.pass_until(13 * HOUR)
    assert outage.visible_at - outage.received_at == pytest.approx(12 * HOUR, abs=10)
    outage.now = outage.visible_at
    outage.worker.room.keep_invisible()
    # Its next receive begins another twelve hours; this worker has let go of it.
    assert outage.worker.room.messages == []


class Outages(RuleBasedStateMachine):
    """Whatever tasks do, no message is lost or started twice, and the flow opens again."""

    def __init__(self) -> None:
        super().__init__()
        self.worker = Worker(slots=3)
        self.all: list[Incoming] = []
        self.gone: list[Incoming] = []

    @precondition(lambda self: self.worker.budget.free)
    @rule()
    def a_message_comes(self) -> None:
        self.all.append(message := incoming())
        if self.worker.room.is_open:
            self.worker.room.add(message)
        else:
            self.worker.start(message)

    @precondition(lambda self: self.worker.started)
    @rule(outcome=st.sampled_from(["success", "failure", "unavailable"]), data=st.data())
    def a_task_ends(self, outcome: str, data: st.DataObject) -> None:
        message = data.draw(st.sampled_from(self.worker.started))
        if outcome != "unavailable":
            self.gone.append(message)
        self.worker.end(message, outcome)

    @rule()
    def time_passes(self) -> None:
        self.worker.fire()

    @invariant()
    def each_message_is_in_one_place(self) -> None:
        places = self.worker.started + self.worker.room.messages + self.gone
        assert sorted(map(id, places)) == sorted(map(id, self.all))

    @invariant()
    def the_queue_is_polled_if_and_only_if_there_is_no_outage(self) -> None:
        assert self.worker.tap.is_open == (not self.worker.room.is_open)

    def teardown(self) -> None:
        for _ in range(3 * len(self.all) + 3):
            for message in list(self.worker.started):
                self.gone.append(message)
                self.worker.end(message, "success")
            self.worker.fire()
        assert self.worker.tap.is_open
        assert len(self.gone) == len(self.all)


TestOutages = Outages.TestCase
