"""The page that someone opens at night: is anything stuck, what, and why."""

from datetime import timedelta
from functools import partial
from typing import Final

from django.http import HttpRequest, HttpResponse

from skincare.operations import stats
from skincare.operations.base_view import page_for, show
from skincare.operations.charts import events_plot, waits_plot
from skincare.operations.money_today import money_today
from skincare.operations.situation import ask, situation

REFRESH_SECONDS: Final = 15
_PERIODS: Final = (("last hour", timedelta(hours=1)), ("last day", timedelta(days=1)))


@page_for("events.view_operations")
def overview(request: HttpRequest) -> HttpResponse:
    """Show the queues, the outbox, the events, and what needs a person."""
    now = situation()
    return show(
        request,
        "overview.html",
        title="Operations",
        queues=now.queues,
        outbox=now.outbox,
        events=now.events,
        waiting=now.waiting,
        workers=now.workers,
        money=ask(money_today),
        warnings=now.warnings,
        emails=now.emails,
        periods=[
            {
                "name": name,
                "plots": ask(partial(_plots, period, name)),
                "latency": ask(partial(stats.latency, period)),
            }
            for name, period in _PERIODS
        ],
        errors=ask(partial(stats.top_errors, timedelta(days=1))),
        refresh_seconds=REFRESH_SECONDS,
    )


def _plots(period: timedelta, name: str) -> list[object]:
    buckets = stats.rates(period)
    return [
        events_plot(buckets, title=f"Events per minute, {name}"),
        waits_plot(buckets, title=f"Longest wait for a worker, {name}"),
    ]
