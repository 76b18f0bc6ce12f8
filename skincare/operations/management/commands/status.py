"""manage.py status: how the queues, the outbox and the events stand, on one screen."""

from dataclasses import asdict
from datetime import timedelta
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from skincare.operations import stats
from skincare.operations.base_command import UNREACHABLE, OperatorCommand, local_time

_HOUR: Final = timedelta(hours=1)


class Command(OperatorCommand):
    help = "Show how things stand: queues, outbox, events of the last hour and their errors."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        queues = stats.queue_stats()
        outbox = stats.outbox_stats()
        events = stats.event_stats()
        done = sum(bucket.done for bucket in stats.rates(_HOUR, buckets=1))
        latency = stats.latency(_HOUR)
        errors = stats.top_errors(_HOUR)
        if options["json"]:
            self.write_json(
                {
                    "queues": [
                        {**asdict(one), "depth": one.depth._asdict() if one.depth else None}
                        for one in queues
                    ],
                    "outbox": asdict(outbox),
                    "events": asdict(events),
                    "last_hour": {
                        "done": done,
                        "latency": asdict(latency),
                        "errors": [asdict(one) for one in errors],
                    },
                }
            )
        else:
            for queue in queues:
                self.write(_queue(queue))
            self.write(
                f"outbox: {outbox.unsent} unsent, {outbox.failing} of them failing, "
                f"oldest {_age(outbox.oldest_age_seconds)} {outbox.last_error}".rstrip()
            )
            self.write(
                f"events: {events.in_progress} in progress, {events.interrupted} interrupted, "
                f"{events.failed} failed"
            )
            self.write(
                f"last hour: {done} done; from creation to done p50 {_age(latency.p50)}, "
                f"p95 {_age(latency.p95)}, p99 {_age(latency.p99)}"
            )
            for error in errors:
                self.write(
                    f"{error.events:6} failed, last {local_time(error.last_at)}: {error.error} "
                    f"(such as {error.example_event_id})"
                )
        if any(queue.error for queue in queues):
            raise CommandError("Not all queues could be reached.", returncode=UNREACHABLE)


def _queue(queue: stats.QueueStats) -> str:
    if queue.depth is None:
        return f"{queue.name}: not available: {queue.error}"
    depth = queue.depth
    oldest = f"oldest {_age(queue.oldest_age_seconds)} ({queue.oldest_age_note})"
    return (
        f"{queue.name}: {depth.visible} waiting, {depth.in_flight} in flight, "
        f"{depth.delayed} delayed, {oldest}"
    )


def _age(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:.1f} s" if seconds < 120 else str(timedelta(seconds=round(seconds)))
