"""Each alarm turns red on what it is for, and stays green on a good day and without data."""

from collections.abc import Mapping
from typing import Any

import pytest

from ecs.template import deployed
from tests.unit.ecs.account import LOAD_BALANCER
from tests.unit.ecs.alarm_clock import DataPoints, calculated

ALARMS: dict[str, dict[str, Any]] = {
    alarm["AlarmName"].removeprefix("skincare-"): alarm
    for alarm in deployed(**LOAD_BALANCER).resources("AWS::CloudWatch::Alarm").values()
}
#: These are made after the services, whose metrics come from then on.
PRESENCE = {"worker-missing", "api-unhealthy"}
NOW, MINUTES = 1_764_500_000.0, 240

Reported = Mapping[str, float]
#: What is told in each minute when something is wrong; a metric alone is above its threshold.
WRONG: dict[str, Reported] = {
    "dead-letters": {"DeadLetters": 1},
    "deaf-workers": {"ApproximateNumberOfMessagesVisible": 5, "RunningTaskCount": 1},
    "gateway-down": {"GatewayCallsFailed": 1},
    "no-payments": {"PaymentsAccepted": 1},
    "api-errors": {"RequestCount": 100, "HTTPCode_Target_5XX_Count": 2},
    "schedules-failing": {"InvocationDroppedCount": 1},
    "database-disk": {"FreeStorageSpace": 1_000_000_000},
    "worker-missing": {"DesiredTaskCount": 2, "RunningTaskCount": 1},
    "api-unhealthy": {"HealthyHostCount": 0},
}
#: What is told in each minute of a good day in which much is sold.
WELL: Reported = {
    "ApproximateNumberOfMessagesVisible": 0,
    "NumberOfMessagesReceived": 500,
    "RunningTaskCount": 2,
    "DesiredTaskCount": 2,
    "HealthyHostCount": 2,
    "RequestCount": 3000,
    "HTTPCode_Target_5XX_Count": 1,
    "HTTPCode_ELB_502_Count": 1,
    "PaymentsAccepted": 40,
    "PaymentProcessed": 40,
    "ApproximateAgeOfOldestMessage": 2,
    "OutboxOldestAgeSeconds": 1,
    "OutboxUnsent": 30,
    "EmailOldestWaitSeconds": 20,
    "DeadLetters": 0,
    "MoneyDisagreements": 0,
    "OpenAttemptsOver26Hours": 0,
    "SweepsFailed": 0,
    "FreeStorageSpace": 15_000_000_000,
    "DatabaseConnections": 200,
    "CPUUtilization": 40,
}


def metrics(alarm: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if "MetricName" in alarm:
        return [alarm]
    return [q["MetricStat"]["Metric"] for q in alarm["Metrics"] if "MetricStat" in q]


def told(alarm: Mapping[str, Any], reported: Reported) -> DataPoints:
    """The alarm's metrics, as they were reported in each of the last minutes."""
    points = DataPoints()
    for metric in metrics(alarm):
        if (value := reported.get(metric["MetricName"])) is not None:
            dimensions = {d["Name"]: d["Value"] for d in metric.get("Dimensions", ())}
            for minute in range(MINUTES):
                at = NOW - 60 * minute
                points.add(metric["Namespace"], metric["MetricName"], at, value, **dimensions)
    return points


@pytest.mark.parametrize("name", sorted(set(ALARMS) - {"backlog-growing"}))
def test_an_alarm_turns_red_on_what_it_is_for(name: str) -> None:
    alarm = ALARMS[name]
    if name not in WRONG:
        assert "MetricName" in alarm, "say above what it is for"
    reported = WRONG.get(name) or {alarm.get("MetricName", ""): alarm["Threshold"] + 1}

    assert told(alarm, reported).state(alarm, NOW) == "ALARM"


def test_a_backlog_that_grows_is_told_and_one_that_is_worked_off_is_not() -> None:
    alarm = ALARMS["backlog-growing"]
    states = []
    for growth in (3, -3):
        points = told(alarm, {"RunningTaskCount": 2})
        queue = next(m for m in metrics(alarm) if m["Namespace"] == "AWS/SQS")
        for minute in range(30):
            points.add(
                queue["Namespace"],
                queue["MetricName"],
                NOW - 60 * minute,
                1000 - growth * minute,
                QueueName=queue["Dimensions"][0]["Value"],
            )
        states.append(points.state(alarm, NOW))

    assert states == ["ALARM", "OK"]


@pytest.mark.parametrize("name", sorted(ALARMS))
def test_an_alarm_is_green_on_a_good_day(name: str) -> None:
    assert told(ALARMS[name], WELL).state(ALARMS[name], NOW) == "OK"


@pytest.mark.parametrize("name", sorted(ALARMS))
def test_before_anything_was_told_only_presence_is_missed(name: str) -> None:
    state = DataPoints().state(ALARMS[name], NOW)

    assert state == ("ALARM" if name in PRESENCE else "OK")


@pytest.mark.parametrize(
    ("expression", "values", "before", "result"),
    [
        ("FILL(a, 0) + FILL(b, 0)", {"a": None, "b": 2.0}, {}, 2.0),
        ("MAX([FILL(a, 0), FILL(b, 0)])", {"a": 1.0, "b": 3.0}, {}, 3.0),
        ("IF(a > 0 AND FILL(b, 0) == 0, a, 0)", {"a": 4.0, "b": None}, {}, 4.0),
        ("IF(a > 0 AND FILL(b, 0) == 0, a, 0)", {"a": None, "b": None}, {}, None),
        ("IF(a > 20, 100 * b / a, 0)", {"a": 0.0, "b": 1.0}, {}, 0.0),
        ("DIFF(a)", {"a": 5.0}, {"a": 3.0}, 2.0),
        ("DIFF(a)", {"a": 5.0}, {"a": None}, None),
        ("a - b", {"a": 5.0, "b": None}, {}, None),
    ],
)
def test_metric_math_is_read_as_cloudwatch_reads_it(
    expression: str,
    values: dict[str, float | None],
    before: dict[str, float | None],
    result: float | None,
) -> None:
    assert calculated(expression, values, before) == result
