"""System checks over the numbers that must agree; each says how to mend what is wrong."""

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from skincare.sqs.queues import DLQ_RETENTION, QUEUE_RETENTION


class Range(NamedTuple):
    """The values of a number with which everything works."""

    least: float
    most: float
    why: str


#: Days that any retention may last: a longer one is never, and no date.
DAYS: Final = Range(1, 36_500, "it is a number of days")

_RANGES: Final[Mapping[str, Range]] = {
    "CLAIM_LEASE_SECONDS": Range(1, 43_200, "it is at most SQS's longest visibility timeout"),
    "RELAY_SWEEP_SECONDS": Range(0.1, 300, "an event of a dead process waits for it"),
    "RELAY_PAUSE_SECONDS": Range(0, 5, "an event waits for it where many come"),
    "RELAY_ROWS": Range(1, 1_000, "this many rows are held in memory while SQS is called"),
    "RELAY_LEASE_SECONDS": Range(30, 3_600, "the rows of a relay that died wait for its end"),
    "RELAY_BATCHES_IN_FLIGHT": Range(1, 9, "each needs a connection of Celery's pool of ten"),
    "PUT_OFF_ENDS_AFTER_SECONDS": Range(60, 604_800, "an email that is later than that is no news"),
    # Celery's form of an event is a JSON text in a JSON text: up to twice as long.
    "EVENT_MAX_BYTES": Range(1_024, 131_072, "its message must fit into SQS's 1 MiB"),
    "OLDEST_EVENT_WARNING_SECONDS": Range(1, 86_400, "nobody looks at what waits less or longer"),
    "PRUNE_OUTBOX_DAYS": DAYS,
    "PRUNE_PROCESSED_EVENTS_DAYS": DAYS,
}


#: A first and a longest wait → how many seconds the longest may be.
_PAIRS: Final[Mapping[str, int]] = {"RELAY_BACKOFF_SECONDS": 300, "PUT_OFF_SECONDS": 86_400}

#: What `numbers_agree` compares with others.
_COMPARED: Final = (
    *("CLAIM_LEASE_SECONDS", "RELAY_LEASE_SECONDS", "EMAIL_TRIES", "EMAIL_TIMEOUT"),
    *("PRUNE_OUTBOX_DAYS", "PRUNE_PROCESSED_EVENTS_DAYS"),
)


def is_number(value: object) -> bool:
    """Whether the value of a setting is a number; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def out_of_range(ranges: Mapping[str, Range], *, id_prefix: str) -> list[CheckMessage]:
    """Return an error for each setting of `ranges` that is not a number in its range."""
    problems: list[CheckMessage] = []
    for number, (name, allowed) in enumerate(ranges.items()):
        value = getattr(settings, name)
        if not is_number(value) or not allowed.least <= value <= allowed.most:
            problems.append(
                Error(
                    f"{name} ({value!r}) is not a number from {allowed.least:g} to "
                    f"{allowed.most:g}: {allowed.why}. Set it to one.",
                    id=f"{id_prefix}.E{200 + number}",
                )
            )
    return problems


@register()
def numbers_are_in_range(**_: Any) -> list[CheckMessage]:
    """Check each number of this app on its own."""
    problems = out_of_range(_RANGES, id_prefix="events")
    for number, (name, most) in enumerate(_PAIRS.items()):
        match getattr(settings, name):
            case (int() | float() as first, int() | float() as longest) if 0 < first <= longest:
                if longest <= most:
                    continue
        problems.append(
            Error(
                f"{name} ({getattr(settings, name)!r}) is not a first and a longest wait, above 0 "
                f"and at most {most} seconds.",
                id=f"events.E{7 + number:03}",
            )
        )
    for service, limits in settings.DATABASE_TIMEOUTS.items():
        match limits:
            case (int() | float() as lock, int() | float() as statement) if 0 < lock < statement:
                pass
            case other:
                problems.append(
                    Error(
                        f"DATABASE_TIMEOUTS of {service} ({other!r}) are not a wait for a lock and "
                        "a longer one for a statement, in seconds above 0.",
                        id="events.E009",
                    )
                )
    return problems


@register()
def numbers_agree(**_: Any) -> list[CheckMessage]:
    """Check the transport's numbers, and those of the claim and the email against them."""
    if not all(is_number(getattr(settings, name)) for name in _COMPARED):
        return []  # the check of their range reports it
    policy = settings.SQS_POLICY
    problems: list[CheckMessage] = [
        Error(problem, id=f"events.E{100 + number}")
        for number, problem in enumerate(policy.problems())
    ]
    lease = settings.CLAIM_LEASE_SECONDS
    if lease <= policy.hard_time_limit:
        problems.append(
            Error(
                f"CLAIM_LEASE_SECONDS ({lease}) is not above the hard time limit "
                f"({policy.hard_time_limit}): another worker could take an event over while its "
                "task still runs. Raise CLAIM_LEASE_SECONDS.",
                id="events.E001",
            )
        )
    if lease > policy.visibility_timeout:
        problems.append(
            Error(
                f"CLAIM_LEASE_SECONDS ({lease}) is above the visibility timeout "
                f"({policy.visibility_timeout}): a redelivered event would find its dead worker's "
                "claim alive and wait for nothing. Lower CLAIM_LEASE_SECONDS.",
                id="events.E002",
            )
        )
    email = settings.EMAIL_TRIES * settings.EMAIL_TIMEOUT + sum(settings.EMAIL_RETRY_WAIT_SECONDS)
    if email >= policy.soft_time_limit:
        problems.append(
            Error(
                f"{settings.EMAIL_TRIES} tries of EMAIL_TIMEOUT ({settings.EMAIL_TIMEOUT} s) and "
                f"their waits take {email} s, not less than the soft time limit "
                f"({policy.soft_time_limit} s). Lower EMAIL_TIMEOUT.",
                id="events.E003",
            )
        )
    if len(settings.EMAIL_RETRY_WAIT_SECONDS) != settings.EMAIL_TRIES - 1:
        problems.append(
            Error(
                "EMAIL_RETRY_WAIT_SECONDS needs one wait between each two of the "
                f"{settings.EMAIL_TRIES} EMAIL_TRIES.",
                id="events.E004",
            )
        )
    call = policy.attempts * (policy.connect_timeout + policy.read_timeout)
    if call >= settings.RELAY_LEASE_SECONDS / 2:
        problems.append(
            Error(
                f"Half of RELAY_LEASE_SECONDS ({settings.RELAY_LEASE_SECONDS}) is not above the "
                f"{call} s that a call of SQS can take: another relay could send what this one "
                "still sends. Raise RELAY_LEASE_SECONDS.",
                id="events.E010",
            )
        )
    return problems + _retention_problems()


def _retention_problems() -> list[CheckMessage]:
    """Return what would let a late repeat of an event be processed as if it were new."""
    # A message can wait in the queue, then in the dead-letter queue, then be put back once more.
    longest = math.ceil((2 * QUEUE_RETENTION + DLQ_RETENTION) / 86_400)
    kept = settings.PRUNE_PROCESSED_EVENTS_DAYS
    problems: list[CheckMessage] = []
    if kept <= longest:
        problems.append(
            Error(
                f"PRUNE_PROCESSED_EVENTS_DAYS ({kept}) is not above {longest}: a queue could still "
                "hold a message whose event would then be processed again. Raise it.",
                id="events.E005",
            )
        )
    if not 0 < settings.PRUNE_OUTBOX_DAYS <= kept:
        problems.append(
            Error(
                f"PRUNE_OUTBOX_DAYS ({settings.PRUNE_OUTBOX_DAYS}) is not 1 to "
                f"PRUNE_PROCESSED_EVENTS_DAYS ({kept}): the outbox row of an event goes first.",
                id="events.E006",
            )
        )
    return problems
