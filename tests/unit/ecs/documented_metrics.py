"""What AWS documents of the metrics that alarms, scaling and dashboard watch: dimensions, units and
statistics.

A metric is published under the combinations of dimensions listed here and no other; an alarm on
another one never gets a datum. A count of what happened is a sum: its average is that of single
reports, 1 however much happened. Each table names the page that it was copied from.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Documented:
    """One metric: the sets of dimensions that it is published under, its unit, and what can be made
    of its datums.
    """

    dimensions: Set[frozenset[str]]
    unit: str
    statistics: Set[str] = frozenset({"Minimum", "Maximum", "Average", "p50", "p90", "p95", "p99"})


def _sets(*combinations: str) -> Set[frozenset[str]]:
    return {frozenset(combination.split()) for combination in combinations}


_SUM: Final = frozenset({"Sum"})
_SERVICE: Final = "ClusterName ServiceName"
_BALANCER: Final = ("LoadBalancer", "AvailabilityZone LoadBalancer")
_DATABASE: Final = _sets("DBInstanceIdentifier", "DatabaseClass", "EngineName")
_TARGETS: Final = ("TargetGroup LoadBalancer", "TargetGroup AvailabilityZone LoadBalancer")

DOCUMENTED: Final[Mapping[tuple[str, str], Documented]] = {
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Container-Insights-enhanced-observability-metrics-ECS.html
    ("ECS/ContainerInsights", "RunningTaskCount"): Documented(_sets(_SERVICE), "Count"),
    ("ECS/ContainerInsights", "DesiredTaskCount"): Documented(_sets(_SERVICE), "Count"),
    ("ECS/ContainerInsights", "UnHealthyContainerHealthStatus"): Documented(
        _sets(
            "ClusterName",
            "ClusterName ServiceName ContainerName",
            "ClusterName TaskDefinitionFamily ContainerName",
            "ClusterName ServiceName TaskId ContainerName",
            "ClusterName TaskDefinitionFamily TaskId ContainerName",
        ),
        "Count",
    ),
    # https://docs.aws.amazon.com/AmazonECS/latest/developerguide/available-metrics.html
    ("AWS/ECS", "CPUUtilization"): Documented(_sets("ClusterName", _SERVICE), "Percent"),
    ("AWS/ECS", "MemoryUtilization"): Documented(_sets("ClusterName", _SERVICE), "Percent"),
    # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible"): Documented(_sets("QueueName"), "Count"),
    ("AWS/SQS", "ApproximateNumberOfMessagesNotVisible"): Documented(_sets("QueueName"), "Count"),
    ("AWS/SQS", "ApproximateAgeOfOldestMessage"): Documented(_sets("QueueName"), "Seconds"),
    ("AWS/SQS", "NumberOfMessagesSent"): Documented(_sets("QueueName"), "Count", _SUM),
    ("AWS/SQS", "NumberOfMessagesReceived"): Documented(_sets("QueueName"), "Count", _SUM),
    ("AWS/SQS", "NumberOfMessagesDeleted"): Documented(_sets("QueueName"), "Count", _SUM),
    # https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-cloudwatch-metrics.html
    # What a target answered, and what the load balancer answered in its place (by it alone).
    ("AWS/ApplicationELB", "RequestCount"): Documented(_sets(*_BALANCER, *_TARGETS), "Count", _SUM),
    ("AWS/ApplicationELB", "TargetResponseTime"): Documented(
        _sets(*_BALANCER, *_TARGETS), "Seconds"
    ),
    ("AWS/ApplicationELB", "HTTPCode_Target_5XX_Count"): Documented(
        _sets(*_BALANCER, *_TARGETS), "Count", _SUM
    ),
    ("AWS/ApplicationELB", "HTTPCode_ELB_502_Count"): Documented(_sets(*_BALANCER), "Count", _SUM),
    ("AWS/ApplicationELB", "HTTPCode_ELB_504_Count"): Documented(_sets(*_BALANCER), "Count", _SUM),
    ("AWS/ApplicationELB", "HealthyHostCount"): Documented(_sets(*_TARGETS), "Count"),
    # https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/rds-metrics.html
    # https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/dimensions.html
    ("AWS/RDS", "FreeStorageSpace"): Documented(_DATABASE, "Bytes"),
    ("AWS/RDS", "DatabaseConnections"): Documented(_DATABASE, "Count"),
    ("AWS/RDS", "CPUUtilization"): Documented(_DATABASE, "Percent"),
    # https://docs.aws.amazon.com/scheduler/latest/UserGuide/monitoring-cloudwatch.html
    ("AWS/Scheduler", "TargetErrorCount"): Documented(_sets("ScheduleGroup"), "Count", _SUM),
    ("AWS/Scheduler", "InvocationDroppedCount"): Documented(_sets("ScheduleGroup"), "Count", _SUM),
}
