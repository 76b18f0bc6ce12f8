"""What the API takes and gives. Amounts are whole rupiah; times are RFC 3339.

Types are checked here. The limits are only documented here: checkout itself refuses what is out of
range, each with a problem of its own.
"""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.conf import settings
from django.utils import timezone
from ninja import Field, Schema
from pydantic import BeforeValidator, ConfigDict

from orders import payment_methods
from orders.email_addresses import LONGEST, PATTERN
from orders.models import SKU_PATTERN, Category, Product
from orders.pictures import picture_url
from orders.status import OrderStatus


def ecma(pattern: str) -> str:
    """Return a pattern of Python's as JSON Schema writes it (ECMA-262)."""
    return pattern.replace(r"\A", "^").replace(r"\Z", "$")


def _offered(schema: dict[str, Any]) -> None:
    """Add what can be chosen now, which the settings say."""
    schema["enum"] = payment_methods.enabled()


def _whole(value: Any) -> Any:
    """Return 2 for 2.0: both are integers in JSON Schema."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class ItemIn(Schema):
    """One product of the cart."""

    model_config = ConfigDict(extra="forbid")

    sku: Annotated[
        str, Field(examples=["SRM-VITC-30"], json_schema_extra={"pattern": ecma(SKU_PATTERN)})
    ]
    quantity: Annotated[
        int,
        BeforeValidator(_whole),
        Field(
            strict=True,
            examples=[1],
            json_schema_extra={"minimum": 1, "maximum": settings.CHECKOUT_MAX_QUANTITY},
        ),
    ]


class CheckoutIn(Schema):
    """A cart to be ordered, by the buyer of the session or a guest."""

    model_config = ConfigDict(extra="forbid")

    items: Annotated[
        list[ItemIn],
        Field(json_schema_extra={"minItems": 1, "maxItems": settings.CHECKOUT_MAX_LINES}),
    ]
    email: Annotated[
        str,
        Field(
            examples=["sari@example.com"],
            description="a dot-atom (RFC 5322) at a public domain; one of other letters may be "
            "sent in them, or in IDNA (xn--)",
            json_schema_extra={
                "format": "email",
                "maxLength": LONGEST,
                "pattern": PATTERN,
            },
        ),
    ]
    payment_method: Annotated[str, Field(examples=["midtrans"], json_schema_extra=_offered)]
    language: Annotated[Literal["id", "en"], Field(description="of the emails")] = "id"


class CheckoutOut(Schema):
    """The order that checkout made."""

    order_id: UUID
    number: Annotated[str, Field(examples=["SKN-20261111-7F3K2Q"])]
    status: OrderStatus
    payment_method: str
    total_rupiah: int
    currency: Literal["IDR"] = "IDR"


class OrderLineOut(Schema):
    sku: str
    name: str
    quantity: int
    unit_price_rupiah: int
    amount_rupiah: int


class AttemptOut(Schema):
    """One attempt to pay. `redirect_url` leads to its payment page while that can be paid on."""

    payment_id: Annotated[UUID, Field(validation_alias="id")]
    provider: str
    status: str
    redirect_url: str
    expires_at: datetime | None
    created_at: datetime

    @staticmethod
    def resolve_redirect_url(attempt: Any) -> str:
        is_over = attempt.expires_at is not None and attempt.expires_at <= timezone.now()
        return "" if is_over or attempt.status not in ("pending", "denied") else attempt.page_url


class OrderOut(Schema):
    """An order as anybody may see it who knows its id: without the buyer's address."""

    order_id: Annotated[UUID, Field(validation_alias="id")]
    number: str
    status: OrderStatus
    is_held: Annotated[bool, Field(description="whether a person looks at it before it is sent")]
    payment_method: str
    total_rupiah: int
    refunded_rupiah: int
    currency: Literal["IDR"] = "IDR"
    lines: list[OrderLineOut]
    payments: Annotated[list[AttemptOut], Field(description="attempts to pay it, newest first")]
    pay_until: Annotated[datetime | None, Field(description="while it waits for its payment")]
    created_at: datetime
    paid_at: datetime | None
    shipped_at: datetime | None

    @staticmethod
    def resolve_payments(order: Any) -> list[Any]:
        return list(order.payments.all())

    @staticmethod
    def resolve_pay_until(order: Any) -> datetime | None:
        return order.pay_until if order.status == OrderStatus.PENDING else None


class ProductOut(Schema):
    sku: str
    name: str
    description: str
    category: Category
    picture_url: Annotated[str | None, Field(description="of a PNG or JPEG, 240 pixels or more")]
    price_rupiah: int
    currency: Literal["IDR"] = "IDR"
    available: Annotated[int, Field(description="pieces that can be bought now")]

    @staticmethod
    def resolve_picture_url(product: Product, context: dict[str, Any]) -> str | None:
        return picture_url(product.picture, base_url=context["request"].build_absolute_uri("/"))


class ProductsOut(Schema):
    """One page of the catalogue."""

    items: list[ProductOut]
    total: Annotated[int, Field(description="products that match, on all pages")]
    limit: int
    offset: int


class CategoryOut(Schema):
    """A category, and how many of its products are shown."""

    name: Category
    label: Annotated[str, Field(description="what buyers read")]
    products: int


class CategoriesOut(Schema):
    items: list[CategoryOut]


class PaymentMethodOut(Schema):
    """What `payment_method` of a checkout may be."""

    name: str
    label: Annotated[str, Field(description="what buyers read, in the language asked for")]


class PaymentMethodsOut(Schema):
    items: list[PaymentMethodOut]


class TextsOut(Schema):
    """One text in both languages."""

    en: str
    id: str


class ProblemTypeOut(Schema):
    """A kind of problem. Its `type` is "urn:problem-type:skincare:" and the name."""

    name: str
    status: int
    title: TextsOut
    remedy: Annotated[TextsOut, Field(description="what the client does then")]


class ProblemTypesOut(Schema):
    items: list[ProblemTypeOut]


class FieldErrorOut(Schema):
    field: Annotated[str, Field(examples=["items[0].quantity"])]
    rule: str


class ProblemOut(Schema):
    """A problem document (RFC 9457), in English, or Indonesian where Accept-Language says so."""

    type: Annotated[str, Field(description="stable: the kinds are at GET /v1/problems")]
    title: str
    status: int
    detail: str = ""
    errors: list[FieldErrorOut] = []
