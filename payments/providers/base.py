"""The one normal form of what a gateway tells, and what each gateway must be able to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal, Protocol

from payments.status import PaymentStatus

#: The only currency of the shop.
CURRENCY: Final = "IDR"

#: The largest amount that is taken for an amount at all: a quadrillion rupiah.
MAX_AMOUNT: Final = Decimal(10) ** 15


class Forged(Exception):
    """The notification does not prove that it comes from the gateway."""


class Malformed(Exception):
    """The notification is not what the gateway's documentation says: `field` breaks `rule`."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(field, rule)
        self.field = field
        self.rule = rule

    def __str__(self) -> str:
        return f"{self.field}: {self.rule}"


@dataclass(frozen=True)
class GatewayRefund:
    """Money that went back to the buyer.

    `key` is the gateway's identity of this refund, `amount` is in rupiah as the gateway says it,
    or None for "all that is left".
    """

    key: str
    amount: Decimal | None
    kind: Literal["refund", "chargeback"]
    refunded_at: datetime


@dataclass(frozen=True)
class GatewayNotification:
    """What a gateway tells of one transaction, in the words of all gateways.

    - `identity` is the same for every repeat of this notification, and different for every other.
    - `transaction_id` is the gateway's; `other_ids` are further ids of just this transaction.
    - `order_reference` is our order id as the gateway got it; empty where it does not say it.
    - `amount` is what the transaction is worth, in rupiah as the gateway says it (not yet known to
      be whole); None where it does not say it.
    - `status` is None only where `doubt` says that the gateway's word for it is unknown.
    - `doubt` is why a person must decide, whatever the status says; empty where nothing is odd.
    - `payload` holds the fields that are kept: never a secret, card data or customer data.
    """

    provider: str
    identity: str
    transaction_id: str
    order_reference: str
    status: PaymentStatus | None
    amount: Decimal | None
    currency: str
    occurred_at: datetime
    channel: str = ""
    other_ids: tuple[str, ...] = ()
    refunds: tuple[GatewayRefund, ...] = ()
    doubt: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)


class Provider(Protocol):
    """A payment gateway that calls our webhook."""

    name: str

    def verify(self, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """Return the JSON object in `body` once it is proven to be the gateway's.

        Raises `Forged`, and `Malformed` where it cannot be read.
        """
        ...

    def parse(self, document: dict[str, Any]) -> GatewayNotification | None:
        """Return the normal form of a verified document.

        None where it tells nothing of a payment (another product's event). Raises `Malformed`.
        """
        ...


def whole_rupiah(amount: Decimal) -> int | None:
    """Return the amount as an integer, or None where it has a part of a rupiah."""
    return int(amount) if amount == amount.to_integral_value() else None
