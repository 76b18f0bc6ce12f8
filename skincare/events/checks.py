"""System checks over the numbers that must agree; each says how to mend what is wrong."""

import math
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from skincare.sqs.queues import DLQ_RETENTION, QUEUE_RETENTION


@register()
def numbers_agree(**_: Any) -> list[CheckMessage]:
    """Check the transport's numbers, and those of the claim and the email against them."""
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
