"""The shop's emails: what is said, in the buyer's language.

Each may be sent again for the same event: it then carries the same Message-ID, and a mail program
shows it once. A provider that gives each email a Message-ID of its own (Amazon SES does) leaves
X-Shop-Message-ID, which holds ours:
https://docs.aws.amazon.com/ses/latest/dg/header-fields.html
`order` is the order, where the caller has read it. `held` is the claim by which the email is sent:
each raises `LostClaim`, and sends nothing, where another worker has taken the event over.
"""

from collections.abc import Callable
from email.utils import parseaddr
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from orders import payment_methods
from orders.delivery import deliver
from orders.email_addresses import MAILBOX, mailbox
from orders.models import Order
from orders.money import rupiah
from orders.order_numbers import JAKARTA
from orders.pictures import picture_url
from orders.sentences import Language, in_language
from orders.status import OrderStatus
from skincare.events.claim import HOLDS, Claim
from skincare.events.schema import new_event_id
from skincare.events.statements import prepared_cursor

log = structlog.get_logger(__name__)

_SUBJECTS: dict[str, Callable[[], str]] = {
    "order_confirmation": lambda: _("Pesanan %(number)s kami terima"),
    "receipt": lambda: _("Pembayaran pesanan %(number)s kami terima"),
    "payment_failed": lambda: _("Pembayaran pesanan %(number)s tidak berhasil"),
    "order_expired": lambda: _("Pesanan %(number)s sudah berakhir"),
    "refund": lambda: _("Pengembalian dana pesanan %(number)s"),
}


def send_order_confirmation(
    *, order_id: UUID | str, event_id: str, order: Order | None = None, held: Claim | None = None
) -> None:
    """Tell the buyer that the order is taken, and until when it waits for its payment."""
    _send("order_confirmation", order or _read(order_id), event_id, held)


def send_receipt(
    *, order_id: UUID | str, event_id: str, order: Order | None = None, held: Claim | None = None
) -> None:
    """Tell the buyer that the payment has arrived."""
    _send("receipt", order or _read(order_id), event_id, held)


def send_payment_failed(
    *, order_id: UUID | str, event_id: str, order: Order | None = None, held: Claim | None = None
) -> None:
    """Say that this attempt failed or was reversed, and until when the buyer can try again."""
    _send("payment_failed", order or _read(order_id), event_id, held)


def send_order_expired(
    *, order_id: UUID | str, event_id: str, order: Order | None = None, held: Claim | None = None
) -> None:
    """Say goodbye: nobody paid in time, and the order is over."""
    _send("order_expired", order or _read(order_id), event_id, held)


def send_refund(
    *,
    order_id: UUID | str,
    event_id: str,
    amount_rupiah: int,
    order: Order | None = None,
    held: Claim | None = None,
) -> None:
    """Tell the buyer that `amount_rupiah` goes back, and how much that makes in all."""
    _send("refund", order or _read(order_id), event_id, held, amount=rupiah(amount_rupiah))


def message_id(*, kind: str, event_id: str) -> str:
    """Return the Message-ID of the email of this kind for an event; always the same one."""
    domain = _sender(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2]
    # An event id may hold characters that a Message-ID may not (RFC 5322, 3.6.4).
    return f"<{new_event_id('email', event_id)}.{kind}@{domain}>"


def compose(kind: str, order: Order, *, event_id: str, **context: Any) -> EmailMultiAlternatives:
    """Return the email of this kind for `order`, as text and HTML, ready to be sent."""
    id_ = message_id(kind=kind, event_id=event_id)
    with translation.override(order.language), timezone.override(JAKARTA):
        context |= _order_context(order)
        email = EmailMultiAlternatives(
            subject=_SUBJECTS[kind]() % {"number": order.number},
            body=render_to_string(f"orders/email/{kind}.txt", context),
            to=[order.email],
            headers={
                "Message-ID": id_,
                "X-Shop-Message-ID": id_,
                "Auto-Submitted": "auto-generated",  # RFC 3834: no out-of-office answers
            },
        )
        email.attach_alternative(
            render_to_string(f"orders/email/{kind}.html", context), "text/html"
        )
    return email


def _read(order_id: UUID | str) -> Order:
    return Order.objects.get(pk=order_id)


def _send(kind: str, order: Order, event_id: str, held: Claim | None, **context: Any) -> None:
    if not _may_send(kind, order, event_id, held):
        log.warning("email_withheld", kind=kind, order_id=str(order.pk), event_id=event_id)
        return
    deliver(compose(kind, order, event_id=event_id, **context))
    log.info("email_sent", kind=kind, order_id=str(order.pk), event_id=event_id)


#: Counts and writes in one statement. An email that is sent again, under its Message-ID, counts
#: once.
_WRITE_SENT: Final = f"""
INSERT INTO orders_sentemail (order_id, kind, event_id, sent_at)
SELECT %(order_id)s, %(kind)s, %(event_id)s::text, clock_timestamp()
WHERE %(most)s > (
    SELECT count(*) FROM orders_sentemail
    WHERE order_id = %(order_id)s AND event_id <> %(event_id)s
      AND sent_at >= clock_timestamp() - interval '1 hour'
) AND (%(fence)s::bigint IS NULL OR {HOLDS})
AND (%(is_wanted)s OR %(most_unpaid)s > (
    SELECT count(*) FROM orders_sentemail s JOIN orders_order o ON o.id = s.order_id
    WHERE {MAILBOX} = %(mailbox)s AND o.paid_at IS NULL AND s.event_id <> %(event_id)s
      AND s.sent_at >= clock_timestamp() - interval '1 day'
))
ON CONFLICT (event_id, kind) DO UPDATE SET sent_at = EXCLUDED.sent_at
"""  # noqa: S608  (constants)


def _may_send(kind: str, order: Order, event_id: str, held: Claim | None) -> bool:
    """Write down that this email is sent, unless the buyer got a handful about the order within the
    last hour, or its address a lot today about orders that nobody paid. Raises `LostClaim`.
    """
    parameters: dict[str, Any] = {
        "order_id": order.pk,
        "kind": kind,
        "event_id": event_id,
        "fence": held and held.fence,
        "most": settings.EMAILS_PER_ORDER_AND_HOUR,
        "mailbox": mailbox(order.email),
        "is_wanted": order.paid_at is not None or not settings.LIMIT_BUYERS,
        "most_unpaid": settings.UNPAID_EMAILS_PER_ADDRESS_AND_DAY,
    }
    with prepared_cursor() as cursor:
        cursor.execute(_WRITE_SENT, parameters)
        is_written = cursor.rowcount == 1
    if not is_written and held is not None:
        held.check()
    return is_written


def _order_context(order: Order) -> dict[str, Any]:
    return {
        "language": order.language,
        "number": order.number,
        "ordered_at": order.created_at,
        "pay_until": order.pay_until,
        "awaits_payment": order.status == OrderStatus.PENDING and order.total_rupiah > 0,
        "is_off": order.status in (OrderStatus.CANCELLED, OrderStatus.EXPIRED),
        "is_held": order.is_held,
        "is_refunded": order.status == OrderStatus.REFUNDED,
        "lines": [
            {
                "name": line.name,
                "quantity": line.quantity,
                "amount": rupiah(line.amount_rupiah),
                "picture": picture_url(line.product.picture, base_url=settings.SHOP_URL),
            }
            for line in order.line_list
        ],
        "order_url": f"{settings.SHOP_URL}/orders/{order.pk}",
        "paid_with": in_language(payment_methods.how_paid(order), _language(order))
        if order.paid_at
        else "",
        "shop": _shop(),
        "total": rupiah(order.total_rupiah),
        "refunded": rupiah(order.refunded_rupiah),
    }


def _language(order: Order) -> Language:
    return "en" if order.language == Order.Language.ENGLISH else "id"


#: Name and address of a sender; the parser is slow.
_sender: Final = lru_cache(maxsize=8)(parseaddr)


def _shop() -> dict[str, str]:
    """Who writes: the sender of all emails, with what the settings say of the shop."""
    name, address = _sender(settings.DEFAULT_FROM_EMAIL)
    return {
        "name": name or address,
        "email": address,
        "address": settings.SHOP_POSTAL_ADDRESS,
        "colour": settings.SHOP_COLOUR,
    }
