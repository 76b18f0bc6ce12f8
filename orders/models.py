"""The shop's tables. All money is whole rupiah; the currency is always IDR."""

import uuid
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import F, Func, Q, Value
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.functional import cached_property

from orders.append_only import AppendOnlyModel
from orders.moments import moments_within_reason
from orders.status import OrderStatus

SKU_PATTERN = r"\A[A-Z0-9][A-Z0-9-]{1,39}\Z"
GUEST = "guest"
#: Rupiah for a piece; more is a slip of the finger, and an order of it might be more than can be
#: paid.
HIGHEST_PRICE = 1_000_000_000


class Category(models.TextChoices):
    """What a product is for; the label is what buyers read."""

    CLEANSER = "cleanser", "Pembersih"
    TONER = "toner", "Toner dan esens"
    SERUM = "serum", "Serum"
    MOISTURISER = "moisturiser", "Pelembap"
    SUNSCREEN = "sunscreen", "Tabir surya"
    MASK = "mask", "Masker"
    TREATMENT = "treatment", "Perawatan khusus"
    BODY = "body", "Tubuh dan bibir"
    OTHER = "other", "Lainnya"


class Product(models.Model):
    """Something for sale, with its numbers on the shelf and its entry in the search.

    `stock` is on hand, `reserved` is the part of it that unpaid orders hold. Only
    `orders.stock` changes the two, together with a StockMovement.
    """

    sku = models.CharField(max_length=40, unique=True, validators=[RegexValidator(SKU_PATTERN)])
    name = models.CharField(max_length=120)
    description = models.TextField(blank=True)
    category = models.CharField(
        max_length=20, choices=Category, default=Category.OTHER, db_default=Category.OTHER
    )
    picture = models.CharField(
        max_length=300,
        blank=True,
        db_default="",
        help_text="an https address, or the name of a static file of the shop",
    )
    price_rupiah = models.BigIntegerField(
        validators=[MinValueValidator(0), MaxValueValidator(HIGHEST_PRICE)]
    )
    stock = models.IntegerField(default=0, editable=False)
    reserved = models.IntegerField(default=0, editable=False)
    is_active = models.BooleanField(default=True, help_text="shown in the search and for sale")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    # The search entry. It is rebuilt as a whole by `orders.search.refresh_search`.
    search_vector = SearchVectorField(null=True, editable=False)
    search_in_stock = models.BooleanField(default=False, editable=False)
    search_refreshed_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering = ["name"]
        permissions = [("receive_goods", "Can book goods that came in")]
        indexes = [GinIndex(fields=["search_vector"], name="product_search")]
        constraints = [
            models.CheckConstraint(name="product_price_sign", condition=Q(price_rupiah__gte=0)),
            models.CheckConstraint(name="product_stock_sign", condition=Q(stock__gte=0)),
            models.CheckConstraint(name="product_reserved_sign", condition=Q(reserved__gte=0)),
            models.CheckConstraint(
                name="product_reserved_in_stock", condition=Q(reserved__lte=F("stock"))
            ),
        ]

    def __str__(self) -> str:
        return f"{self.sku} {self.name}"

    @property
    def available(self) -> int:
        """How many can still be bought."""
        return self.stock - self.reserved


class Order(models.Model):
    """What one buyer bought. Its status moves only as `orders.status.TRANSITIONS` says."""

    class Language(models.TextChoices):
        INDONESIAN = "id", "Bahasa Indonesia"
        ENGLISH = "en", "English"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    number = models.CharField(max_length=32, unique=True)
    email = models.EmailField(max_length=254)
    user_id = models.CharField(max_length=128, default=GUEST)
    network_hash = models.CharField(
        max_length=32,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="of the address that ordered, as only this shop can compute it",
    )
    payment_method = models.CharField(max_length=32)
    language = models.CharField(
        max_length=2, choices=Language, default=Language.INDONESIAN, help_text="of the emails"
    )
    status = models.CharField(max_length=16, choices=OrderStatus, default=OrderStatus.PENDING)
    total_rupiah = models.BigIntegerField()
    refunded_rupiah = models.BigIntegerField(default=0)
    held_reason = models.TextField(
        blank=True, help_text="why a person must look at it: its open holds, a line for each"
    )
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(auto_now=True)
    expires_at = models.DateTimeField(
        null=True, blank=True, help_text="until when it waits for its payment"
    )
    cancelled_at = models.DateTimeField(
        null=True, blank=True, help_text="when the buyer or a person of the shop gave it up"
    )
    paid_at = models.DateTimeField(null=True, blank=True)
    shipped_at = models.DateTimeField(null=True, blank=True)
    tracking_number = models.CharField(max_length=64, blank=True, default="", db_default="")
    returned_at = models.DateTimeField(
        null=True, blank=True, help_text="when goods that were shipped came back"
    )

    class Meta:
        ordering = ["-created_at"]
        permissions = [
            ("release_order", "Can end a hold of an order, and cancel it"),
            ("ship_order", "Can ship an order, and take its goods back"),
        ]
        indexes = [
            # The sweep's question; paid orders, nearly all of the table, are not in it.
            models.Index(fields=["created_at"], name="order_unpaid", condition=Q(status="pending")),
            models.Index(
                fields=["expires_at"], name="order_expires", condition=Q(status="pending")
            ),
            models.Index(fields=["user_id", "-created_at"], name="order_user"),
            models.Index(fields=["-created_at"], name="order_newest"),
            models.Index(fields=["email"], name="order_email"),
            models.Index(
                Lower(Func("email", Value(r"\+[^@]*@"), Value("@"), function="regexp_replace")),
                name="order_mailbox",
            ),
            models.Index(
                fields=["network_hash"],
                name="order_unpaid_network",
                condition=Q(status="pending") & ~Q(network_hash=""),
            ),
            models.Index(
                fields=["network_hash"],
                name="order_free_network",
                condition=Q(total_rupiah=0) & ~Q(network_hash=""),
            ),
            models.Index(fields=["status", "-created_at"], name="order_status"),
            models.Index(fields=["-created_at"], name="order_held", condition=~Q(held_reason="")),
        ]
        constraints = [
            models.CheckConstraint(
                name="order_status_known", condition=Q(status__in=OrderStatus.values)
            ),
            models.CheckConstraint(name="order_total_sign", condition=Q(total_rupiah__gte=0)),
            models.CheckConstraint(
                name="order_refunded_within_total",
                condition=Q(refunded_rupiah__gte=0, refunded_rupiah__lte=F("total_rupiah")),
            ),
            *moments_within_reason(
                "order", "expires_at", "cancelled_at", "paid_at", "shipped_at", "returned_at"
            ),
        ]

    def __str__(self) -> str:
        return self.number

    @property
    def status_now(self) -> OrderStatus:
        """The status as its enum; a row from the database carries text."""
        return OrderStatus(self.status)

    @cached_property
    def line_list(self) -> "list[OrderLine]":
        """The lines with their products, read once: lines never change."""
        return list(self.lines.select_related("product"))

    @cached_property
    def payment_list(self) -> "list[Any]":
        """The attempts to pay it, the newest first; those that `payments.locks` has locked."""
        return list(self.payments.all())

    @property
    def is_held(self) -> bool:
        """Whether a person must look at the order before it is shipped."""
        return bool(self.held_reason)

    @property
    def can_be_shipped(self) -> bool:
        """Whether its money is in, all of it and no more, and nothing waits for a person."""
        return self.status == OrderStatus.PAID and not self.is_held and self.shipped_at is None

    @property
    def pay_until(self) -> datetime:
        """Until when the order waits for its payment."""
        # An order of the release before this column has none.
        return self.expires_at or self.created_at + self.longest_wait()

    @staticmethod
    def longest_wait() -> timedelta:
        """How long an order of the release before waits, which says nothing itself."""
        return timedelta(hours=settings.UNPAID_ORDER_EXPIRES_HOURS)


class OrderLine(models.Model):
    """One product of an order, with name and price as they were at checkout."""

    # `order_line_product_once` is its index.
    order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="lines", db_index=False)
    # `order_line_product` is its index.
    product = models.ForeignKey(Product, on_delete=models.PROTECT, related_name="+", db_index=False)
    sku = models.CharField(max_length=40)
    name = models.CharField(max_length=120)
    quantity = models.PositiveIntegerField()
    unit_price_rupiah = models.BigIntegerField()

    class Meta:
        ordering = ["id"]
        indexes = [
            # With the id, so that the lines of a product come in the order of the list.
            models.Index(fields=["product", "id"], name="order_line_product"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["order", "product"], name="order_line_product_once"),
            models.CheckConstraint(name="order_line_quantity_sign", condition=Q(quantity__gt=0)),
            models.CheckConstraint(
                name="order_line_price_sign", condition=Q(unit_price_rupiah__gte=0)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.quantity} x {self.sku}"

    @property
    def amount_rupiah(self) -> int:
        return self.quantity * self.unit_price_rupiah


#: What nearly all movements do.
UNLISTED_KIND = ("reserve", "sell")


class StockMovement(AppendOnlyModel):
    """One change of a product's numbers. A product's movements add up to its numbers."""

    class Kind(models.TextChoices):
        RECEIVE = "receive", "received"  # goods came in
        RESERVE = "reserve", "reserved"  # checkout
        RELEASE = "release", "released"  # the order was cancelled or expired unpaid
        SELL = "sell", "sold"  # the reservation was paid
        RETAKE = "retake", "taken again"  # paid after its reservation had been released
        RETURN = "return", "returned"  # all money went back before shipping, or the goods came back
        UNSELL = "unsell", "reserved again"  # its money was lost, and it waits for another payment

    event_id = models.CharField(max_length=128)
    # `stock_movement_product` is its index.
    product = models.ForeignKey(
        Product, on_delete=models.PROTECT, related_name="movements", db_index=False
    )
    order = models.ForeignKey(
        Order, on_delete=models.PROTECT, related_name="movements", null=True, blank=True
    )
    kind = models.CharField(max_length=16, choices=Kind)
    stock_delta = models.IntegerField()
    reserved_delta = models.IntegerField()
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["event_id"], name="stock_movement_event"),
            # With the id, so that the newest of a product need not be sorted out of all of them.
            models.Index(fields=["product", "-id"], name="stock_movement_product"),
            # For the list's filter. Nearly all rows reserve or sell: they are found without it,
            # and checkouts and payments do not pay for it.
            models.Index(
                fields=["kind", "-id"],
                name="stock_movement_rare_kind",
                condition=~Q(kind__in=UNLISTED_KIND),
            ),
        ]
        constraints = [
            # An order's stock moves by the difference to what it should hold, so one event may
            # move it as often as there is a difference.
            models.UniqueConstraint(
                fields=["event_id", "product"],
                condition=Q(order__isnull=True),
                name="stock_movement_delivery_once",
            ),
            models.CheckConstraint(
                name="stock_movement_moves", condition=~Q(stock_delta=0, reserved_delta=0)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.stock_delta:+d}/{self.reserved_delta:+d}"


#: Where nearly all transitions lead.
UNLISTED_TO_STATUS = ("paid",)


class OrderTransition(AppendOnlyModel):
    """What one event, sweep or decision changed of an order."""

    order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="transitions")
    event_id = models.CharField(max_length=128)
    from_status = models.CharField(max_length=16, choices=OrderStatus)
    to_status = models.CharField(max_length=16, choices=OrderStatus)
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["event_id"], name="order_transition_event"),
            # For the list's filter. Nearly all rows are payments: they are found without it, and
            # a paid event does not pay for it.
            models.Index(
                fields=["to_status", "-id"],
                name="order_transition_rare",
                condition=~Q(to_status__in=UNLISTED_TO_STATUS),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.from_status} → {self.to_status}"


class SentEmail(models.Model):
    """An email that was on its way to the provider: no order gets more than a handful an hour."""

    # `sent_email_order` is its index.
    order = models.ForeignKey(
        Order, on_delete=models.PROTECT, related_name="emails", db_index=False
    )
    kind = models.CharField(max_length=32)
    event_id = models.CharField(max_length=128)
    sent_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["order", "sent_at"], name="sent_email_order")]
        constraints = [
            models.UniqueConstraint(fields=["event_id", "kind"], name="sent_email_event_once")
        ]

    def __str__(self) -> str:
        return f"{self.kind} for {self.event_id}"


class CheckoutRequest(models.Model):
    """The answer that a buyer's Idempotency-Key got, so that a repeat gets the same one."""

    scope = models.CharField(max_length=128, help_text="the buyer's id, or guest")
    key = models.CharField(max_length=255)
    body_hash = models.CharField(max_length=64, help_text="SHA-256 of what was asked for")
    order = models.OneToOneField(Order, on_delete=models.PROTECT, related_name="checkout_request")
    response = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["-id"]
        constraints = [
            # The key first: people search for it, and its scope is the hash of an address.
            models.UniqueConstraint(fields=["key", "scope"], name="checkout_request_once")
        ]

    def __str__(self) -> str:
        return f"checkout of {self.order_id}"
