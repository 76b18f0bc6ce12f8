"""What people type where an id is asked for: an order's number does for all that is the order's."""

import re
from typing import Final
from uuid import UUID

from orders.models import Order

_NUMBER: Final = re.compile(r"SKN-[0-9]{8}-[0-9A-Z]{6}", re.IGNORECASE)


def is_order_number(text: str) -> bool:
    """Whether the text looks like an order's number, in upper or lower case."""
    return bool(_NUMBER.fullmatch(text.strip()))


def order_id_of(text: str) -> str | None:
    """Return the id of the order that is meant by its number or its id; None for no such order.

    An id is taken as it is, known or not: another producer's events may name orders that are not
    ours.
    """
    wanted = text.strip()
    if is_order_number(wanted):
        found = Order.objects.filter(number=wanted.upper()).values_list("pk", flat=True).first()
        return str(found) if found else None
    try:
        return str(UUID(wanted))
    except ValueError:
        return None


def numbers_of(order_ids: set[str]) -> dict[str, str]:
    """Return the numbers of those orders that are ours, by id."""
    ids = set()
    for order_id in order_ids:
        try:
            ids.add(UUID(order_id))
        except ValueError:
            continue
    found = Order.objects.filter(pk__in=ids).values_list("pk", "number")
    return {str(order_id): number for order_id, number in found}
