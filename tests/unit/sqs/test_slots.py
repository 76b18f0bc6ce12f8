"""How the queues of a worker share its processes."""

from hypothesis import given
from hypothesis import strategies as st

from skincare.sqs.slots import Slots


def test_one_queue_gets_all_free_slots_up_to_ten() -> None:
    assert Slots(capacity=5, held=2).claim("a") == 3
    assert Slots(capacity=32).claim("a") == 10


def test_a_full_worker_asks_for_nothing() -> None:
    assert Slots(capacity=5, held=5).claim("a") == 0
    assert Slots(capacity=5, held=7).claim("a") == 0


def test_a_queue_gets_what_the_polls_of_others_leave() -> None:
    slots = Slots(capacity=16)
    assert slots.claim("a") == 10
    assert slots.claim("b") == 6


def test_a_poll_that_hangs_leaves_one_slot_to_the_other_queue() -> None:
    slots = Slots(capacity=5)
    assert slots.claim("hangs") == 5
    assert slots.claim("other") == 1
    slots.unclaim("hangs")
    assert slots.claim("other") == 5


def test_a_full_worker_asks_for_what_may_wait() -> None:
    assert Slots(capacity=5, held=5, ahead=20).claim("a") == 10
    assert Slots(capacity=5, held=5, ahead=8).claim("a") == 8


def test_for_free_slots_no_more_is_fetched_than_starts_at_once() -> None:
    assert Slots(capacity=5, held=3, ahead=20).claim("a") == 2


def test_a_full_worker_does_not_ask_while_half_of_it_still_waits() -> None:
    assert Slots(capacity=5, held=5, ahead=20, waiting=10).claim("a") == 0
    assert Slots(capacity=5, held=5, ahead=20, waiting=9).claim("a") == 10
    assert Slots(capacity=5, held=4, ahead=20, waiting=20).claim("a") == 1


@given(
    capacity=st.integers(1, 40),
    held=st.integers(0, 50),
    waiting=st.integers(0, 30),
    ahead=st.integers(0, 20),
    queues=st.lists(st.sampled_from("abc"), max_size=20),
)
def test_no_more_is_asked_for_than_one_for_each_queue_beyond_what_there_is_room_for(
    capacity: int, held: int, waiting: int, ahead: int, queues: list[str]
) -> None:
    slots = Slots(capacity=capacity, held=held, waiting=waiting, ahead=ahead)
    claims = {queue: slots.claim(queue) for queue in queues}

    assert all(0 <= count <= 10 for count in claims.values())
    assert sum(claims.values()) <= (slots.free or max(ahead - waiting, 0)) + max(len(claims) - 1, 0)
