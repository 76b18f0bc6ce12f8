"""Figures for CloudWatch, in its embedded metric format: one log line, extracted there.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html

No network: the lines go out with the other log lines. Each metric comes twice, in all and by event
type or provider, so that an alarm on "all" needs no arithmetic.
"""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Final

import structlog
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import (
    AmazonCloudWatchEMFProvider as EmbeddedMetrics,
)
from django.db import connection, transaction

from skincare.telemetry.identity import IDENTITY, current_service

log = structlog.get_logger(__name__)
logging.getLogger(__name__).setLevel(logging.INFO)  # a figure is not less important at WARNING

NAMESPACE: Final = "Skincare"
#: Every metric and CloudWatch's name of its unit. It has none for money.
UNITS: Final[Mapping[str, str]] = {
    "OrdersCreated": "Count",
    "PaymentProcessed": "Count",
    "PaymentAmountRupiah": "None",
    "PaymentsHeld": "Count",
    "WebhooksRejected": "Count",
    "WebhooksMissed": "Count",
    "GatewayCallsFailed": "Count",
    "OpenAttemptsOver10Minutes": "Count",
    "OpenAttemptsOver2Hours": "Count",
    "OpenAttemptsOver26Hours": "Count",
    "WebhooksUnreadable": "Count",
    "MoneyDisagreements": "Count",
    "EventsFailed": "Count",
    "EventsQuarantined": "Count",
    "DuplicateEvents": "Count",
    "EventLatencySeconds": "Seconds",
    "EmailsPutOff": "Count",
    "EmailsWaiting": "Count",
    "EmailOldestWaitSeconds": "Seconds",
    "EventsNeverClaimed": "Count",
    "SweepsFailed": "Count",
    "OutboxUnsent": "Count",
    "OutboxOldestAgeSeconds": "Seconds",
    "PollFailures": "Count",
    "DeletesDenied": "Count",
    "DeadLetters": "Count",
    "LoginsFailed": "Count",
    "LoginsRefused": "Count",
}


def count(name: str, *, event_type: str = "", provider: str = "") -> None:
    """Count one of `name`, once the transaction that we are in has committed."""
    record({name: 1}, event_type=event_type, provider=provider)


def record(values: Mapping[str, float], *, event_type: str = "", provider: str = "") -> None:
    """Report the metrics in `values`, named in `UNITS`, once our transaction has committed.

    After a rollback nothing is reported, outside of a transaction at once. Every value that a
    dimension takes makes another metric that is paid for: give one of few, never an id. Raises
    KeyError for a name that is not in `UNITS`, here and not only after the commit.
    """
    units = {name: UNITS[name] for name in values}
    given = {"event_type": event_type, "provider": provider}
    dimensions = {name: value for name, value in given.items() if value}
    report = partial(_report, dict(values), units, dimensions)
    if connection.in_atomic_block:
        transaction.on_commit(report, robust=True)
    else:
        report()


def _report(
    values: Mapping[str, float], units: Mapping[str, str], dimensions: Mapping[str, str]
) -> None:
    everything = {"service": current_service(), "environment": IDENTITY.environment}
    metrics = EmbeddedMetrics(namespace=NAMESPACE, dimension_set=dict(everything))
    for name, value in values.items():
        metrics.add_metric(name=name, unit=units[name], value=value)
    if dimensions:
        metrics.add_dimensions(**everything, **dimensions)
    log.info("metrics", **metrics.serialize_metric_set())
