"""What was asked for, what the gateways said, and what went back. All money is whole rupiah."""

import uuid
from typing import Any, Final, NoReturn

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from orders.append_only import AppendOnlyError, AppendOnlyModel
from orders.models import Order
from orders.moments import moments_within_reason
from payments.hold_codes import Decision, HoldCode
from payments.status import PAID, PaymentStatus


class Payment(models.Model):
    """One attempt to pay an order: at most one transaction of one gateway. An order has several
    where the buyer tried again, or paid twice.

    An attempt is opened with its own `reference`, which the gateway gets as the order's id, and is
    tied to the gateway's transaction by what the gateway first reports of it. Where the gateway
    lets the buyer try again under one reference (Midtrans, after a denied card), each further
    transaction is a payment with the same reference. What changes a payment is in `payments.apply`:
    a report of its gateway, an event of another producer, or the decision of two persons.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="payments")
    provider = models.CharField(max_length=32)
    reference = models.CharField(
        max_length=50,  # Midtrans takes no more
        blank=True,
        default="",
        db_default="",
        help_text="our name for the attempt at the gateway: the order's id and the number",
    )
    session_id = models.CharField(
        max_length=128,
        blank=True,
        default="",
        db_default="",
        help_text="of the payment page: Midtrans's token, Xendit's invoice",
    )
    page_url = models.CharField(
        max_length=2048, blank=True, default="", db_default="", help_text="where the buyer pays"
    )
    expires_at = models.DateTimeField(
        null=True, blank=True, help_text="until when the gateway lets the buyer pay"
    )
    way = models.CharField(
        max_length=16, blank=True, default="", db_default="", help_text="the page is for, or all"
    )
    page_tries = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="how often its page was asked for"
    )
    page_leased_until = models.DateTimeField(
        null=True, blank=True, help_text="until when a request may be opening the page"
    )
    asked_at = models.DateTimeField(
        null=True, blank=True, help_text="when its gateway was last asked for its state"
    )
    next_ask_at = models.DateTimeField(
        null=True, blank=True, help_text="when to ask, where no notification has ended it"
    )
    transaction_id = models.CharField(
        max_length=128, blank=True, help_text="the gateway's; empty until it tells"
    )
    other_ids = ArrayField(
        models.CharField(max_length=128),
        default=list,
        blank=True,
        help_text="what else the gateway calls this transaction, such as the invoice's payment",
    )
    number = models.PositiveSmallIntegerField(
        default=1, db_default=1, help_text="the how manieth attempt of its order it belongs to"
    )
    channel = models.CharField(max_length=64, blank=True, help_text="such as bank_transfer")
    status = models.CharField(max_length=16, choices=PaymentStatus, default=PaymentStatus.PENDING)
    times_paid = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="how often money came in: each time is an event"
    )
    times_failed = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="how often it failed or was reversed"
    )
    amount_rupiah = models.BigIntegerField(help_text="what the order costs")
    refunded_rupiah = models.BigIntegerField(default=0)
    held_reason = models.CharField(
        max_length=255,
        blank=True,
        help_text="why a person must look at it: its open holds, a line for each",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)
    paid_at = models.DateTimeField(
        null=True, blank=True, help_text="by the gateway's clock; stays after a reversal"
    )

    class Meta:
        ordering = ["-created_at"]
        permissions = [
            ("request_acceptance", "Can ask that a held payment be accepted"),
            ("accept_held", "Can accept a held payment that another person asked for"),
            ("dismiss_held", "Can end the hold of a payment without accepting it"),
        ]
        indexes = [
            models.Index(fields=["-created_at"], name="payment_newest"),
            models.Index(fields=["status", "-created_at"], name="payment_status"),
            GinIndex(fields=["other_ids"], name="payment_other_ids"),
            models.Index(fields=["transaction_id"], name="payment_transaction"),
            models.Index(fields=["reference"], name="payment_reference"),
            models.Index(fields=["paid_at"], name="payment_paid_at"),
            models.Index(fields=["-created_at"], name="payment_held", condition=~Q(held_reason="")),
            models.Index(
                fields=["next_ask_at"],
                name="payment_to_ask",
                condition=Q(next_ask_at__isnull=False),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["provider", "transaction_id"],
                condition=~Q(transaction_id=""),
                name="payment_transaction_once",
            ),
            models.UniqueConstraint(
                fields=["order", "provider"],
                condition=Q(transaction_id="", reference=""),
                name="payment_one_without_reference",
            ),
            models.UniqueConstraint(
                fields=["provider", "reference"],
                condition=Q(transaction_id="") & ~Q(reference=""),
                name="payment_attempt_once",
            ),
            models.CheckConstraint(
                name="payment_status_known", condition=Q(status__in=PaymentStatus.values)
            ),
            models.CheckConstraint(name="payment_amount_sign", condition=Q(amount_rupiah__gte=0)),
            models.CheckConstraint(
                name="payment_refunded_within_amount",
                condition=Q(refunded_rupiah__gte=0, refunded_rupiah__lte=F("amount_rupiah")),
            ),
            models.CheckConstraint(
                name="payment_paid_has_time",
                condition=~Q(status__in=sorted(PAID)) | Q(paid_at__isnull=False),
            ),
            *moments_within_reason("payment", "paid_at", "expires_at"),
        ]

    def __str__(self) -> str:
        return f"{self.provider} {self.transaction_id or self.id}"

    @property
    def is_paid(self) -> bool:
        """Whether the buyer's money came in (refunds are counted in `refunded_rupiah`)."""
        return self.status in PAID

    @property
    def kept_rupiah(self) -> int:
        """What of its money is in: nothing before it came, and when all of it went back."""
        return self.amount_rupiah - self.refunded_rupiah if self.is_paid else 0

    @property
    def charged_back_rupiah(self) -> int:
        """What chargebacks took, without what came back."""
        return max(0, self._rupiah_of(PaymentRefund.Kind.CHARGEBACK, PaymentRefund.Kind.REVERSAL))

    @property
    def sent_back_rupiah(self) -> int:
        """What went back through its gateway, refunds and chargebacks, without what came back."""
        kind = PaymentRefund.Kind
        return self._rupiah_of(kind.REFUND, kind.CHARGEBACK, kind.REVERSAL)

    def _rupiah_of(self, *kinds: str) -> int:
        found = self.refunds.filter(kind__in=kinds).aggregate(rupiah=models.Sum("amount_rupiah"))
        return found["rupiah"] or 0

    @property
    def is_held(self) -> bool:
        """Whether a person must look at the payment."""
        return bool(self.held_reason)


class Hold(models.Model):
    """What waits for a person: an order put aside, for one reason.

    Closing one closes only that one. The reasons of an order's open holds are copied to
    `Order.held_reason`, and those of a payment to `Payment.held_reason`, so that lists and filters
    need no join; `payments.holds` writes all three.
    """

    order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="holds")
    payment = models.ForeignKey(
        Payment, on_delete=models.PROTECT, related_name="holds", null=True, blank=True
    )
    notification = models.ForeignKey(
        "PaymentNotification",
        on_delete=models.SET_NULL,
        related_name="+",
        null=True,
        blank=True,
        help_text="what the gateway reported, where that is what is held",
    )
    code = models.CharField(max_length=32, choices=HoldCode)
    reason = models.CharField(max_length=500)
    opened_at = models.DateTimeField(default=timezone.now, editable=False)
    refund_decided_at = models.DateTimeField(
        null=True, blank=True, help_text="when two persons decided that the money goes back"
    )
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="+",
        null=True,
        blank=True,
        help_text="empty where the cause went away by itself",
    )
    closed_how = models.CharField(max_length=16, choices=Decision, blank=True)
    closed_reason = models.TextField(blank=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["opened_at"], name="hold_open", condition=Q(closed_at=None)),
            models.Index(fields=["code", "-id"], name="hold_code"),
            models.Index(fields=["closed_how", "-id"], name="hold_closed_how"),
        ]
        constraints = [
            models.CheckConstraint(name="hold_code_known", condition=Q(code__in=HoldCode.values)),
            models.CheckConstraint(
                name="hold_closed_says_how",
                condition=Q(closed_at__isnull=True, closed_how="")
                | (Q(closed_at__isnull=False) & ~Q(closed_how="")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.code}: {self.reason}"

    @property
    def is_open(self) -> bool:
        """Whether it still waits for a person, or for money that two persons sent back."""
        return self.closed_at is None


class Acceptance(models.Model):
    """One person asks that a hold be decided in a way that moves money; another one accepts.

    It is for one hold. It is closed when somebody accepts, or when the hold ends otherwise.
    """

    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="acceptances")
    hold = models.ForeignKey(
        Hold, on_delete=models.PROTECT, related_name="acceptances", null=True, blank=True
    )
    decision = models.CharField(
        max_length=16, choices=Decision, default=Decision.ACCEPT, db_default="accept"
    )
    held_reason = models.CharField(max_length=255)
    reason = models.TextField(help_text="why it is right to accept it")
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    requested_at = models.DateTimeField(default=timezone.now, editable=False)
    accepted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, blank=True
    )
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["hold"],
                condition=Q(closed_at__isnull=True),
                name="payment_acceptance_one_open_of_hold",
            ),
            models.CheckConstraint(
                name="payment_acceptance_two_persons",
                condition=~Q(accepted_by=F("requested_by")),
            ),
            models.CheckConstraint(
                name="payment_acceptance_accepted_is_closed",
                condition=Q(accepted_by__isnull=True) | Q(closed_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"acceptance of {self.payment_id}"


class AskingPace(models.Model):
    """One row: when the next payment may be asked for, whichever process asks.

    The gateways count the calls of the whole shop, so its relays share one pace.
    """

    ONLY: Final = 1

    id = models.PositiveSmallIntegerField(primary_key=True, default=ONLY)
    next_at = models.DateTimeField(help_text="by the database's clock")

    class Meta:
        constraints = [
            models.CheckConstraint(name="asking_pace_is_one", condition=Q(id=1)),
        ]

    def __str__(self) -> str:
        return f"the next payment is asked for at {self.next_at}"


class PageRequest(models.Model):
    """Which attempt a buyer's Idempotency-Key got, so that a repeat gets the same one."""

    # `page_request_key_once` is its index.
    order = models.ForeignKey(
        Order, on_delete=models.PROTECT, related_name="page_requests", db_index=False
    )
    key = models.CharField(max_length=255)
    body_hash = models.CharField(max_length=64, help_text="SHA-256 of what was asked for")
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["order", "key"], name="page_request_key_once")
        ]

    def __str__(self) -> str:
        return f"page of {self.payment_id}"


class RefundRequest(models.Model):
    """Money that a person wants to give back, another one has to agree to, and the gateway sends.

    `key` is ours: the gateway takes the same key for the same refund, however often it is asked.
    What really went back is in `PaymentRefund`, as the gateway reports it.
    """

    class Status(models.TextChoices):
        REQUESTED = "requested", "waits for another person"
        DECIDED = "decided", "waits for the gateway"  # two persons want it
        SENT = "sent", "the gateway works on it"
        DONE = "done", "done"
        FAILED = "failed", "failed"  # the gateway refused it, or it failed there
        BY_HAND = "by_hand", "has to be transferred by hand"  # the gateway has no refunds for it
        WITHDRAWN = "withdrawn", "withdrawn"

    #: What a person has to go on with.
    FOR_A_PERSON = (Status.REQUESTED, Status.BY_HAND)
    #: At most one for each payment.
    UNDER_WAY = (*FOR_A_PERSON, Status.DECIDED, Status.SENT)

    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="refund_requests")
    key = models.CharField(max_length=64, unique=True)
    amount_rupiah = models.BigIntegerField()
    reason = models.CharField(max_length=255)
    status = models.CharField(max_length=16, choices=Status, default=Status.REQUESTED)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    requested_at = models.DateTimeField(default=timezone.now, editable=False)
    agreed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, blank=True
    )
    agreed_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True, blank=True)
    gateway_key = models.CharField(
        max_length=128, blank=True, help_text="what the gateway calls the refund"
    )
    last_error = models.CharField(max_length=255, blank=True)
    transferred_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="+",
        null=True,
        blank=True,
        help_text="who says that it was transferred by hand",
    )
    transferred_at = models.DateTimeField(null=True, blank=True)
    transfer_note = models.CharField(
        max_length=255, blank=True, default="", db_default="", help_text="how it was transferred"
    )
    transfer_confirmed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, blank=True
    )

    class Meta:
        ordering = ["-id"]
        permissions = [
            ("request_refund", "Can ask that money be given back"),
            ("agree_refund", "Can agree to a refund that another person asked for"),
        ]
        indexes = [
            models.Index(
                fields=["next_try_at"],
                name="refund_request_due",
                condition=Q(next_try_at__isnull=False),
            ),
            models.Index(
                fields=["requested_at"],
                name="refund_request_for_a_person",
                condition=Q(status__in=["requested", "by_hand"]),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["payment"],
                condition=Q(status__in=["requested", "decided", "sent", "by_hand"]),
                name="refund_request_one_under_way",
            ),
            models.CheckConstraint(
                name="refund_request_amount_sign", condition=Q(amount_rupiah__gt=0)
            ),
            models.CheckConstraint(
                name="refund_request_two_persons", condition=~Q(agreed_by=F("requested_by"))
            ),
            models.CheckConstraint(
                name="refund_request_transfer_two_persons",
                condition=~Q(transfer_confirmed_by=F("transferred_by")),
            ),
            models.CheckConstraint(
                name="refund_request_status_known",
                condition=Q(
                    status__in=[
                        "requested",
                        "decided",
                        "sent",
                        "done",
                        "failed",
                        "by_hand",
                        "withdrawn",
                    ]
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"refund of {self.amount_rupiah} of {self.payment_id}"

    @property
    def is_under_way(self) -> bool:
        """Whether its end is still to come."""
        return self.status in self.UNDER_WAY


class PaymentRefund(AppendOnlyModel):
    """Money that went back, once per refund key; a payment's rows add up to `refunded_rupiah`.

    What a chargeback took and the shop got back is a row below 0.
    """

    class Kind(models.TextChoices):
        REFUND = "refund", "refund"  # the shop gave it back
        CHARGEBACK = "chargeback", "chargeback"  # the buyer's bank took it back
        BY_HAND = "by_hand", "sent back by hand"  # outside the gateway, as a person says
        REVERSAL = "reversal", "chargeback reversed"  # what went back is in again: it is below 0

    # `payment_refund_key_once` is its index.
    payment = models.ForeignKey(
        Payment, on_delete=models.PROTECT, related_name="refunds", db_index=False
    )
    key = models.CharField(max_length=128, help_text="the gateway's identity of the refund")
    kind = models.CharField(max_length=16, choices=Kind)
    amount_rupiah = models.BigIntegerField()
    refunded_at = models.DateTimeField(help_text="by the gateway's clock")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["key"], name="payment_refund_key"),
            models.Index(fields=["refunded_at"], name="payment_refund_at"),  # the sum of the day
            models.Index(fields=["kind", "-id"], name="payment_refund_kind"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["payment", "key"], name="payment_refund_key_once"),
            models.CheckConstraint(
                name="payment_refund_amount_sign",
                condition=Q(amount_rupiah__gt=0) & ~Q(kind="reversal")
                | Q(amount_rupiah__lt=0, kind="reversal"),
            ),
            models.CheckConstraint(
                name="payment_refund_kind_known",
                condition=Q(kind__in=["refund", "chargeback", "by_hand", "reversal"]),
            ),
            *moments_within_reason("payment_refund", "refunded_at"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


#: What nearly all notifications come to, and are before.
UNLISTED_OUTCOME = ("applied", "waiting")


class PaymentNotification(models.Model):
    """One thing a gateway reported, kept once however often it is reported.

    It is stored as soon as its sender is proven, whatever it says. What was reported never changes.
    The outcome is written with it, and changes once at most: an unmatched or unreadable
    notification gets its final outcome when its order is there, from a release that can read it, or
    from a person. The model and a trigger in the database refuse everything else; only
    `payments.retention` deletes.
    """

    class Outcome(models.TextChoices):
        APPLIED = "applied", "applied"  # the payment changed
        REPEATED = "repeated", "repeated"  # the payment was in this state already
        IGNORED = "ignored", "ignored"  # an earlier state than the payment's, or no payment's
        HELD = "held", "held"  # a person must decide; the reason says why
        WAITING = "waiting", "waiting"  # until the worker has asked the gateway
        UNMATCHED = "unmatched", "unmatched"  # its order or payment is not known (yet)
        DISMISSED = "dismissed", "dismissed"  # a person said that nothing is to be done for it
        UNREADABLE = "unreadable", "unreadable"  # proven, but not what the documentation says
        READ = "read", "read"  # was unreadable; what it says is a notification of its own now
        TEST = "test", "test"  # the test button of the gateway's dashboard

    #: What waits for its outcome, or for a person.
    OPEN = (Outcome.UNMATCHED, Outcome.UNREADABLE)

    provider = models.CharField(max_length=32)
    identity = models.CharField(max_length=255, help_text="the same for every repeat")
    transaction_id = models.CharField(max_length=128)
    order_reference = models.CharField(max_length=255, blank=True)
    status = models.CharField(max_length=16, choices=PaymentStatus, blank=True)
    amount = models.DecimalField(
        max_digits=24, decimal_places=4, null=True, blank=True, help_text="as the gateway says it"
    )
    currency = models.CharField(max_length=8, blank=True)
    channel = models.CharField(max_length=64, blank=True)
    occurred_at = models.DateTimeField(help_text="by the gateway's clock")
    payload = models.JSONField(help_text="only fields without secrets, card or customer data")
    document = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="all that was reported but secrets and what is known to be personal; kept only "
        "where it must be read again",
    )
    received_at = models.DateTimeField(default=timezone.now, editable=False)
    payment = models.ForeignKey(
        Payment, on_delete=models.PROTECT, related_name="notifications", null=True, blank=True
    )
    outcome = models.CharField(max_length=16, choices=Outcome)
    reason = models.CharField(max_length=255, blank=True)
    decided_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["-id"]
        permissions = [
            ("match_notification", "Can match an unmatched notification to an order, or dismiss it")
        ]
        indexes = [
            models.Index(fields=["provider", "transaction_id"], name="notification_transaction"),
            models.Index(fields=["order_reference"], name="notification_order"),
            models.Index(fields=["outcome", "-received_at"], name="notification_outcome"),
            # For the list's filter: rows of an outcome that none of late has. Nearly all rows wait
            # and are applied: they are found without it, and a webhook does not pay for it.
            models.Index(
                fields=["outcome", "-id"],
                name="notification_rare_outcome",
                condition=~Q(outcome__in=UNLISTED_OUTCOME),
            ),
            models.Index(fields=["transaction_id"], name="notification_transaction_id"),
            models.Index(fields=["identity"], name="notification_identity"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["provider", "identity"], name="notification_once"),
            models.CheckConstraint(
                name="notification_outcome_known",
                condition=Q(
                    outcome__in=[
                        "applied",
                        "repeated",
                        "ignored",
                        "held",
                        "waiting",
                        "unmatched",
                        "dismissed",
                        "unreadable",
                        "read",
                        "test",
                    ]
                ),
            ),
            models.CheckConstraint(
                name="notification_payment_or_not",
                condition=Q(
                    outcome__in=["unmatched", "dismissed", "unreadable", "read", "test"],
                    payment__isnull=True,
                )
                | Q(outcome__in=["applied", "repeated", "held", "waiting"], payment__isnull=False)
                | Q(outcome="ignored"),
            ),
            *moments_within_reason("notification", "occurred_at"),
        ]

    def __str__(self) -> str:
        return f"{self.provider} {self.identity}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise AppendOnlyError(self._meta.db_table)
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AppendOnlyError(self._meta.db_table)

    def wait_for_answer(self, *, payment: Payment) -> None:
        """Note which payment it is about; its outcome follows when the gateway has been asked."""
        self._end(payment=payment, outcome=self.Outcome.WAITING, reason="", document="")

    def decide(self, *, payment: Payment | None, outcome: str, reason: str) -> None:
        """Write the final outcome of a notification that waits for it.

        Raises `AppendOnlyError` where it has one already.
        """
        self._end(payment=payment, outcome=outcome, reason=reason[:255], document="")

    def dismiss(self, *, reason: str) -> None:
        """Write that nothing is to be done for a notification that waits for its outcome.

        Raises `AppendOnlyError` where it has an outcome already.
        """
        self._end(payment=None, outcome=self.Outcome.DISMISSED, reason=reason, document="")

    def _end(self, **values: Any) -> None:
        undecided = (*self.OPEN, self.Outcome.WAITING)
        waiting = type(self).objects.filter(pk=self.pk, outcome__in=undecided)
        values["decided_at"] = timezone.now()
        if not waiting.update(**values):
            raise AppendOnlyError(f"{self} is decided")
        for name, value in values.items():
            setattr(self, name, value)
