"""How things stand, and what is wrong in sentences: for the page, the command and its JSON."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db import Error as DatabaseError
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from orders.models import Order
from payments.models import Payment, PaymentNotification, RefundRequest
from skincare.operations import stats
from skincare.operations.models import WorkerReport
from skincare.operations.worker_reports import INTERVAL

#: An event that waits longer in the outbox is worth a look: the relay sends within seconds.
OUTBOX_LATE_SECONDS: Final = 60
#: A worker that has not reported for so long hangs, or is gone without a word.
SILENT_SECONDS: Final = 4 * INTERVAL


@dataclass(frozen=True)
class Stat:
    """A figure, or why it is not there."""

    value: Any = None
    error: str = ""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: a sentence, and the page on which to do something about it."""

    text: str
    url: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Worker:
    """A worker's last report, and how old it is, in seconds."""

    report: WorkerReport
    silent_seconds: float

    @property
    def is_silent(self) -> bool:
        return self.silent_seconds > SILENT_SECONDS


@dataclass(frozen=True)
class Situation:
    """All figures of one moment."""

    queues: list[stats.QueueStats]
    outbox: Stat
    events: Stat
    waiting: Stat
    workers: Stat
    emails: Stat

    @property
    def warnings(self) -> list[Finding]:
        """What is wrong, a sentence each, the worst first; empty where nothing is."""
        return [
            *_of_unreachable_queues(self.queues),
            *_of_workers(self),
            *_of_the_oldest_event(self.queues),
            *_of_dead_letters(self.queues),
            *_of_the_outbox(self.outbox),
            *_of_events(self.events),
            *_of_emails(self.emails),
            *_of_what_waits_for_a_person(self.waiting),
            *(Finding(stat.error) for stat in self.database_stats if stat.error),
        ]

    @property
    def database_stats(self) -> list[Stat]:
        """Those that PostgreSQL gives."""
        return [self.outbox, self.events, self.waiting, self.workers, self.emails]


def situation() -> Situation:
    """Return how things stand now. A figure that cannot be had says why; nothing is raised."""
    return Situation(
        queues=stats.queue_stats(),
        outbox=ask(stats.outbox_stats),
        events=ask(stats.event_stats),
        waiting=ask(waiting_for_a_person),
        workers=ask(workers),
        emails=ask(stats.emails_waiting),
    )


def ask(question: Callable[[], Any]) -> Stat:
    """Return the figure; the page must come up when a figure cannot."""
    try:
        return Stat(question())
    except DatabaseError as error:
        return Stat(error=f"not available: {type(error).__name__}")


def workers() -> list[Worker]:
    """Return all workers that have reported within the last hour. Raises django.db.Error."""
    now = timezone.now()
    lately = WorkerReport.objects.filter(seen_at__gt=now - timedelta(hours=1))
    return [Worker(one, max((now - one.seen_at).total_seconds(), 0.0)) for one in lately]


#: What a person has to decide: its name, how many, and the page where it is listed.
_DECISIONS: Final[dict[str, Callable[[], QuerySet[Any]]]] = {
    "held payment": lambda: Payment.objects.exclude(held_reason=""),
    "unmatched notification": lambda: PaymentNotification.objects.filter(
        outcome=PaymentNotification.Outcome.UNMATCHED
    ),
    "unreadable notification": lambda: PaymentNotification.objects.filter(
        outcome=PaymentNotification.Outcome.UNREADABLE
    ),
    "held order": lambda: Order.objects.exclude(held_reason=""),
    "refund": lambda: RefundRequest.objects.filter(status__in=RefundRequest.FOR_A_PERSON),
}


def waiting_for_a_person() -> dict[str, int]:
    """Return how many payments and orders are held, and how many notifications are unmatched."""
    return {what: decisions().count() for what, decisions in _DECISIONS.items()}


def _of_unreachable_queues(queues: list[stats.QueueStats]) -> list[Finding]:
    return [Finding(f"{q.name}: SQS gives no figures ({q.error}).") for q in queues if q.error]


def _of_workers(now: Situation) -> list[Finding]:
    if now.workers.error:
        return []
    url = f"{reverse('operations:overview')}#workers"
    found = [
        Finding(
            f"Worker {worker.report} gave its last sign of life {_span(worker.silent_seconds)} "
            f"ago: it hangs, or died without a word.",
            url,
        )
        for worker in missed(now.workers.value)
    ]
    found += [
        Finding(f"Worker {worker.report} is not well: {worker.report.trouble}.", url)
        for worker in now.workers.value
        if worker.report.trouble and not worker.is_silent
    ]
    waiting = sum(q.depth.visible for q in now.queues if q.depth and not q.is_dlq)
    if waiting and all(worker.is_silent for worker in now.workers.value):
        found.append(
            Finding(
                f"{_count(waiting, 'message')} waiting, and no worker gives a sign of life.", url
            )
        )
    return found


def missed(workers: list[Worker]) -> list[Worker]:
    """Return the silent workers that none was started for since: a new one each takes a place."""
    started = sorted(one.report.started_at for one in workers if not one.is_silent)
    found = []
    for silent in sorted((one for one in workers if one.is_silent), key=lambda w: w.report.seen_at):
        successor = next((at for at in started if at > silent.report.seen_at), None)
        if successor is None:
            found.append(silent)
        else:
            started.remove(successor)
    return found


def _of_the_oldest_event(queues: list[stats.QueueStats]) -> list[Finding]:
    limit = settings.OLDEST_EVENT_WARNING_SECONDS
    return [
        Finding(
            f"The oldest event in {queue.name} has waited {_span(queue.oldest_age_seconds)} for a "
            f"worker; more than {_span(limit)} is too long.",
            f"{reverse('operations:overview')}#workers",
        )
        for queue in queues
        if not queue.is_dlq
        and queue.oldest_age_seconds is not None
        and queue.oldest_age_seconds > limit
    ]


def _of_dead_letters(queues: list[stats.QueueStats]) -> list[Finding]:
    return [
        Finding(
            f"{_count(queue.depth.visible + queue.depth.in_flight, 'message')} in {queue.name}: "
            "no worker takes a dead letter until a person puts it back.",
            reverse("operations:dead_letters"),
        )
        for queue in queues
        if queue.is_dlq and queue.depth and queue.depth.visible + queue.depth.in_flight
    ]


def _of_the_outbox(outbox: Stat) -> list[Finding]:
    late = outbox.value.oldest_age_seconds if outbox.value else None
    if late is None or late <= OUTBOX_LATE_SECONDS:
        return []
    return [
        Finding(
            f"The outbox does not get empty ({outbox.value.unsent} unsent, the oldest for "
            f"{late:.0f} s): {outbox.value.last_error or 'does a relay run?'}",
            f"{reverse('admin:events_outboxevent_changelist')}?sent_at__isempty=1",
        )
    ]


def _of_events(events: Stat) -> list[Finding]:
    if not events.value:
        return []
    url = reverse("admin:events_processedevent_changelist")
    found = []
    if events.value.failed:
        text = f"{_count(events.value.failed, 'event')} failed at the last try."
        found.append(Finding(text, f"{url}?status__exact=failed"))
    if events.value.interrupted:
        text = f"{_count(events.value.interrupted, 'event')} left by a worker that died."
        found.append(Finding(text, f"{url}?status__exact=processing"))
    return found


def _of_emails(emails: Stat) -> list[Finding]:
    if not emails.value:
        return []
    return [
        Finding(
            f"{_count(emails.value, 'email')} waiting for the email provider; they are tried again "
            "by themselves.",
            f"{reverse('admin:events_processedevent_changelist')}?put_off_until__isempty=0",
        )
    ]


def _of_what_waits_for_a_person(waiting: Stat) -> list[Finding]:
    return [
        Finding(f"{_count(count, what)} to be decided by a person.", reverse("operations:held"))
        for what, count in (waiting.value or {}).items()
        if count
    ]


def _span(seconds: float | None) -> str:
    seconds = seconds or 0
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
