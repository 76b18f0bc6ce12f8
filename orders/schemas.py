"""What the API takes and gives. Amounts are whole rupiah; times are RFC 3339."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from ninja import Field, Schema
from pydantic import ConfigDict

from orders.status import OrderStatus


class ItemIn(Schema):
    """One product of the cart. The limits are checkout's, and part of the settings."""

    model_config = ConfigDict(extra="forbid")

    sku: Annotated[str, Field(examples=["SRM-VITC-30"])]
    quantity: Annotated[int, Field(strict=True, examples=[1])]


class CheckoutIn(Schema):
    """A cart to be ordered, by the buyer of the session or a guest."""

    model_config = ConfigDict(extra="forbid")

    items: list[ItemIn]
    email: Annotated[str, Field(examples=["sari@example.com"])]
    payment_method: Annotated[str, Field(examples=["midtrans"])]
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
    created_at: datetime
    paid_at: datetime | None
    shipped_at: datetime | None


class ProductOut(Schema):
    sku: str
    name: str
    description: str
    price_rupiah: int
    currency: Literal["IDR"] = "IDR"
    available: Annotated[int, Field(description="pieces that can be bought now")]


class ProductsOut(Schema):
    """One page of the catalogue."""

    items: list[ProductOut]
    total: Annotated[int, Field(description="products that match, on all pages")]
    limit: int
    offset: int


class FieldErrorOut(Schema):
    field: Annotated[str, Field(examples=["items[0].quantity"])]
    rule: str


class ProblemOut(Schema):
    """A problem document (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str = ""
    errors: list[FieldErrorOut] = []
