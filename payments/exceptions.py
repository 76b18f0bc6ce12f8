"""What this app refuses, one class for each thing. `orders.exceptions` has what orders refuse."""

from orders.exceptions import IdempotencyKeyReused
from skincare.events.exceptions import TerminalError


class OrderNotCancellable(Exception):
    """The buyer cannot cancel the order now; the message says why."""


class InvalidSignature(Exception):
    """The notification does not prove that it comes from the gateway."""


class Malformed(Exception):
    """The notification is not what the gateway's documentation says: `field` breaks `rule`."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(field, rule)
        self.field = field
        self.rule = rule

    def __str__(self) -> str:
        return f"{self.field}: {self.rule}"


class UnknownProvider(Exception):
    """No payment provider has this name."""


class GatewayUnavailable(Exception):
    """The gateway gave no answer that can be relied on: what was asked may have been done, or not.

    Worth another try, after `retry_after` seconds where the gateway said so.
    """

    def __init__(self, provider: str, reason: str, *, retry_after: float | None = None) -> None:
        super().__init__(provider, reason)
        self.provider = provider
        self.reason = reason
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.provider}: {self.reason}"


class GatewayRefused(Exception):
    """The gateway understood and refuses: trying again as it is does not help."""

    def __init__(self, provider: str, reason: str) -> None:
        super().__init__(provider, reason)
        self.provider = provider
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.provider}: {self.reason}"


class ReferenceInUse(GatewayRefused):
    """The gateway has a transaction of this reference already: ask for its status."""


class NotCancellable(GatewayRefused):
    """The attempt has ended at the gateway, or is paid: ask for its status."""


class NotRefundable(GatewayRefused):
    """The gateway cannot refund this payment: the money has to be transferred by hand."""


class CannotBeAsked(GatewayRefused):
    """The gateway has no way to ask for the state of this payment."""


class NotJSON(Malformed):
    """The body is not JSON."""


class Unreadable(Malformed):
    """The sender is proven, but `verify` cannot read on: a person's case, and never refused."""


class EventSwallowed(Exception):
    """An event that had to be published has an id that was published before."""


class CannotDecide(Exception):
    """This hold cannot be decided so; the text says why, and what to do."""


class OrderNotPayable(Exception):
    """Nobody can pay this order any more, or need: it is paid, cancelled, expired, or free."""


class PageBeingOpened(Exception):
    """Another request is opening this order's payment page at this moment: try again."""


class AttemptStillOpen(Exception):
    """The payment page before can still be paid on, and the gateway does not end it: try again."""


class UnknownWay(Exception):
    """No payment page can be limited to this: the text lists what it can be."""


class PageKeyReused(IdempotencyKeyReused):
    """This Idempotency-Key was used for another payment page of the order."""


class PaymentNotFound(TerminalError):
    """There is no payment with this id, or it is not of this order."""


class ContradictsPayment(TerminalError):
    """The payment cannot be in the state that the event reports."""


class WrongAmount(TerminalError):
    """The event's amount is not the payment's."""


class NotRequested(Exception):
    """Nobody has asked that this be accepted, or what is held has changed since."""


class AlreadyRequested(Exception):
    """Somebody has asked for it already: another person has to accept."""


class SamePerson(Exception):
    """Who asks for an acceptance cannot accept: it takes two persons."""


class NotUnmatched(Exception):
    """The notification has its outcome already, or there is none with this id."""


class NotUnreadable(Exception):
    """The notification can be read, or was read meanwhile, or there is none with this id."""


class AnotherOrder(Exception):
    """The gateway's transaction belongs to another order."""
