"""The one normal form of what a gateway tells, and what each gateway must be able to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from payments.status import PaymentStatus

if TYPE_CHECKING:
    from payments.models import Payment

#: The only currency of the shop.
CURRENCY: Final = "IDR"

#: The largest amount that is taken for an amount at all: a quadrillion rupiah.
MAX_AMOUNT: Final = Decimal(10) ** 15


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
    - `status` is None only where `review_reason` says that the gateway's word for it is unknown.
    - `review_reason` is why a person must decide, whatever the status says; empty where nothing is
      odd.
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
    review_reason: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Secret:
    """A secret of a provider: the setting that holds it (and the environment variable, which have
    one name), and where the operator finds its value.

    The setting `<name>_PREVIOUS` holds the value before, which stays valid during a rotation.
    """

    setting: str
    source: str


class Provider:
    """A way to be paid. A new one is a module here and a line in `payments.providers`.

    - `name` is what checkout, settings, payments and the webhook's address call it.
    - `secrets` are its settings that must not be empty where checkout offers it.
    - `in_production` says whether it may be offered there.
    """

    name: ClassVar[str]
    secrets: ClassVar[tuple[Secret, ...]] = ()
    in_production: ClassVar[bool] = True

    def settle_at_once(self, payment: "Payment") -> "GatewayNotification | None":
        """Return the settlement of a payment that needs no gateway; None where the buyer has to
        pay first.
        """
        return None


class Gateway(Provider):
    """A provider that calls our webhook at /v1/webhooks/<name>.

    - `webhook_summary` and `webhook_parameters` describe the route in the OpenAPI document.
    """

    webhook_summary: ClassVar[str]
    webhook_parameters: ClassVar[tuple[Mapping[str, Any], ...]] = ()

    def verify(self, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """Return the JSON object in `body` once it is proven to be the gateway's.

        `headers` have lower-case names. Raises `InvalidSignature`, and `Malformed` where it cannot
        be read.
        """
        raise NotImplementedError

    def parse(self, document: dict[str, Any]) -> GatewayNotification | None:
        """Return the normal form of a verified document.

        None where it says nothing of a payment (another product's event). Raises `Malformed`.
        """
        raise NotImplementedError


def whole_rupiah(amount: Decimal) -> int | None:
    """Return the amount as an integer, or None where it has a part of a rupiah."""
    return int(amount) if amount == amount.to_integral_value() else None
