"""Handing an email to the provider: what is tried again here, by the queue, or never.

Errors of the provider are told by their code only: its own words can hold the buyer's address.
"""

import random
import smtplib
import time
from typing import NoReturn

from django.conf import settings
from django.core.mail import EmailMessage

from orders.exceptions import EmailDelayed, EmailRefused


def deliver(email: EmailMessage) -> None:
    """Hand `email` to the provider; try `settings.EMAIL_TRIES` times where it is busy or away.

    Raises `EmailRefused` for a permanent refusal, `EmailDelayed` after the last try. Anything
    else, such as refused credentials, is raised as it is: the queue tries again later.
    """
    for wait in settings.EMAIL_RETRY_WAIT_SECONDS[: settings.EMAIL_TRIES - 1]:
        try:
            return _hand_over(email)
        except EmailDelayed:
            # Not all at once, where many failed together.
            time.sleep(random.uniform(wait, 1.5 * wait))  # noqa: S311 no secret
    return _hand_over(email)


def _hand_over(email: EmailMessage) -> None:
    try:
        email.send()
    except smtplib.SMTPAuthenticationError:
        raise
    except smtplib.SMTPRecipientsRefused as error:
        _refuse(max(code for code, _ in error.recipients.values()))
    except smtplib.SMTPResponseException as error:
        _refuse(error.smtp_code)
    except smtplib.SMTPServerDisconnected:
        raise EmailDelayed("the connection broke off") from None
    except smtplib.SMTPException:
        raise
    except OSError as error:  # refused, reset, timed out, no such host
        raise EmailDelayed(type(error).__name__) from None


def _refuse(code: int) -> NoReturn:
    # RFC 5321, 4.2.1: 4yz is transient, 5yz is permanent. smtplib gives -1 for no valid answer.
    if 500 <= code < 600:
        raise EmailRefused(f"SMTP {code}") from None
    raise EmailDelayed(f"SMTP {code}") from None
