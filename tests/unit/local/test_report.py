"""The demonstration's table tells right from wrong."""

from skincare.local.report import Row, table

RIGHT = Row("a settlement", "200, paid", "200, paid")
WRONG = Row("a forgery", "403", "200, paid")


def test_a_row_is_right_only_if_exactly_that_happened_which_had_to() -> None:
    assert RIGHT.is_right
    assert not WRONG.is_right


def test_the_table_is_aligned_and_names_each_verdict() -> None:
    assert table([RIGHT, WRONG]).splitlines() == [
        "case          had to happen  happened",
        "------------  -------------  ---------",
        "a settlement  200, paid      200, paid  ok",
        "a forgery     403            200, paid  WRONG",
    ]
