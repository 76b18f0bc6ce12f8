"""`make chaos`: nothing is lost and nothing is done twice, whatever is killed and broken meanwhile.

CHAOS_EVENTS (default 2000) is the number of events, CHAOS_SEED makes the same troubles come again.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from skincare.local.deadline import wait_until
from tests.chaos.buyers import Buyers
from tests.chaos.havoc import Havoc
from tests.chaos.shop import Shop
from tests.chaos.verdict import EVENTS_OF_AN_ORDER, Verdict, at_rest, judge

EVENTS = int(os.environ.get("CHAOS_EVENTS", "2000"))
SEED = int(os.environ.get("CHAOS_SEED", "1"))
EVENTS_PER_SECOND = 20
SECONDS = max(30.0, EVENTS / EVENTS_PER_SECOND)
POISON = max(10, EVENTS // 50)
DUPLICATES = EVENTS // 10
SETTLING_SECONDS = 240
"""Five receives with their visibility timeout and backoff, and a share of the backlog."""


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_chaos(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    started = time.monotonic()
    with Shop(tmp_path, seed=SEED) as shop:
        buyers = Buyers(shop, orders=EVENTS // EVENTS_OF_AN_ORDER, seconds=SECONDS, seed=SEED)
        havoc = Havoc(shop, seed=SEED, events=EVENTS, poison_messages=POISON, duplicates=DUPLICATES)
        with havoc:
            bought = buyers.run()
        wait_until(
            lambda: at_rest(shop),
            seconds=SETTLING_SECONDS,
            what="an empty outbox and queue",
            every=1,
        )
        verdict = judge(shop, bought)
        alive = [worker.running for worker in shop.workers]

    with capsys.disabled():
        sys.stdout.write(table(verdict, havoc, buyers, time.monotonic() - started))
    assert havoc.failures == []
    assert alive == [True, True], "a worker ended by itself"
    assert verdict.lost == []
    assert verdict.twice == []
    assert verdict.wrong_on_the_shelf == []
    assert verdict.disagreements == []
    assert verdict.emails_missing == []
    assert verdict.emails_repeated <= verdict.claims_taken_over
    assert verdict.emails_unexplained == []
    assert set(verdict.dead) == set(havoc.poison_ids)


def table(verdict: Verdict, havoc: Havoc, buyers: Buyers, seconds: float) -> str:
    p50, p99 = verdict.seconds_to_done
    rows = [
        ("events through web, outbox, SQS and worker", verdict.events, ""),
        ("lost", len(verdict.lost), "0"),
        ("effects done twice", len(verdict.twice), "0"),
        ("products whose stock does not add up", len(verdict.wrong_on_the_shelf), "0"),
        ("orders whose money does not agree", len(verdict.disagreements), "0"),
        ("buyers with an email too few or too many", len(verdict.emails_missing), "0"),
        ("claims taken again after an email was put off", verdict.claims_put_off, ""),
        ("claims taken over: a worker cut off, a try that failed", verdict.claims_taken_over, ""),
        (
            "emails repeated (same Message-ID)",
            verdict.emails_repeated,
            f"<= {verdict.claims_taken_over}",
        ),
        ("emails repeated without a take-over", len(verdict.emails_unexplained), "0"),
        ("messages in the DLQ", len(verdict.dead), f"{len(havoc.poison_ids)}, the poison"),
        ("checkouts and webhooks called again by their client", buyers.retries, ""),
        ("webhooks repeated by the gateway", buyers.repeated_webhooks, ""),
        ("seconds from commit to done, p50 / p99", f"{p50:.2f} / {p99:.1f}", ""),
        *((f"done at receive {n}", count, "") for n, count in verdict.receive_counts.items()),
        *((name, count, "") for name, count in sorted(havoc.struck.items())),
        ("seconds in all", round(seconds), ""),
    ]
    lines = [f"{name:<56} {found!s:>14}   {wanted}".rstrip() for name, found, wanted in rows]
    title = f"{'chaos, seed ' + str(SEED):<56} {'found':>14}   wanted"
    return "\n".join(["", title, "-" * 88, *lines, ""])
