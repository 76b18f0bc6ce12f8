"""The ways to pay that checkout offers. The app that takes the money registers its own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from orders.exceptions import DuplicateMethod, UnknownMethod
from orders.models import Order

#: What an order of 0 rupiah is paid with; a buyer cannot choose it.
FREE: Final = "free"


@dataclass(frozen=True)
class PaymentMethod:
    """One way to pay.

    `open` is called inside checkout's transaction with the new order, and must only write to the
    database: what it does is undone when checkout fails. `label` is what a buyer reads.
    `how_paid` says with what an order was paid, empty where that is not known.
    """

    name: str
    open: Callable[[Order], None]
    label: str = ""
    how_paid: Callable[[Order], str] = lambda _: ""


_methods: dict[str, PaymentMethod] = {}


def register(method: PaymentMethod) -> None:
    """Offer `method` at checkout. Raises `DuplicateMethod` where its name is taken."""
    if method.name in _methods:
        raise DuplicateMethod(method.name)
    _methods[method.name] = method


def enabled() -> list[str]:
    """Return the names that a buyer can choose, in alphabetical order."""
    return sorted(_methods.keys() - {FREE})


def get(name: str) -> PaymentMethod:
    """Return the method. Raises `UnknownMethod`."""
    try:
        return _methods[name]
    except KeyError:
        raise UnknownMethod(name) from None


def how_paid(order: Order) -> str:
    """Return with what the order was paid, such as "QRIS"; empty where that is not known."""
    method = _methods.get(order.payment_method)
    return method.how_paid(order) if method else ""
