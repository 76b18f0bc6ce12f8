"""Which email addresses the shop takes: those that can really be mailed."""

import re
from typing import Final

from django.core.mail import EmailMessage
from email_validator import SPECIAL_USE_DOMAIN_NAMES, EmailNotValidError, validate_email

from orders.exceptions import InvalidEmail
from orders.models import Order
from orders.sentences import Sentence

#: Characters.
LONGEST: Final[int] = Order._meta.get_field("email").max_length or 0

_ATOM: Final = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL: Final = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_NOT_PUBLIC: Final = "|".join(
    "".join(f"[{letter.upper()}{letter}]" for letter in name) for name in SPECIAL_USE_DOMAIN_NAMES
)
#: What `mailable` takes in ASCII, as a pattern of JSON Schema. Whether what follows an xn-- is
#: right, no pattern can tell.
PATTERN: Final = (
    rf"^(?!.{{65,}}@){_ATOM}(\.{_ATOM})*@({_LABEL}\.)+(?!({_NOT_PUBLIC})$)[A-Za-z]{{2,63}}$"
)
#: Nearly all addresses: it writes these as they are, which need not be tried each time.
_PLAIN: Final = re.compile(r"[A-Za-z0-9._+-]+@[A-Za-z0-9.-]+")
#: `mailbox`, of the table `o`, as the index order_mailbox has it.
MAILBOX: Final = r"lower(regexp_replace(o.email, '\+[^@]*@', '@'))"


def mailbox(address: str) -> str:
    """Return what tells one mailbox from another, for counting alone: nearly all providers take
    SARI+shop@example.com for sari@example.com.
    """
    return re.sub(r"\+[^@]*@", "@", address, count=1).lower()


def mailable(address: str) -> str:
    """Return the address in the form that is stored and mailed: ASCII, the domain in IDNA.

    Raises `InvalidEmail` for anything but a dot-atom before the @ and a public domain after it: no
    quoted names, no literals like [127.0.0.1], no localhost, no text that only looks like one.
    Whether the mailbox is there is not asked.
    """
    if len(address) > LONGEST:
        raise InvalidEmail(
            Sentence(
                "must be at most {longest} characters",
                "paling panjang {longest} karakter",
                longest=LONGEST,
            )
        )
    try:
        checked = validate_email(
            address,
            strict=True,
            allow_smtputf8=False,
            allow_quoted_local=False,
            allow_domain_literal=False,
            check_deliverability=False,
        )
        mailed = checked.ascii_email or ""
        # What Python's mail library cannot write is refused now, not by the worker.
        written = mailed if _PLAIN.fullmatch(mailed) else EmailMessage(to=[mailed]).message()["To"]
    except (EmailNotValidError, ValueError, UnicodeError):
        written = mailed = ""
    if not mailed or written != mailed or len(mailed) > LONGEST:
        raise InvalidEmail(Sentence("must be an email address", "harus berupa alamat surel"))
    return mailed
