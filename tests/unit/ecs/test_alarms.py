"""Alarms, dashboard and scaling watch metrics that exist; thresholds follow the policy."""

import ast
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from structlog.testing import capture_logs

from ecs.template import Deployed, deployed, load, names
from payments import reconciliation
from payments.asking_times import AFTER_EXPIRY
from skincare.events.schema import PAYMENT_PROCESSED
from skincare.telemetry.metrics import NAMESPACE, UNITS, count
from tests.unit.ecs.account import LOAD_BALANCER
from tests.unit.ecs.documented_metrics import DOCUMENTED

ROOT = Path(settings.BASE_DIR)
#: What the shop reads off now and then; all else it counts when it happens.
READINGS = {
    *("OutboxOldestAgeSeconds", "OutboxUnsent", "MoneyDisagreements", "OpenAttemptsOver26Hours"),
    *("EmailOldestWaitSeconds", "SweepsFailed", "DeadLetters"),
}
#: What each of these services counts; the relay is a service within the others.
SERVICES = {"api", "worker", "relay", "manage"}


@pytest.fixture(scope="module")
def deployment() -> Deployed:
    return deployed(**LOAD_BALANCER)


@pytest.fixture(scope="module")
def alarms(deployment: Deployed) -> dict[str, dict[str, Any]]:
    found = deployment.resources("AWS::CloudWatch::Alarm").values()
    return {alarm["AlarmName"].removeprefix("skincare-"): alarm for alarm in found}


Metric = tuple[str, str, dict[str, str]]


def metrics_of(properties: dict[str, Any]) -> Iterator[Metric]:
    """Every namespace, name and dimensions in an alarm or a scaling policy."""
    if "MetricName" in properties:
        dimensions = {d["Name"]: d["Value"] for d in properties.get("Dimensions", [])}
        yield properties["Namespace"], properties["MetricName"], dimensions
    for query in properties.get("Metrics", []):
        if "MetricStat" in query:
            yield from metrics_of(query["MetricStat"]["Metric"])


def dashboard_metrics(deployment: Deployed) -> Iterator[Metric]:
    body = json.loads(deployment.resource("dashboard", "Dashboard")["DashboardBody"])
    for widget in body["widgets"]:
        for metric in widget["properties"]["metrics"]:
            texts = [part for part in metric if isinstance(part, str)]
            if texts:
                namespace, name, *pairs = texts
                yield namespace, name, dict(zip(pairs[::2], pairs[1::2], strict=True))


def tracked_metrics(deployment: Deployed) -> list[dict[str, Any]]:
    """What the workers' scaling follows."""
    return [
        deployment.resource("scaling", policy)["TargetTrackingScalingPolicyConfiguration"][
            "CustomizedMetricSpecification"
        ]
        for policy in ("WorkerBacklog", "WorkerArrivals")
    ]


def all_metrics(deployment: Deployed) -> list[Metric]:
    alarms = deployment.resources("AWS::CloudWatch::Alarm").values()
    return [
        *(metric for alarm in alarms for metric in metrics_of(alarm)),
        *(metric for policy in tracked_metrics(deployment) for metric in metrics_of(policy)),
        *dashboard_metrics(deployment),
    ]


def test_the_metrics_of_the_shop_are_those_that_it_tells(deployment: Deployed) -> None:
    ours = [metric for metric in all_metrics(deployment) if metric[0] == NAMESPACE]

    assert {name for _, name, _ in ours} <= set(UNITS)
    for _, name, dimensions in ours:
        assert set(dimensions) == {"service", "environment"}, name
        assert dimensions["service"] in SERVICES
        assert dimensions["environment"] == "production"


def test_a_metric_that_is_told_has_the_dimensions_that_the_alarms_watch() -> None:
    with capture_logs() as lines:
        count("EventsFailed", event_type="payment.processed")

    (directive,) = lines[0]["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == NAMESPACE
    assert {"service", "environment"} in [set(found) for found in directive["Dimensions"]]


@pytest.mark.parametrize("name", ["production", "skincare-staging"])
def test_every_task_says_the_environment_that_the_alarms_watch(name: str) -> None:
    deployment = deployed(**LOAD_BALANCER, EnvironmentName=name)

    for task in ("api", "worker", "migration"):
        (container,) = deployment.resource(task, "TaskDefinition")["ContainerDefinitions"]
        assert {"Name": "ENVIRONMENT_NAME", "Value": name} in container["Environment"]
    watched = [metric for metric in all_metrics(deployment) if metric[0] == NAMESPACE]
    assert {dimensions["environment"] for _, _, dimensions in watched} == {name}


def test_the_metrics_of_aws_are_of_our_queues_services_and_load_balancer(
    deployment: Deployed,
) -> None:
    queues = {queue["QueueName"] for queue in deployment.resources("AWS::SQS::Queue").values()}
    services = {
        deployment.resource(service, "Service")["ServiceName"] for service in ("api", "worker")
    }
    for namespace, name, dimensions in all_metrics(deployment):
        if namespace == "AWS/SQS":
            assert dimensions["QueueName"] in queues, name
        elif namespace in ("ECS/ContainerInsights", "AWS/ECS"):
            assert dimensions["ClusterName"] == "skincare"
            assert dimensions["ServiceName"] in services, name
        elif namespace == "AWS/ApplicationELB":
            assert dimensions["LoadBalancer"] == "app/shop/0123"
            assert dimensions.get("TargetGroup") in (None, "targetgroup/skincare-api/4567")
        elif namespace == "AWS/RDS":
            assert dimensions == {"DBInstanceIdentifier": "<DatabaseInstance>"}


def test_each_metric_of_aws_has_the_dimensions_that_it_is_published_with(
    deployment: Deployed,
) -> None:
    for namespace, name, dimensions in all_metrics(deployment):
        if namespace.startswith(NAMESPACE):
            continue
        assert frozenset(dimensions) in DOCUMENTED[namespace, name].dimensions, (
            f"{namespace} {name} is never published by {sorted(dimensions)}"
        )


def test_an_alarm_that_asks_for_a_unit_asks_for_the_metrics_own(deployment: Deployed) -> None:
    # A datum in another unit is never found, and no unit finds all.
    for alarm in deployment.resources("AWS::CloudWatch::Alarm").values():
        for part in [
            alarm,
            *(q["MetricStat"] for q in alarm.get("Metrics", []) if "MetricStat" in q),
        ]:
            if "Unit" in part:
                metric = part.get("Metric", part)
                known = DOCUMENTED[metric["Namespace"], metric["MetricName"]]
                assert part["Unit"] == known.unit


def statistics_of(properties: Any) -> Iterator[tuple[str, str, str]]:
    """Every namespace, name and statistic in an alarm or a scaling policy."""
    if "MetricName" in properties:
        yield properties["Namespace"], properties["MetricName"], properties["Statistic"]
    for query in properties.get("Metrics", []):
        if "MetricStat" in query:
            metric = query["MetricStat"]["Metric"]
            yield metric["Namespace"], metric["MetricName"], query["MetricStat"]["Stat"]


def test_each_metric_of_aws_is_read_by_a_statistic_that_says_something(
    deployment: Deployed,
) -> None:
    alarms = deployment.resources("AWS::CloudWatch::Alarm").values()
    for watched in (*alarms, *tracked_metrics(deployment)):
        for namespace, name, statistic in statistics_of(watched):
            if not namespace.startswith(NAMESPACE):
                assert statistic in DOCUMENTED[namespace, name].statistics, name


def test_what_the_shop_counts_is_added_up_and_what_it_reads_is_not(deployment: Deployed) -> None:
    for alarm in deployment.resources("AWS::CloudWatch::Alarm").values():
        for namespace, name, statistic in statistics_of(alarm):
            if namespace == NAMESPACE:
                assert (statistic == "Sum") is (name not in READINGS), name


def test_the_alarm_on_unhealthy_workers_names_their_container(
    deployment: Deployed, alarms: dict[str, dict[str, Any]]
) -> None:
    ((_, _, dimensions),) = metrics_of(alarms["worker-unhealthy"])
    (container,) = deployment.resource("worker", "TaskDefinition")["ContainerDefinitions"]

    assert dimensions["ContainerName"] == container["Name"]


def test_each_metric_of_the_shop_is_watched_or_the_readme_says_why_not(
    deployment: Deployed,
) -> None:
    watched = {
        name
        for alarm in deployment.resources("AWS::CloudWatch::Alarm").values()
        for namespace, name, _ in metrics_of(alarm)
        if namespace == NAMESPACE
    }
    readme = (ROOT / "ecs" / "README.md").read_text()
    explained = set(re.findall(r"^\| `(\w+)` \| \w", readme, re.MULTILINE))

    assert set(UNITS) - watched == explained & set(UNITS)
    assert watched <= set(UNITS)


def test_what_is_missing_before_the_first_service_alarms_nobody_then(
    deployment: Deployed,
) -> None:
    # deploy.sh makes these after the services; each of the others is quiet without data.
    late = {"skincare-worker-missing", "skincare-api-unhealthy"}
    presence = deployment.resources("AWS::CloudWatch::Alarm", "alarms-presence").values()

    assert {alarm["AlarmName"] for alarm in presence} == late
    for alarm in deployment.resources("AWS::CloudWatch::Alarm").values():
        quiet = alarm["TreatMissingData"] == "notBreaching"
        assert quiet is (alarm["AlarmName"] not in late), alarm["AlarmName"]


@pytest.mark.parametrize(
    "name",
    [
        "outbox-growing",
        "deletes-denied",
        "webhooks-rejected",
        "webhooks-missed",
        "gateway-down",
        "attempts-open",
        "worker-crashing",
        "api-crashing",
        "schedules-failing",
        "dead-letters",
        "oldest-event",
        "deaf-workers",
        "backlog-growing",
        "outbox-stuck",
        "no-payments",
        "events-failed",
        "worker-unhealthy",
        "worker-missing",
        "api-errors",
        "api-unhealthy",
        "database-disk",
        "database-connections",
        "database-cpu",
    ],
)
def test_each_alarm_wakes_somebody_and_says_when_it_is_over(
    name: str, alarms: dict[str, dict[str, Any]]
) -> None:
    assert alarms[name]["AlarmActions"] == alarms[name]["OKActions"] == ["alarms-topic.Topic"]
    assert alarms[name]["AlarmDescription"]
    assert "TreatMissingData" in alarms[name]


def test_the_runbook_says_what_to_do_for_each_alarm(alarms: dict[str, dict[str, Any]]) -> None:
    runbook = (ROOT / "docs" / "runbook.md").read_text()
    readme = (ROOT / "ecs" / "README.md").read_text()

    for name in alarms:
        assert f"| `{name}`" in runbook
        assert f"| `{name}`" in readme


def test_a_failing_event_is_given_up_before_its_age_alarms(
    alarms: dict[str, dict[str, Any]],
) -> None:
    policy = settings.SQS_POLICY
    longest_retry = sum(policy.backoff) * (1 + policy.backoff_jitter)

    assert alarms["oldest-event"]["Threshold"] > longest_retry
    assert alarms["oldest-event"]["Threshold"] > policy.visibility_timeout


def test_the_outbox_alarms_later_than_the_relay_tries_again(
    alarms: dict[str, dict[str, Any]],
) -> None:
    threshold = alarms["outbox-stuck"]["Threshold"]

    assert threshold > settings.RELAY_SWEEP_SECONDS * 1.25
    assert threshold > settings.RELAY_BACKOFF_SECONDS[1]


def test_a_gateway_is_down_whoever_called_it(alarms: dict[str, dict[str, Any]]) -> None:
    watched = list(metrics_of(alarms["gateway-down"]))

    assert {name for _, name, _ in watched} == {"GatewayCallsFailed"}
    assert {dimensions["service"] for _, _, dimensions in watched} == {"api", "worker", "relay"}
    (sum_,) = [one for one in alarms["gateway-down"]["Metrics"] if one.get("ReturnData")]
    for one in ("api", "worker", "relay"):
        # Without FILL, a service that counted nothing would leave the sum without a value.
        assert f"FILL({one}, 0)" in sum_["Expression"]


def test_an_attempt_is_open_too_long_only_when_no_page_lives_so_long(
    alarms: dict[str, dict[str, Any]],
) -> None:
    alarm = alarms["attempts-open"]
    longest = max(settings.PAYMENT_WINDOW_MINUTES.values())

    # A page is opened up to so long after its order, and asked for after its end.
    latest = timedelta(minutes=longest + settings.ORDER_WINDOW_MINUTES)
    assert reconciliation._AGES[alarm["MetricName"]] > latest + AFTER_EXPIRY
    assert alarm["Statistic"] == "Maximum"  # each relay reports them all
    assert alarm["Period"] >= reconciliation.GAUGE_SECONDS


def test_one_dead_letter_is_enough(alarms: dict[str, dict[str, Any]]) -> None:
    alarm = alarms["dead-letters"]

    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", 0)
    assert alarm["EvaluationPeriods"] == 1


def test_the_log_lines_that_are_counted_are_written(deployment: Deployed) -> None:
    (counted,) = deployment.resources("AWS::Logs::MetricFilter", "alarms-events").values()
    pattern = re.fullmatch(
        r'\{ \$\.event = "(\w+)" && \$\.(\w+) = "([\w.]+)" \}', counted["FilterPattern"]
    )
    assert pattern is not None
    event, field, value = pattern.groups()

    written = log_calls(ROOT / "skincare" / "events" / "outbox.py")
    assert field in written[event]
    assert value == PAYMENT_PROCESSED
    assert counted["LogGroupName"] in {
        group["LogGroupName"] for group in deployment.resources("AWS::Logs::LogGroup").values()
    }
    name = counted["MetricTransformations"][0]["MetricName"]
    namespace = counted["MetricTransformations"][0]["MetricNamespace"]
    assert (namespace, name, {}) in all_metrics(deployment)


def test_what_is_counted_of_stopped_tasks_is_watched(deployment: Deployed) -> None:
    filters = deployment.resources("AWS::Logs::MetricFilter", "alarms-tasks").values()

    for counted in filters:
        (made,) = counted["MetricTransformations"]
        assert (made["MetricNamespace"], made["MetricName"], {}) in all_metrics(deployment)
        assert counted["LogGroupName"] == "alarms-tasks.StoppedTasks"
    assert {counted["FilterPattern"] for counted in filters} >= {
        '{ $.detail.group = "service:skincare-worker" }',
        '{ $.detail.group = "service:skincare-api" }',
    }


def test_only_tasks_that_ended_by_themselves_count_as_crashed(deployment: Deployed) -> None:
    # https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_Task.html#ECS-Type-Task-stopCode
    pattern = deployment.resource("alarms-tasks", "TaskEnds")["EventPattern"]

    assert pattern["detail"]["stopCode"] == ["EssentialContainerExited", "TaskFailedToStart"]
    assert pattern["detail"]["clusterArn"][0].endswith(":cluster/skincare")


def test_what_somebody_gives_a_one_off_command_is_written_into_no_log(
    deployment: Deployed,
) -> None:
    # The event of a task has its overrides, and with them a password: the first hour's sixth step.
    # https://github.com/aws/containers-roadmap/issues/2317
    pattern = deployment.resource("alarms-tasks", "TaskEnds")["EventPattern"]
    (started_by,) = re.findall(r"started_by=(\S+)", (ROOT / "ecs" / "run.sh").read_text())

    assert pattern["detail"]["startedBy"] == [{"anything-but": [started_by]}]


def log_calls(path: Path) -> dict[str, set[str]]:
    """Return the fields of each event name that is logged in a file."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("log."):
            fields = {keyword.arg for keyword in node.keywords if keyword.arg}
            for text in ast.walk(node.args[0]):
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    found[text.value] = fields
    return found


def test_every_parameter_is_documented_and_used() -> None:
    for name in names():
        template = load(name)
        text = (ROOT / "ecs" / f"{name}.yaml").read_text()
        for parameter, definition in template.parameters.items():
            assert definition.get("Description"), f"{name}.yaml: {parameter}"
            assert text.count(parameter) > 1, f"{name}.yaml does not use {parameter}"


def test_a_parameter_that_two_templates_share_is_the_same_in_both() -> None:
    seen: dict[str, tuple[str, Any]] = {}
    for name in names():
        for parameter, definition in load(name).parameters.items():
            other, known = seen.setdefault(parameter, (name, definition))
            assert {k: definition.get(k) for k in ("Type", "Default", "AllowedPattern")} == {
                k: known.get(k) for k in ("Type", "Default", "AllowedPattern")
            }, f"{parameter} in {name}.yaml and {other}.yaml"
