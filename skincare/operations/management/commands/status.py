"""manage.py status: what is wrong, in sentences, then all figures, on one screen."""

from dataclasses import asdict
from datetime import timedelta
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from skincare.operations import stats
from skincare.operations.base_command import (
    NOT_DONE,
    UNREACHABLE,
    OperatorCommand,
    local_time,
)
from skincare.operations.situation import Worker, situation

_HOUR: Final = timedelta(hours=1)


class Command(OperatorCommand):
    help = (
        "Show what is wrong, in the sentences of the page, then queues, workers, outbox, events of "
        "the last hour and their errors. Exit code 1 where anything is wrong."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        now = situation()
        for stat in now.database_stats:
            if stat.error:
                raise CommandError(f"The database: {stat.error}", returncode=UNREACHABLE)
        queues, outbox, events = now.queues, now.outbox.value, now.events.value
        waiting = stats.emails_waiting()
        done = sum(bucket.done for bucket in stats.rates(_HOUR, buckets=1))
        latency = stats.latency(_HOUR)
        errors = stats.top_errors(_HOUR)
        if options["json"]:
            self.write_json(
                {
                    "warnings": [{"text": one.text, "url": one.url} for one in now.warnings],
                    "waiting_for_a_person": now.waiting.value,
                    "workers": [_worker_document(one) for one in now.workers.value],
                    "queues": [
                        {**asdict(one), "depth": one.depth._asdict() if one.depth else None}
                        for one in queues
                    ],
                    "outbox": asdict(outbox),
                    "events": asdict(events),
                    "emails_waiting": waiting,
                    "last_hour": {
                        "done": done,
                        "latency": asdict(latency),
                        "errors": [asdict(one) for one in errors],
                    },
                }
            )
        else:
            for warning in now.warnings:
                self.write(f"! {warning}")
            if not now.warnings:
                self.write("Nothing is stuck.")
            self.write()
            for queue in queues:
                self.write(_queue(queue))
            for worker in now.workers.value:
                self.write(_worker(worker))
            self.write(
                f"outbox: {outbox.unsent} unsent, {outbox.failing} of them failing, "
                f"oldest {_age(outbox.oldest_age_seconds)} {outbox.last_error}".rstrip()
            )
            self.write(
                f"events: {events.in_progress} in progress, {events.interrupted} interrupted, "
                f"{events.failed} failed, {waiting} with an email that waits for its provider"
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
        if now.warnings:
            raise CommandError(
                f"{len(now.warnings)} thing(s) to look at: docs/runbook.md has a row for each.",
                returncode=NOT_DONE,
            )


def _queue(queue: stats.QueueStats) -> str:
    if queue.depth is None:
        return f"{queue.name}: not available: {queue.error}"
    depth = queue.depth
    oldest = f"oldest {_age(queue.oldest_age_seconds)} ({queue.oldest_age_note})"
    return (
        f"{queue.name}: {depth.visible} waiting, {depth.in_flight} in flight, "
        f"{depth.delayed} delayed, {oldest}"
    )


def _worker(worker: Worker) -> str:
    report = worker.report
    doing = ", ".join(f"{one['task']} {one['event_id']}" for one in report.doing) or "nothing"
    trouble = f"; {report.trouble}" if report.trouble else ""
    return (
        f"worker {report}, {report.release or 'no release'}: since {local_time(report.started_at)},"
        f" last sign of life {_age(worker.silent_seconds)} ago, does {doing}{trouble}"
    )


def _worker_document(worker: Worker) -> dict[str, Any]:
    report = worker.report
    return {
        "host": report.host,
        "pid": report.pid,
        "release": report.release,
        "state": report.state,
        "started_at": report.started_at.isoformat(),
        "seen_at": report.seen_at.isoformat(),
        "silent_seconds": round(worker.silent_seconds, 1),
        "doing": report.doing,
        "trouble": report.trouble,
    }


def _age(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:.1f} s" if seconds < 120 else str(timedelta(seconds=round(seconds)))
