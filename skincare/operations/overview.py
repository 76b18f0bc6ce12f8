"""The page that someone opens at night: is anything stuck, what, and why."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse

from orders.models import Order
from payments.models import Payment, PaymentNotification
from skincare.operations import stats
from skincare.operations.base_view import page_for, show
from skincare.operations.charts import events_plot

REFRESH_SECONDS: Final = 15
#: An event that waits longer in the outbox is worth a look: the relay sends within seconds.
OUTBOX_LATE_SECONDS: Final = 60
_PERIODS: Final = (("last hour", timedelta(hours=1)), ("last day", timedelta(days=1)))


@dataclass(frozen=True)
class Stat:
    """A figure, or why it is not there."""

    value: Any = None
    error: str = ""


def ask(question: Callable[[], Any]) -> Stat:
    """Return the figure; the page must come up when a figure cannot."""
    try:
        return Stat(question())
    except DatabaseError as error:
        return Stat(error=f"not available: {type(error).__name__}")


@page_for("events.view_operations")
def overview(request: HttpRequest) -> HttpResponse:
    """Show the queues, the outbox, the events, and what needs a person."""
    queues = stats.queue_stats()
    outbox = ask(stats.outbox_stats)
    events = ask(stats.event_stats)
    waiting = ask(waiting_for_a_person)
    return show(
        request,
        "overview.html",
        title="Operations",
        queues=queues,
        outbox=outbox,
        events=events,
        waiting=waiting,
        warnings=warnings(queues, outbox, events, waiting),
        periods=[
            {
                "name": name,
                "plot": ask(partial(_plot, period, name)),
                "latency": ask(partial(stats.latency, period)),
            }
            for name, period in _PERIODS
        ],
        errors=ask(partial(stats.top_errors, timedelta(days=1))),
        refresh_seconds=REFRESH_SECONDS,
    )


def _plot(period: timedelta, name: str) -> object:
    return events_plot(stats.rates(period), title=f"Events per minute, {name}")


def waiting_for_a_person() -> dict[str, int]:
    """Return how many payments and orders are held, and how many notifications are unmatched."""
    unmatched = PaymentNotification.Outcome.UNMATCHED
    return {
        "held payment": Payment.objects.exclude(held_reason="").count(),
        "unmatched notification": PaymentNotification.objects.filter(outcome=unmatched).count(),
        "held order": Order.objects.exclude(held_reason="").count(),
    }


def warnings(
    queues: list[stats.QueueStats], outbox: Stat, events: Stat, waiting: Stat
) -> list[str]:
    """Return what is wrong, a sentence each; empty where nothing is."""
    found = [f"{q.name}: SQS gives no figures ({q.error})." for q in queues if q.error]
    found += [
        f"{_count(queue.depth.visible + queue.depth.in_flight, 'message')} in {queue.name}: "
        "no worker takes a dead letter until a person puts it back."
        for queue in queues
        if queue.is_dlq and queue.depth and queue.depth.visible + queue.depth.in_flight
    ]
    late = outbox.value.oldest_age_seconds if outbox.value else None
    if late is not None and late > OUTBOX_LATE_SECONDS:
        found.append(
            f"The outbox does not get empty ({outbox.value.unsent} unsent, the oldest for "
            f"{late:.0f} s): "
            f"{outbox.value.last_error or 'does a relay run?'}"
        )
    if events.value and events.value.failed:
        found.append(f"{_count(events.value.failed, 'event')} failed at the last try.")
    if events.value and events.value.interrupted:
        found.append(f"{_count(events.value.interrupted, 'event')} left by a worker that died.")
    if waiting.value:
        found += [
            f"{_count(count, what)} to be decided by a person."
            for what, count in waiting.value.items()
            if count
        ]
    found += [figure.error for figure in (outbox, events, waiting) if figure.error]
    return found


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
