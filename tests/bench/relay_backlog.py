"""The relay after an outage: how fast it sends a large outbox, and what that costs it."""

import time
from collections.abc import Sequence

import psutil  # type: ignore[import-untyped]

from tests.bench.bench import Bench, say
from tests.bench.report import Table
from tests.bench.shop import Connection
from tests.bench.subject import Subject

ROWS = 100_000
LATENCY_SECONDS = 0.01
STALL_SECONDS = 60
MOST_SECONDS = 900  # then what was sent so far is the measure
SAMPLE_SECONDS = 0.25

_FILL = """
INSERT INTO events_outboxevent
    (event_id, event_type, order_id, payload, send_attempts, last_error)
SELECT 'bench-relay-' || number, 'payment.processed', gen_random_uuid()::text,
       jsonb_build_object(
           'event_id', 'bench-relay-' || number, 'event_type', 'payment.processed',
           'order_id', gen_random_uuid()::text, 'payment_id', gen_random_uuid()::text,
           'user_id', 'guest', 'amount_rupiah', 125000,
           'created_at', '2026-11-11T00:00:00+07:00'), 0, ''
FROM generate_series(1, %s) AS number
"""
_SENT = "SELECT count(*) FROM events_outboxevent WHERE sent_at IS NOT NULL"


class RelayBacklog:
    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._rows: list[Sequence[str]] = []

    def measure(self, subject: Subject) -> None:
        bench, numbers = self.bench, self.bench.numbers
        shop = bench.shop(subject)
        count = bench.size(ROWS, small=500)
        with shop.connect() as connection:
            connection.execute(_FILL, [count])
            connection.execute("ANALYZE events_outboxevent")
            bench.server.set_latency(LATENCY_SECONDS)
            try:
                say(f"{subject.name}: relay, {count} rows")
                with shop.relay() as relay:
                    samples = _watch(connection, psutil.Process(relay.pid), count)
            finally:
                bench.server.set_latency(0)
        sent = samples[-1][1]
        if sent < count:
            say(f"{subject.name}: the relay sent {sent} of {count} rows in the time it had")
        first, last = _rate(samples, 0, sent / 3), _rate(samples, sent * 2 / 3, sent)
        whole = _rate(samples, 0, sent)
        growth = max(memory for _, _, memory in samples) - samples[0][2]
        numbers.add(subject.name, "relay, rows/s", whole)
        numbers.add(subject.name, "relay, last third ÷ first", last / first)
        numbers.add(subject.name, "relay, MB more", growth)
        self._rows.append(
            [
                subject.name,
                *(f"{sent}", f"{whole:.0f}", f"{first:.0f}", f"{last:.0f}", f"{growth:.0f}"),
            ]
        )

    def tables(self) -> list[Table]:
        head = ["", "rows sent", "rows/s", "first third", "last third", "MB more at most"]
        title = f"One relay and a backlog of {self.bench.size(ROWS, small=500)} rows, SQS at 10 ms"
        return [Table(title, head, self._rows)]


Sample = tuple[float, int, float]
"""Seconds, rows sent so far, and the relay's own memory in MB."""


def _watch(connection: Connection, process: psutil.Process, count: int) -> list[Sample]:
    """Look at the outbox from the first row that is sent to the last."""
    started = progress = time.monotonic()
    samples: list[Sample] = []
    sent = 0
    while sent < count:
        row = connection.execute(_SENT).fetchone()
        now = time.monotonic()
        if row and row[0] > sent:
            sent, progress = row[0], now
            samples.append((now, sent, process.memory_full_info().uss / 1e6))
        if now - progress > STALL_SECONDS:
            raise RuntimeError(f"the relay sends nothing more after {sent} of {count} rows")
        if now - started > MOST_SECONDS:
            break
        time.sleep(SAMPLE_SECONDS)
    return samples


def _rate(samples: Sequence[Sample], above: float, below: float) -> float:
    """Rows per second between these two counts of rows."""
    part = [sample for sample in samples if above <= sample[1] <= below]
    if len(part) < 2:
        part = list(samples[:1]) + list(samples[-1:])
    (start, before, _), (end, after, _) = part[0], part[-1]
    return (after - before) / (end - start) if end > start else float(after)
