"""Alarms, evaluated on data points as CloudWatch does: periods, statistics, metric math, gaps.

As much of it as the templates use. What nothing reported in a period has no data point there.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html
"""

import ast
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from statistics import fmean
from typing import Any

from tests.log_lines import Line

Metric = tuple[str, str, frozenset[tuple[str, str]]]
Value = float | None

STATISTICS: dict[str, Callable[[list[float]], float]] = {
    "Sum": sum,
    "Average": fmean,
    "Maximum": max,
    "Minimum": min,
}
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "GreaterThanThreshold": lambda value, threshold: value > threshold,
    "LessThanThreshold": lambda value, threshold: value < threshold,
}
OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Gt: operator.gt,
    ast.Eq: operator.eq,
}


class DataPoints:
    """What was reported: by metric, the second and the value of each data point."""

    def __init__(self) -> None:
        self._points: dict[Metric, list[tuple[float, float]]] = defaultdict(list)

    def add(self, namespace: str, name: str, at: float, value: float, **dimensions: str) -> None:
        self._points[namespace, name, frozenset(dimensions.items())].append((at, value))

    def add_lines(self, lines: Iterable[Line]) -> None:
        """Take the metrics that are embedded in log lines, in every set of their dimensions."""
        for line in lines:
            for directive in line.get("_aws", {}).get("CloudWatchMetrics", ()):
                for names in directive["Dimensions"]:
                    dimensions = {name: line[name] for name in names}
                    for metric in directive["Metrics"]:
                        values = line[metric["Name"]]
                        for value in values if isinstance(values, list) else [values]:
                            at = line["_aws"]["Timestamp"] / 1000
                            self.add(
                                directive["Namespace"], metric["Name"], at, value, **dimensions
                            )

    def has(self, namespace: str, name: str) -> bool:
        return any(key[:2] == (namespace, name) for key in self._points)

    def state(self, alarm: Mapping[str, Any], now: float) -> str:
        """Return OK or ALARM, as an alarm with these properties is at a second."""
        points = [self._result(alarm, now, ago) for ago in range(int(alarm["EvaluationPeriods"]))]
        compare = COMPARISONS[alarm["ComparisonOperator"]]
        breaching = sum(
            alarm["TreatMissingData"] == "breaching"
            if point is None
            else compare(point, float(alarm["Threshold"]))
            for point in points
        )
        needed = int(alarm.get("DatapointsToAlarm", alarm["EvaluationPeriods"]))
        return "ALARM" if breaching >= needed else "OK"

    def _result(self, alarm: Mapping[str, Any], now: float, ago: int) -> Value:
        if "MetricName" in alarm:
            return self._statistic(alarm, alarm["Statistic"], alarm["Period"], now, ago)
        queries = {query["Id"]: query for query in alarm["Metrics"]}
        (asked,) = (query for query in queries.values() if query["ReturnData"])

        def values(ago: int) -> dict[str, Value]:
            return {
                name: self._statistic(stat["Metric"], stat["Stat"], stat["Period"], now, ago)
                for name, query in queries.items()
                if (stat := query.get("MetricStat"))
            }

        return calculated(asked["Expression"], values(ago), values(ago + 1))

    def _statistic(
        self, metric: Mapping[str, Any], statistic: str, period: int, now: float, ago: int
    ) -> Value:
        dimensions = frozenset((d["Name"], d["Value"]) for d in metric.get("Dimensions", ()))
        end = now - ago * period
        found = [
            value
            for at, value in self._points[metric["Namespace"], metric["MetricName"], dimensions]
            if end - period < at <= end
        ]
        return STATISTICS[statistic](found) if found else None


def calculated(expression: str, values: Mapping[str, Value], before: Mapping[str, Value]) -> Value:
    """Return what metric math says of one period, and None where data is missing."""
    # Python's grammar has all of it but for the two words.
    python = re.sub(r"DIFF\((\w+)\)", r"(\1 - before_\1)", expression).replace(" AND ", " and ")
    names = {**values, **{f"before_{name}": value for name, value in before.items()}}
    try:
        result = _value(ast.parse(python, mode="eval").body, names)
    except (TypeError, ZeroDivisionError):  # with what is missing, or divided by nothing
        return None
    return None if result is None else float(result)


def _value(node: ast.expr, names: Mapping[str, Value]) -> Any:
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name):
            return names[name]
        case ast.List(items):
            return [_value(item, names) for item in items]
        case ast.BinOp(left, sign, right) | ast.Compare(left, [sign], [right]):
            return OPERATORS[type(sign)](_value(left, names), _value(right, names))
        case ast.BoolOp(ast.And(), conditions):
            return all(_value(condition, names) for condition in conditions)
        case ast.Call(ast.Name("IF"), [condition, then, otherwise]):
            return _value(then if _value(condition, names) else otherwise, names)
        case ast.Call(ast.Name("FILL"), [value, instead]):
            found = _value(value, names)
            return _value(instead, names) if found is None else found
        case ast.Call(ast.Name("MAX"), [items]):
            return max(_value(items, names))
    raise ValueError(f"no metric math that is known here: {ast.unparse(node)}")
