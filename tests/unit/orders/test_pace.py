"""How fast a process hands over emails, by what the provider answers."""

from orders.delivery import Pace


def test_nothing_is_held_back_while_the_provider_takes_all() -> None:
    pace = Pace()
    pace.taken(0.0)

    assert pace.seconds_left(0.0) == 0
    assert not pace.is_slowed


def test_each_refusal_doubles_the_pause_up_to_the_longest() -> None:
    pace = Pace(first=1.0, longest=60.0)

    for whole in (1, 2, 4, 8, 16, 32, 60, 60):
        pace.refused(1000.0)
        assert whole / 2 <= pace.seconds_left(1000.0) <= whole
        assert pace.is_slowed
    assert pace.seconds_left(1000.0 + 60) == 0


def test_each_email_that_is_taken_shortens_the_pause_until_there_is_none() -> None:
    pace = Pace(first=1.0, longest=60.0)
    for _ in range(4):
        pace.refused(0.0)

    pauses = []
    while pace.is_slowed:
        pace.taken(0.0)
        pauses.append(pace.seconds_left(0.0))

    assert 2 <= pauses[0] <= 8 * 0.7
    assert pauses[-1] == 0


def test_the_rate_settles_near_what_the_provider_takes() -> None:
    pace = Pace(first=1.0, longest=60.0)
    now, next_at, taken, refused = 0.0, 0.0, 0, 0
    while now < 2000:
        now += 0.05
        if pace.seconds_left(now):
            continue
        if now < next_at:
            refused += 1
            pace.refused(now)
        else:
            taken += 1
            next_at = now + 2.0
            pace.taken(now)

    assert 400 < taken <= 1000
    assert refused < taken
