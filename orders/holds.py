"""Orders that wait for a person: what ends the wait. `orders.lifecycle` begins it."""

from uuid import UUID

import structlog
from django.db import transaction

from orders.exceptions import NotHeld
from orders.locks import lock_order
from orders.models import Order
from skincare.events import audit
from skincare.events.exceptions import ReasonMissing

log = structlog.get_logger(__name__)


def release(*, order_id: UUID | str, reason: str, actor: str) -> Order:
    """End the hold of an order, with an audit entry: it can be shipped.

    Status, stock and payments stay as they are. Raises `OrderNotFound`, `NotHeld` and
    `ReasonMissing`.
    """
    if not reason.strip():
        raise ReasonMissing(ReasonMissing.__doc__)
    with transaction.atomic():
        order = lock_order(order_id)
        if not order.is_held:
            raise NotHeld(order.number)
        held = order.held_reason
        _set_reason(order, "")
        audit.record(
            actor=actor,
            action="released",
            subject=order,
            name=order.number,
            reason=reason,
            was_held_for=held,
        )
    return order


def drop_reason(order: Order, *, about: str) -> None:
    """Take the reasons that start with `about` off a locked order; others keep it held."""
    kept = [line for line in order.held_reason.splitlines() if not line.startswith(about)]
    _set_reason(order, "\n".join(kept))


def _set_reason(order: Order, reason: str) -> None:
    order.held_reason = reason
    order.save(update_fields=["held_reason", "updated_at"])
    log.info("order_hold_changed", order_id=str(order.pk), held=order.is_held)
