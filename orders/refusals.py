"""Why checkout refuses: one class for each reason. The docstring's sentence is the title."""

from collections.abc import Iterable
from typing import ClassVar


class CheckoutRefused(Exception):
    """Checkout cannot take this order."""

    field: ClassVar[str] = ""

    def __init__(self, rule: str, *, field: str | None = None) -> None:
        super().__init__(rule)
        self.rule = rule
        self.where = self.field if field is None else field

    def __str__(self) -> str:
        return f"{self.where}: {self.rule}"


class MissingIdempotencyKey(CheckoutRefused):
    """The Idempotency-Key header is missing."""

    field = "Idempotency-Key"


class InvalidIdempotencyKey(CheckoutRefused):
    """The Idempotency-Key header is malformed."""

    field = "Idempotency-Key"


class IdempotencyKeyReused(CheckoutRefused):
    """This Idempotency-Key was used for another order."""

    field = "Idempotency-Key"


class EmptyCart(CheckoutRefused):
    """The cart is empty."""

    field = "items"


class TooManyLines(CheckoutRefused):
    """The cart has too many lines."""

    field = "items"


class QuantityOutOfRange(CheckoutRefused):
    """A quantity is out of range."""


class DuplicateSku(CheckoutRefused):
    """A product is in the cart twice."""


class UnknownSku(CheckoutRefused):
    """A product is not for sale."""


class NotEnoughStock(CheckoutRefused):
    """There is not enough stock."""


class InvalidEmail(CheckoutRefused):
    """The email address is malformed."""

    field = "email"


class UnknownPaymentMethod(CheckoutRefused):
    """The payment method is not offered."""

    field = "payment_method"

    def __init__(self, offered: Iterable[str]) -> None:
        super().__init__(f"must be one of: {', '.join(offered)}")
