"""What an attacker puts where something else is expected."""

import os
from collections.abc import Sequence
from typing import Any, Final, TypeVar

Value = TypeVar("Value")

#: How many values each field gets, of those below; `make attack` gives all.
EXAMPLES: Final = int(os.environ.get("ATTACK_EXAMPLES", "6"))

TEXTS: Final[tuple[str, ...]] = (
    *("", " ", "\t", "0", "-1", "1e309", "NaN", "true", "null", "[]", "{}", "undefined"),
    *("\x00", "a\x00b", "\ud800", "\udfff\ud800", "\ufffe", "\u200f", "\u2028", "é" * 300),
    *("x" * 5_000, "'", '"', "';--", "\\", "%", "%%s", "{}{}", "../../etc/passwd", ".", ".."),
    *("<script>alert(1)</script>", "{{7*7}}", "${jndi:ldap://x}", "\r\nSet-Cookie: a=b"),
    *("9999-12-31T23:59:59Z", "0001-01-01 00:00:00", "2026-02-30 25:61:61", "2026-11-11"),
    *("9" * 400, "1" * 20 + ".00", "150000.005", "-150000.00", "0x10", "1_000", "\u0661\u0662"),
    *("00000000-0000-0000-0000-000000000000", "5c9f2f0e", "IDR", "USD", "settlement", "PAID"),
)
VALUES: Final[tuple[Any, ...]] = (
    *TEXTS,
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 0.1, 1e308),
    *([], [[]], [None], {}, {"": None}, {"a": {"b": {"c": []}}}, [1, "2", {"3": 4}], ["x"] * 500),
)


def some(values: Sequence[Value], *, turn: int) -> Sequence[Value]:
    """Return so many of the values, other ones for each turn, so that a short run sees them all."""
    stride = max(1, len(values) // EXAMPLES)
    return values[turn % stride :: stride]
