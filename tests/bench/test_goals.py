"""The ratios that the benchmark ends with."""

from tests.bench.bench import Numbers
from tests.bench.contestants import BATCH_LOOP, OURS, ours
from tests.bench.goals import against, goals
from tests.bench.subject import HERE, ROOT, Subject


def test_a_goal_is_the_ratio_of_two_medians() -> None:
    numbers = Numbers()
    for ours_per_second, loop_per_second in ((90, 100), (1, 1), (120, 100)):
        numbers.add(OURS.name, "no-op 10 ms", ours_per_second)
        numbers.add(BATCH_LOOP.name, "no-op 10 ms", loop_per_second)

    assert goals(numbers).rows == [["no-op at 10 ms ÷ boto3 by ten", "≥ 1", "0.90", "no"]]


def test_a_goal_of_which_a_half_was_not_measured_is_left_out() -> None:
    numbers = Numbers()
    numbers.add(OURS.name, "no-op 10 ms", 100)

    assert goals(numbers).rows == []


def test_two_checkouts_are_compared_by_what_both_were_measured_for() -> None:
    other = Subject("0123abcd", ROOT, ROOT)
    numbers = Numbers()
    numbers.add(other.name, "checkout, p99", 100)
    numbers.add(HERE.name, "checkout, p99", 50)
    numbers.add(ours(other).name, "shop 10 ms", 60)
    numbers.add(OURS.name, "shop 10 ms", 120)
    numbers.add(HERE.name, "webhook, p99", 1)

    table = against(numbers, here=(HERE.name, OURS.name), other=(other.name, ours(other).name))

    assert table.rows == [
        ["shop's handler at 10 ms, events/s", "60.00", "120", "2.00", "≥ 3", "no"],
        ["checkout, p99 ms", "100", "50.00", "0.50", "≤ 0.6", "yes"],
    ]
