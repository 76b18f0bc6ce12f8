"""Handing an email to the provider: what is tried again here, hours later, by the queue, or never.

Of the provider's errors only the code is kept: its own words can hold the buyer's address.
"""

import random
import smtplib
import threading
import time
from dataclasses import dataclass, field
from email.errors import MessageError
from typing import Final, NoReturn

from django.conf import settings
from django.core.mail import EmailMessage

from orders.exceptions import EmailDelayed, EmailRefused


@dataclass
class Pace:
    """How fast this process hands over emails, by what the provider answers.

    Between two tries lies a pause. Each refusal for now doubles it, up to `longest` seconds; each
    email that is taken shortens it, until there is no pause. However many processes there are,
    together they slow down to what the provider takes, and speed up when it takes more.
    """

    first: float = 1.0
    longest: float = 60.0
    _pause: float = 0.0
    _closed_until: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def seconds_left(self, now: float) -> float:
        """Return for how long nothing should be tried; 0 where it may be."""
        return max(self._closed_until - now, 0.0)

    @property
    def is_slowed(self) -> bool:
        """Whether the provider has refused an email lately."""
        return self._pause > 0

    @property
    def pause(self) -> float:
        """Seconds between two tries, at the most."""
        return self._pause

    def taken(self, now: float) -> None:
        """Note that the provider took an email."""
        with self._lock:
            self._pause = self._pause * 0.7 if self._pause > self.first / 10 else 0.0
            self._closed_until = now + self._pause * random.uniform(0.5, 1.0)  # noqa: S311 no secret

    def refused(self, now: float) -> None:
        """Note that the provider took no email for now."""
        with self._lock:
            self._pause = min(max(self._pause * 2, self.first), self.longest)
            self._closed_until = now + self._pause * random.uniform(0.5, 1.0)  # noqa: S311 no secret


#: By the provider's host and port.
_paces: Final[dict[tuple[str, int], Pace]] = {}


def deliver(email: EmailMessage) -> None:
    """Hand `email` to the provider; try `settings.EMAIL_TRIES` times where it is busy or away.

    While the provider was busy a moment ago it is tried once, or not at all for some seconds.
    Raises `EmailRefused` for a permanent refusal, `EmailDelayed` after the last try: the outbox
    sends the event again later. Anything else, such as refused credentials, is raised as it is: the
    queue tries again.
    """
    pace = _pace()
    if left := pace.seconds_left(time.monotonic()):
        # The pause is this process's; about as many others of a worker have one like it.
        spacing = pace.pause / settings.SQS_POLICY.concurrency
        raise EmailDelayed("the provider was busy a moment ago", at_least=left, spacing=spacing)
    waits = settings.EMAIL_RETRY_WAIT_SECONDS[: settings.EMAIL_TRIES - 1]
    try:
        _try(email, waits=() if pace.is_slowed else waits)
    except EmailDelayed:
        pace.refused(time.monotonic())
        raise
    pace.taken(time.monotonic())


def _pace() -> Pace:
    """Return the pace of the provider; one of its own where emails stay on this machine."""
    if settings.EMAIL_BACKEND != "django.core.mail.backends.smtp.EmailBackend":
        return Pace()
    return _paces.setdefault((settings.EMAIL_HOST, settings.EMAIL_PORT), Pace())


def _try(email: EmailMessage, *, waits: tuple[float, ...]) -> None:
    for wait in waits:
        try:
            return _hand_over(email)
        except EmailDelayed:
            # Not all at once, where many failed together.
            time.sleep(random.uniform(wait, 1.5 * wait))  # noqa: S311 no secret
    return _hand_over(email)


def _hand_over(email: EmailMessage) -> None:
    try:
        email.send()
    except smtplib.SMTPAuthenticationError as error:
        if 400 <= error.smtp_code < 500:  # RFC 4954: 454, the provider cannot check it now
            _refuse(error.smtp_code)
        raise
    except smtplib.SMTPRecipientsRefused as error:
        _refuse(max(code for code, _ in error.recipients.values()))
    except smtplib.SMTPResponseException as error:
        _refuse(error.smtp_code)
    except smtplib.SMTPServerDisconnected:
        raise EmailDelayed("the connection broke off") from None
    except smtplib.SMTPNotSupportedError:
        raise EmailRefused("the provider does not take such an address") from None
    except smtplib.SMTPException:
        raise
    except (ValueError, LookupError, MessageError) as error:
        # What Python's mail library cannot write now, it never can. Its words quote the address.
        raise EmailRefused(f"it cannot be written: {type(error).__name__}") from None
    except OSError as error:  # refused, reset, timed out, no such host
        raise EmailDelayed(type(error).__name__) from None


def _refuse(code: int) -> NoReturn:
    # RFC 5321, 4.2.1: 4yz is transient, 5yz is permanent. smtplib gives -1 for no valid answer.
    if 500 <= code < 600:
        raise EmailRefused(f"SMTP {code}") from None
    raise EmailDelayed(f"SMTP {code}") from None
