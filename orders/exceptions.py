"""What the shop refuses, one class for each thing.

The docstring of a checkout refusal is the title that its buyer reads.
"""

from collections.abc import Iterable
from typing import ClassVar

from orders.sentences import Sentence
from skincare.events.exceptions import NotificationDelayed, TerminalError


class OrderNotFound(TerminalError):
    """There is no order with this id or number.

    An event is committed together with its order, so for an event this cannot heal by itself.
    """


class NotHeld(Exception):
    """What should be decided does not wait for a person."""


class TransitionRefused(Exception):
    """An order cannot move from its state to the wanted one."""

    def __init__(self, current: str, wanted: str) -> None:
        super().__init__(f"an order that is {current} cannot become {wanted}")
        self.current = current
        self.wanted = wanted


class CannotBeShipped(Exception):
    """The order is not paid in full, waits for a person, or is shipped already."""


class NotShipped(Exception):
    """What was not shipped, or is back already, cannot come back."""


class ProductNotFound(Exception):
    """There is no product with this SKU."""


class AlreadyReceived(Exception):
    """This delivery was booked before."""


class InvalidDelivery(Exception):
    """A delivery has a number of its own and at least one piece."""


class UnknownMethod(Exception):
    """No payment method of this name is registered."""


class DuplicateMethod(Exception):
    """Two payment methods want the same name."""


class EmailDelayed(NotificationDelayed):
    """The provider cannot take the email now: worth another try."""


class EmailRefused(TerminalError):
    """The provider will never take this email: a person must look."""


class CheckoutRefused(Exception):
    """Checkout cannot take this order."""

    field: ClassVar[str] = ""

    def __init__(self, rule: str, *, field: str | None = None) -> None:
        super().__init__(rule)
        self.rule = rule
        self.where = self.field if field is None else field

    def __str__(self) -> str:
        return str(self.detail)

    @property
    def detail(self) -> str:
        """What is wrong this time: the field and the rule that it breaks."""
        return Sentence("{field}: {rule}", "{field}: {rule}", field=self.where, rule=self.rule)


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


class TooManyUnpaid(CheckoutRefused):
    """Too much is set aside and not paid."""

    field = "items"


class UnknownPaymentMethod(CheckoutRefused):
    """The payment method is not offered."""

    field = "payment_method"

    def __init__(self, offered: Iterable[str]) -> None:
        names = ", ".join(offered)
        super().__init__(
            Sentence("must be one of: {names}", "harus salah satu dari: {names}", names=names)
        )
