"""Handing an email over: a real SMTP conversation with a provider that is busy, away or sure."""

import logging
import socket
import time
from collections.abc import Iterator

import pytest
from django.conf import LazySettings
from django.core.mail import EmailMessage

from orders.delivery import deliver
from orders.exceptions import EmailDelayed, EmailRefused
from skincare.events.exceptions import TerminalError
from tests.integration.orders.mail_server import CUT, MailServer, mail_server

BUYER = "sari@example.com"
BUSY = f"450 <{BUYER}>: come back later"
NO_SUCH_BUYER = f"550 <{BUYER}>: no such user"


@pytest.fixture
def provider(settings: LazySettings) -> Iterator[MailServer]:
    """The mail server that Django is set to."""
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST = "127.0.0.1"
    settings.EMAIL_RETRY_WAIT_SECONDS = (0.001, 0.002)
    with mail_server() as server:
        settings.EMAIL_PORT = server.port
        yield server


def an_email() -> EmailMessage:
    return EmailMessage(
        subject="Halo", body="Halo.", to=[BUYER], headers={"Message-ID": "<1@shop>"}
    )


def test_an_email_that_is_taken_is_sent_once(provider: MailServer) -> None:
    deliver(an_email())

    assert [email["Message-ID"] for email in provider.taken] == ["<1@shop>"]
    assert provider.tries == 1


@pytest.mark.parametrize("trouble", [BUSY, CUT, "421 closing", "451 disk full"])
def test_trouble_that_passes_is_tried_again(provider: MailServer, trouble: str) -> None:
    provider.answers = [trouble, trouble]

    deliver(an_email())

    assert provider.tries == 3
    assert len(provider.taken) == 1


@pytest.mark.parametrize("trouble", [BUSY, CUT])
def test_trouble_that_stays_is_left_to_the_queue(provider: MailServer, trouble: str) -> None:
    provider.answers = [trouble] * 9

    with pytest.raises(EmailDelayed) as delayed:
        deliver(an_email())

    assert provider.tries == 3
    assert provider.taken == []
    assert not isinstance(delayed.value, TerminalError)


def test_a_provider_that_was_busy_is_left_alone_for_a_moment(
    provider: MailServer, settings: LazySettings
) -> None:
    provider.answers = [BUSY] * 9
    with pytest.raises(EmailDelayed):
        deliver(an_email())
    tries = provider.tries

    with pytest.raises(EmailDelayed, match="busy a moment ago") as delayed:
        deliver(an_email())

    assert provider.tries == tries
    assert 0 < delayed.value.at_least <= 1
    assert delayed.value.spacing == 1 / settings.SQS_POLICY.concurrency  # no refused try


def test_a_permanent_refusal_is_terminal_and_not_tried_again(provider: MailServer) -> None:
    provider.answers = [NO_SUCH_BUYER]

    with pytest.raises(EmailRefused, match=r"^SMTP 550$") as refused:
        deliver(an_email())

    assert isinstance(refused.value, TerminalError)
    assert provider.tries == 1


def test_a_provider_that_is_away_is_tried_again(
    provider: MailServer, settings: LazySettings
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        settings.EMAIL_PORT = free.getsockname()[1]  # bound, and nobody listens

        with pytest.raises(EmailDelayed, match=r"^ConnectionRefusedError$"):
            deliver(an_email())


def test_a_provider_that_never_answers_is_given_up(settings: LazySettings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_RETRY_WAIT_SECONDS = (0.001, 0.002)
    settings.EMAIL_TIMEOUT = 0.05
    with socket.create_server(("127.0.0.1", 0)) as mute:
        settings.EMAIL_HOST, settings.EMAIL_PORT = mute.getsockname()

        with pytest.raises(EmailDelayed, match=r"^the connection broke off$"):
            deliver(an_email())


def test_the_number_of_tries_and_the_waits_are_the_settings(
    provider: MailServer, settings: LazySettings
) -> None:
    settings.EMAIL_TRIES = 2
    settings.EMAIL_RETRY_WAIT_SECONDS = (0.1, 0.2)
    provider.answers = [BUSY] * 9
    started = time.monotonic()

    with pytest.raises(EmailDelayed):
        deliver(an_email())

    assert provider.tries == 2
    assert time.monotonic() - started >= 0.1


@pytest.mark.parametrize("answers", [[BUSY], [BUSY] * 3, [NO_SUCH_BUYER]])
def test_no_address_is_in_the_logs_or_the_error(
    provider: MailServer,
    answers: list[str],
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    provider.answers = answers

    try:
        deliver(an_email())
    except (EmailDelayed, EmailRefused) as error:
        logging.getLogger("test").error("failed", exc_info=error)

    printed = capsys.readouterr()
    for text in (caplog.text, printed.out, printed.err):
        assert BUYER not in text
