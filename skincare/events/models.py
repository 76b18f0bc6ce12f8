"""The two tables of order events: what must be sent, and what was processed."""

from typing import Any

from django.db import models
from django.db.models.functions import Now

from skincare.events.moments import EARLIEST, LATEST


class DocumentField(models.JSONField):
    """An event's document. PostgreSQL takes longer numbers and deeper nesting than Python: such a
    one, which only a hand can have written, must not take away the list in which somebody would
    find it.
    """

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        try:
            return super().from_db_value(value, expression, connection)
        except (ValueError, RecursionError) as error:
            return {"unreadable": f"{type(error).__name__}: {error}"}

    def deconstruct(self) -> tuple[str, str, Any, Any]:
        """Return Django's own field: the column is the same."""
        name, _, arguments, options = super().deconstruct()
        return str(name), "django.db.models.JSONField", arguments, options


class OutboxEvent(models.Model):
    """An event that its producer committed; the relay sends it to SQS and marks it sent.

    Written in the same transaction as the change that causes it, so both happen or neither.
    """

    event_id = models.CharField(max_length=128, unique=True)
    event_type = models.CharField(max_length=64)
    order_id = models.CharField(max_length=36)
    payload = DocumentField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    sent_at = models.DateTimeField(null=True, blank=True)
    send_attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(db_default=Now())
    #: Until then the relay that sends it has it for itself.
    leased_until = models.DateTimeField(null=True, blank=True, editable=False)
    last_error = models.CharField(max_length=500, blank=True)

    class Meta:
        verbose_name = "outbox event"
        ordering = ["-id"]
        indexes = [
            # The relay's only question; sent rows, nearly all of the table, are not in it.
            models.Index(
                fields=["next_attempt_at", "id"],
                name="outbox_unsent",
                condition=models.Q(sent_at__isnull=True),
            ),
            models.Index(fields=["order_id"], name="outbox_order"),
            # Without the unsent rows: the relay's question would be answered from it, and sorted.
            models.Index(
                fields=["sent_at"],
                name="outbox_sent",
                condition=models.Q(sent_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.event_id}"


#: What nearly all events are, or soon will be.
UNLISTED_STATUS = ("processing", "effects_done", "done")


class ProcessedEvent(models.Model):
    """The claim on an event and all that is known of its processing.

    One row per `event_id`: it says who may process the event, until when, and how it ended. It is
    changed only by `skincare.events.claim`, and deleted by `skincare.events.retention` long after
    the event is finished.
    """

    class Status(models.TextChoices):
        PROCESSING = "processing", "in progress"  # claimed; effects not committed yet
        EFFECTS_DONE = "effects_done", "effects done"  # committed; the email is still to come
        DONE = "done", "done"  # effects and email
        SKIPPED = "skipped", "skipped"  # nothing to do: a type that nobody handles
        FAILED = "failed", "failed"  # the last try raised; the next receive claims it again

    FINISHED = (Status.DONE, Status.SKIPPED)

    event_id = models.CharField(max_length=128, unique=True)
    event_type = models.CharField(max_length=64)
    order_id = models.CharField(max_length=36)
    payment_id = models.CharField(max_length=128, blank=True)
    status = models.CharField(max_length=16, choices=Status, default=Status.PROCESSING)
    payload = DocumentField()
    payload_hash = models.CharField(max_length=64)
    attempts = models.PositiveIntegerField(default=1)
    receive_count = models.PositiveIntegerField(default=1)
    fence = models.PositiveBigIntegerField(default=1)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    worker = models.CharField(max_length=255, blank=True)
    last_error = models.TextField(blank=True)
    created_at = models.DateTimeField(help_text="when the producer made the event")
    first_claimed_at = models.DateTimeField(db_default=Now())
    claimed_at = models.DateTimeField(db_default=Now())
    effects_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    #: Its email waits for the provider: until the outbox sends it again, since when, how often.
    put_off_until = models.DateTimeField(null=True, blank=True)
    put_off_since = models.DateTimeField(null=True, blank=True)
    put_offs = models.PositiveIntegerField(default=0, db_default=0)

    class Meta:
        verbose_name = "processed event"
        ordering = ["-id"]
        permissions = [
            ("view_operations", "Can see the operations page and the dead-letter queue"),
            ("replay_event", "Can put an event back on the queue"),
            ("skip_event", "Can mark an event as skipped"),
            ("redrive_dead_letters", "Can put dead letters back"),
            ("discard_dead_letters", "Can discard dead letters"),
        ]
        indexes = [
            models.Index(fields=["order_id"], name="processed_order"),
            models.Index(fields=["status", "claimed_at"], name="processed_status"),
            # For the list's filter: what failed or was skipped long ago. An event that is done
            # does not pay for it.
            models.Index(
                fields=["status", "-id"],
                name="processed_rare_status",
                condition=~models.Q(status__in=UNLISTED_STATUS),
            ),
            models.Index(fields=["finished_at"], name="processed_finished_at"),
            models.Index(fields=["payment_id"], name="processed_payment"),
            models.Index(fields=["event_type", "-id"], name="processed_type"),
            models.Index(
                fields=["put_off_until"],
                name="processed_put_off",
                condition=models.Q(put_off_until__isnull=False),
            ),
        ]
        constraints = [
            models.CheckConstraint(
                name="processed_status_known",
                condition=models.Q(
                    status__in=["processing", "effects_done", "done", "skipped", "failed"]
                ),
            ),
            models.CheckConstraint(
                name="processed_finished_has_time",
                condition=models.Q(status__in=["done", "skipped"], finished_at__isnull=False)
                | models.Q(status__in=["processing", "effects_done", "failed"]),
            ),
            # `skincare.events.moments`, for whoever writes without it.
            models.CheckConstraint(
                name="processed_created_in_bounds",
                condition=models.Q(created_at__gte=EARLIEST, created_at__lte=LATEST),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.event_id}"

    @property
    def state_display(self) -> str:
        """How far the event is, in words; one whose email waits has not failed."""
        if self.status == self.Status.FAILED and self.put_off_until is not None:
            return "effects done, email put off"
        return self.get_status_display()

    @property
    def is_finished(self) -> bool:
        return self.status in self.FINISHED
