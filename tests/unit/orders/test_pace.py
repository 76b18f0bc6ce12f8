"""How fast a process hands over emails, by what the provider answers."""

from orders.delivery import Pace


def test_nothing_is_held_back_while_the_provider_takes_all() -> None:
    pace = Pace()
    pace.taken()

    assert pace.seconds_left(0.0) == 0
    assert not pace.is_slowed


def test_each_refusal_doubles_the_pause_up_to_the_longest() -> None:
    pace = Pace(first=1.0, longest=60.0)

    for whole in (1, 2, 4, 8, 16, 32, 60, 60):
        pace.refused(1000.0)
        assert whole / 2 <= pace.seconds_left(1000.0) <= whole
        assert pace.is_slowed
    assert pace.seconds_left(1000.0 + 60) == 0


def test_each_email_that_is_taken_halves_the_pause() -> None:
    pace = Pace(first=1.0, longest=60.0)
    for _ in range(4):
        pace.refused(0.0)

    taken = 0
    while pace.is_slowed:
        pace.taken()
        taken += 1

    assert taken == 4
