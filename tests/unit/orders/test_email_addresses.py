"""What is taken as an address can be mailed; what cannot be is refused at the counter."""

import email.errors
import re
import smtplib
from email.utils import getaddresses
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from django.core.mail import EmailMessage, get_connection
from hypothesis import given, settings
from hypothesis import strategies as st

from orders.delivery import deliver
from orders.email_addresses import mailable
from orders.exceptions import EmailRefused, InvalidEmail
from skincare.local.sqs import free_port

CONTROLS = "\x1d\x0b\x0c\x1c\x1e\r\n\0\u2028"


@pytest.mark.parametrize(
    ("typed", "mailed"),
    [
        ("sari@example.com", "sari@example.com"),
        ("Sari.Dewi+toko@Example.COM", "Sari.Dewi+toko@example.com"),
        ("o'brien@mail.example.co.id", "o'brien@mail.example.co.id"),
        ("sari@bücher.example", "sari@xn--bcher-kva.example"),
        ("sari@例え.example", "sari@xn--r8jz45g.example"),
    ],
)
def test_an_address_is_stored_as_it_is_mailed(typed: str, mailed: str) -> None:
    assert mailable(typed) == mailed


@pytest.mark.parametrize(
    "typed",
    [
        *(f'"q{control}EVIL"@example.com' for control in CONTROLS),
        *(f"q{control}x@example.com" for control in f"{CONTROLS}\t \x7f\u200f"),
        *("a@[127.0.0.1]", "a@[IPv6:::1]", "a@127.0.0.1"),
        *("a@localhost", "a@example", "a@shop.local"),
        *("sari@example\u200f.com", f"sari@{'é' * 59}.com", "sari@-example.com"),
        *("sari@example..com", "sari@example.com.", "@example.com", "sari@", "sari", ""),
        *('"sari"@example.com', '"a b"@example.com', "sari@@example.com", "säri@example.com"),
        *("sari@example.com, dewi@example.com", "Sari <sari@example.com>"),
        *(".sari@example.com", "sari.@example.com", "sa..ri@example.com"),
        *(f"{'s' * 65}@example.com", f"sari@{'a.' * 130}com"),
        *("\ud800@example.com", "a@\ud800.com"),
    ],
)
def test_what_cannot_be_mailed_is_refused(typed: str) -> None:
    with pytest.raises(InvalidEmail):
        mailable(typed)


class Received:
    """What a real SMTP server was told."""

    def __init__(self) -> None:
        self.envelopes: list[tuple[list[str], bytes]] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        self.envelopes.append((envelope.rcpt_tos, envelope.content))
        return "250 OK"


@pytest.fixture(scope="module")
def smtp() -> Any:
    received = Received()
    controller = Controller(received, hostname="127.0.0.1", port=free_port())
    controller.start()
    yield received, controller.port
    controller.stop()


TYPED = st.one_of(
    st.emails(),
    st.text(max_size=30).map(lambda text: f"{text}@example.com"),
    st.text(max_size=30).map(lambda text: f"sari@{text}.com"),
    st.text(max_size=40),
    st.builds(
        lambda local, domain: f"{local}@{domain}",
        st.text("abc.\"\\ <>,;:()'+\r\n\x0b\x1d", min_size=1, max_size=12),
        st.text("abcé.-\u200f[]:1", min_size=1, max_size=20),
    ),
)


@settings(max_examples=300, deadline=None)
@given(typed=TYPED)
def test_what_is_taken_arrives_at_that_address_alone(typed: str, smtp: Any) -> None:
    received, port = smtp
    try:
        address = mailable(typed)
    except InvalidEmail:
        return
    assert address.isascii()
    assert getaddresses([address]) == [("", address)]
    received.envelopes.clear()

    with get_connection(
        "django.core.mail.backends.smtp.EmailBackend", host="127.0.0.1", port=port
    ) as connection:
        deliver(EmailMessage("Subject", "Text", to=[address], connection=connection))

    ((recipients, content),) = received.envelopes
    assert recipients == [address]
    # A long one begins on a line of its own (RFC 5322, 2.2.3).
    assert re.findall(rb"^To:\s+(.+)\r$", content, re.MULTILINE) == [address.encode()]


@pytest.mark.parametrize(
    "error",
    [
        ValueError("sari@example.com"),
        UnicodeEncodeError("ascii", "é", 0, 1, "no"),
        email.errors.HeaderParseError("x"),
        IndexError("x"),
        smtplib.SMTPNotSupportedError("SMTPUTF8"),
    ],
)
def test_what_the_mail_library_refuses_later_is_refused_at_once_and_for_ever(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []

    def send(message: EmailMessage) -> int:
        tries.append(message)
        raise error

    monkeypatch.setattr(EmailMessage, "send", send)

    with pytest.raises(EmailRefused) as refusal:
        deliver(EmailMessage())

    assert len(tries) == 1
    assert "sari" not in str(refusal.value)
