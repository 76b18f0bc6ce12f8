"""What reaches an operator's terminal."""

from io import StringIO

import pytest

from skincare.operations.base_command import fitted, printable
from skincare.operations.progress import ProgressBar


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("failed: Sérum €", "failed: Sérum €"),
        ("two\nlines", "two\nlines"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("a\rb\x07", "a\\rb\\x07"),
        ("evil\u202etxt", "evil\\u202etxt"),
        ("half \ud800", "half \\ud800"),
    ],
)
def test_what_others_wrote_cannot_steer_the_terminal(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("fits", 4, "fits"),
        ("does not fit", 8, "does no…"),
        ("does not fit", None, "does not fit"),
        ("first\nsecond", 40, "first"),
        ("\x1b[2Jgone", 6, "\\x1b[…"),
    ],
)
def test_a_line_of_a_list_is_no_wider_than_the_terminal(
    text: str, width: int | None, shown: str
) -> None:
    assert fitted(text, width) == shown


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_drawn_on_a_terminal_and_cleared() -> None:
    stream = Terminal()
    with ProgressBar(stream) as bar:
        bar(250, 1000)
    assert stream.getvalue() == f"\r[{'#' * 10}{'-' * 30}] 250 of about 1000\r\x1b[K"


def test_no_bar_is_drawn_anywhere_else() -> None:
    stream = StringIO()
    with ProgressBar(stream) as bar:
        bar(1, 2)
    assert stream.getvalue() == ""
