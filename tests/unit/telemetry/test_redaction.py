"""No text that is redacted holds a person or a secret, and ordinary texts stay as they are."""

import socket
from collections.abc import Iterator

import pytest

from skincare.telemetry import redaction
from skincare.telemetry.redaction import redact, redact_fields


@pytest.fixture
def secret() -> Iterator[str]:
    before = redaction._secrets
    redaction.keep_secret(["SB-Mid-server-0123456789", "short", ""])
    yield "SB-Mid-server-0123456789"
    redaction.keep_secret(before)


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("no such user ayu.lestari+shop@mail.example", "no such user [redacted]"),
        ("<budi@sub.buyer.co.id>, <citra@buyer.example>", "<[redacted]>, <[redacted]>"),
        ("postgresql://shop:p4ss@db.example/shop", "postgresql://[redacted]@db.example/shop"),
        ("card 4811111111111114 was refused", "card [redacted] was refused"),
        ("card 5211 1111 1111 1117.", "card [redacted]."),
        ("card 3782-822463-10005", "card [redacted]"),
        ("Authorization: Bearer eyJhbGciOi.J9.x_-y", "Authorization: Bearer [redacted]"),
        (
            "duplicate key\nDETAIL:  Key (phone)=(0812) already exists.\nCONTEXT:  COPY x",
            "duplicate key\nDETAIL: [redacted]\nCONTEXT: [redacted]",
        ),
    ],
)
def test_what_is_private_is_replaced(text: str, redacted: str) -> None:
    assert redact(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "8e4f148d-8a00-5061-a156-54eba481e8a4",
        "48111111-1111-4111-8111-111111111114",  # a UUID whose digits could be a card's
        "SKN-20261129-7F3K2Q",
        "warehouse:2026-11-29T10:20:30.123456+07:00",
        "1795977405712",  # milliseconds; 13 digits, and no card's check digit
        "4811111111111115",  # the check digit is wrong
        "150000 instead of 158000 rupiah",
        f"celery@{socket.gethostname()} ready.",
        "py-3311e0b8-7ca6-420c-8e57-18f9b696a48f",
    ],
)
def test_ordinary_texts_stay(text: str) -> None:
    assert redact(text) == text


def test_a_secret_of_the_settings_is_found_anywhere(secret: str) -> None:
    assert (
        redact(f"signature over x200y{secret} differs") == "signature over x200y[redacted] differs"
    )
    assert redact("a short word") == "a short word"


def test_fields_are_redacted_by_name_and_at_any_depth() -> None:
    fields = {
        "email": "ayu",
        "body": b"{}",
        "order_id": "8e4f",
        "errors": [{"to": "x", "text": "ayu@mail.example"}, ("budi@mail.example", 3)],
    }

    assert redact_fields(fields) == {
        "email": "[redacted]",
        "body": "[redacted]",
        "order_id": "8e4f",
        "errors": [{"to": "[redacted]", "text": "[redacted]"}, ["[redacted]", 3]],
    }
