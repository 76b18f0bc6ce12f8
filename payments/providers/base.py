"""The one normal form of what a gateway reports, and what each gateway must be able to do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from django.conf import settings

from payments.exceptions import GatewayUnavailable, NotCancellable, NotRefundable
from payments.status import PaymentStatus
from skincare.events.schema import is_storable

if TYPE_CHECKING:
    from payments.models import Payment

#: The only currency of the shop.
CURRENCY: Final = "IDR"

_MAX_ID: Final = 128  # characters, as Payment.session_id
_MAX_URL: Final = 2048  # characters, as Payment.page_url
#: The largest amount that is believed: a quadrillion rupiah.
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
    """What a gateway reports about one transaction, in the words of all gateways.

    - `identity` is the same for every repeat of this notification, and different for every other.
    - `transaction_id` is the gateway's; `other_ids` are further ids of just this transaction.
    - `order_reference` is our order id as the gateway got it; empty where it does not say it.
    - `amount` is what the transaction is worth, in rupiah as the gateway says it (not yet known to
      be whole); None where it does not say it.
    - `status` is None only where `review_reason` says that the gateway's word for it is unknown.
    - `review_reason` is why a person must decide, whatever the status says; empty where nothing is
      odd.
    - `occurred_at` is the gateway's time; where it says none (`is_timed` is False), when it came.
    - `expires_at` is until when the buyer can pay, where the gateway says it.
    - `came_in_at` is when the money came in, also where it was reversed since; None where the
      gateway does not say it.
    - `is_dispute` says that a dispute is about money that came in: it opens no payment. Without a
      status no money has moved yet.
    - `is_answer` says that the gateway was asked: it is proven by more than its sender.
    - `is_matched_by_hand` says that a person named the order.
    - `is_test` says that it is the test of the gateway's dashboard.
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
    is_timed: bool = True
    expires_at: datetime | None = None
    came_in_at: datetime | None = None
    is_dispute: bool = False
    is_answer: bool = False
    is_matched_by_hand: bool = False
    is_test: bool = False
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Line:
    """One product of what is paid for; `price_rupiah` is of one piece."""

    sku: str
    name: str
    quantity: int
    price_rupiah: int


@dataclass(frozen=True)
class Purchase:
    """What a gateway gets to know of an order when a payment page is opened.

    - `return_url` is where the buyer goes afterwards.
    - `starts_at` and `minutes` say until when the buyer can pay.
    - `way` limits the page to one way to pay (of `payments.windows.WAYS`), "" for all.
    """

    order_number: str
    lines: tuple[Line, ...]
    email: str
    return_url: str
    starts_at: datetime
    minutes: int
    way: str = ""


@dataclass(frozen=True)
class Page:
    """A payment page at a gateway. `expires_at` is the gateway's word, None where it says none."""

    session_id: str
    url: str
    expires_at: datetime | None = None


def page_of(provider: str, id_: object, url: object, *, until: datetime | None = None) -> Page:
    """Return the page that an answer names. Raises `GatewayUnavailable` where it names none that
    can be kept, and that a browser can open.
    """
    if not isinstance(id_, str) or not isinstance(url, str):
        raise GatewayUnavailable(provider, "the answer has no page in it")
    if not 0 < len(id_) <= _MAX_ID or len(url) > _MAX_URL:
        raise GatewayUnavailable(provider, "the answer has a page of an odd length in it")
    if not is_storable(id_ + url) or not url.startswith(("https://", "http://")):
        raise GatewayUnavailable(provider, "the answer has a page with an odd address in it")
    return Page(session_id=id_, url=url, expires_at=until)


@dataclass(frozen=True)
class RefundState:
    """What became of a refund that we asked for.

    `key` is the gateway's identity of it, as its notifications name it.
    """

    key: str
    status: Literal["pending", "succeeded", "failed"]
    amount: Decimal
    reason: str = ""


@dataclass(frozen=True)
class Secret:
    """A secret of a provider: the setting that holds it (and the environment variable, which have
    one name), and where the operator finds its value.

    Where it proves the sender of notifications, the setting `<name>_PREVIOUS` holds the value
    before, which stays valid during a rotation.
    """

    setting: str
    source: str
    proves_sender: bool = True

    def in_use(self) -> list[str]:
        """Return the values that prove a sender now: the present one, and the one before."""
        names = (self.setting, f"{self.setting}_PREVIOUS")
        return [value for name in names if (value := getattr(settings, name))]


class Provider:
    """A way to be paid. A new one is a module here and a line in `payments.providers`.

    - `name` is what checkout, settings, payments and the webhook's address call it.
    - `secrets` are its settings that must not be empty where checkout offers it.
    - `in_production` says whether it may be offered there.
    - `dispute_endings` are the events of notifications that say that a dispute has ended.
    """

    name: ClassVar[str]
    secrets: ClassVar[tuple[Secret, ...]] = ()
    in_production: ClassVar[bool] = True
    dispute_endings: ClassVar[Sequence[str]] = ()

    def settle_at_once(self, payment: "Payment") -> "GatewayNotification | None":
        """Return the settlement of a payment that needs no gateway; None where the buyer has to
        pay first.
        """
        return None

    def create(self, payment: "Payment", purchase: Purchase, *, again: bool = False) -> Page | None:
        """Open the payment page of `payment`; None where none is needed.

        again: an earlier call may have been done without our hearing of it. Raises
        `GatewayUnavailable`, `ReferenceInUse` and `GatewayRefused`.
        """
        return None

    def status(
        self,
        payment: "Payment",
        *,
        with_refunds: bool = False,
        request_id: str = "",
        dispute_ids: Sequence[str] = (),
    ) -> "GatewayNotification | None":
        """Return the payment's state in the gateway's own word.

        None where the gateway knows no transaction of it, which before the buyer has picked a way
        to pay means nothing. with_refunds: look for them too, where that takes another call.
        request_id: what else the gateway has called it, where notifications said so; dispute_ids:
        the disputes of which they said that they had ended. Raises `GatewayUnavailable`,
        `CannotBeAsked` and `GatewayRefused`.
        """
        return self.settle_at_once(payment)

    def newest(self, payment: "Payment") -> "GatewayNotification | None":
        """Return the newest transaction under the payment's reference, in the gateway's own word.

        A buyer whose card was declined tries again under the same reference: that is another
        transaction, and so another payment. Raises what `status` raises.
        """
        return None

    def cancel(self, payment: "Payment") -> None:
        """Let nobody pay this any more. Ask for the status then: only that proves it.

        Raises `GatewayUnavailable`, `NotCancellable` and `GatewayRefused`.
        """
        raise NotCancellable(self.name, "it settles at once")

    def refund(
        self, payment: "Payment", *, key: str, amount_rupiah: int, reason: str
    ) -> RefundState:
        """Give `amount_rupiah` back. The same `key` again is the same refund.

        Raises `GatewayUnavailable`, `NotRefundable` and `GatewayRefused`.
        """
        raise NotRefundable(self.name, "no money came in through a gateway")

    def find_refund(self, payment: "Payment", *, key: str) -> RefundState | None:
        """Return what became of the refund with our `key`; None where the gateway knows none.

        Raises `GatewayUnavailable` and `GatewayRefused`.
        """
        return None


class Gateway(Provider):
    """A provider that calls our webhook at /v1/webhooks/<name>.

    - `webhook_summary`, `webhook_parameters` and `webhook_body`, a JSON Schema of what the proof
      needs, describe the route in the OpenAPI document.
    - `personal` are the keys that are never stored: secrets, card and customer data.
    """

    webhook_summary: ClassVar[str]
    webhook_parameters: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    webhook_body: ClassVar[Mapping[str, Any]] = {"type": "object"}
    personal: ClassVar[frozenset[str]] = frozenset()

    def verify(self, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """Return the JSON object in `body` once it is proven to be the gateway's.

        `headers` have lower-case names. Raises `InvalidSignature`, `Unreadable` where the sender is
        proven and what it sent cannot be read, and `Malformed` where it is not JSON.
        """
        raise NotImplementedError

    def parse(self, document: dict[str, Any]) -> GatewayNotification | None:
        """Return the normal form of a verified document.

        None where it says nothing of a payment (another product's event). Raises `Malformed`, and
        the document waits for a person.
        """
        raise NotImplementedError


def whole_rupiah(amount: Decimal) -> int | None:
    """Return the amount as an integer, or None where it has a part of a rupiah."""
    return int(amount) if amount == amount.to_integral_value() else None
