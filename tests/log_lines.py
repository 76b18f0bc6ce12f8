"""Reading the log lines of this process and of others, and the rules for metrics in them."""

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skincare.telemetry.logs import StdoutHandler

Line = dict[str, Any]

#: What every line of API and worker has.
FIELDS = {"timestamp", "level", "event", "service", "env", "release", "logger"}


class Lines:
    """The lines that were written while it was open."""

    def __init__(self, written: io.StringIO) -> None:
        self._written = written

    @property
    def text(self) -> str:
        return self._written.getvalue()

    def all(self) -> list[Line]:
        return [json.loads(line) for line in self.text.splitlines()]

    def of(self, event: str) -> list[Line]:
        return [line for line in self.all() if line["event"] == event]

    def metric(self, name: str) -> list[Line]:
        """The lines that tell this metric."""
        return [line for line in self.all() if name in line and "_aws" in line]


@contextmanager
def captured() -> Iterator[Lines]:
    """What this process writes to its log while the block runs."""
    [handler] = [h for h in logging.getLogger().handlers if isinstance(h, StdoutHandler)]
    written = io.StringIO()
    before = handler.setStream(written)
    try:
        yield Lines(written)
    finally:
        if before is not None:
            handler.setStream(before)


def read_log(path: Path) -> list[Line]:
    """The lines of another process. Raises ValueError, with the line, where one is no object."""
    lines = []
    for text in path.read_text().splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            raise ValueError(f"no JSON in {path.name}: {text!r}") from None
        if not isinstance(line, dict):
            raise ValueError(f"no object in {path.name}: {text!r}")
        lines.append(line)
    return lines


#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricDatum.html
CLOUDWATCH_UNITS = {
    *("Seconds", "Microseconds", "Milliseconds", "Count", "Percent", "None"),
    *(f"{size}{what}" for size in ("", "Kilo", "Mega", "Giga", "Tera") for what in ("Bytes",)),
}


def embedded_metric_problems(line: Line) -> list[str]:
    """What in a line breaks the rules of CloudWatch's embedded metric format.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
    """
    metadata = line["_aws"]
    problems = []
    if not isinstance(metadata.get("Timestamp"), int) or metadata["Timestamp"] < 10**12:
        problems.append("Timestamp is no time in milliseconds")
    directives = metadata.get("CloudWatchMetrics")
    if not isinstance(directives, list) or not directives:
        return [*problems, "CloudWatchMetrics is no list of directives"]
    for directive in directives:
        problems += _directive_problems(directive, line)
    return problems


def _directive_problems(directive: dict[str, Any], line: Line) -> list[str]:
    problems = []
    if not 1 <= len(directive.get("Namespace", "")) <= 1024:
        problems.append("Namespace is missing")
    for names in directive["Dimensions"]:
        if not 1 <= len(names) <= 30 or len(set(names)) != len(names):
            problems.append(f"{names} is no set of 1 to 30 dimensions")
        for name in names:
            value = line.get(name)
            if not isinstance(value, str) or not 1 <= len(value) <= 1024 or not value.isascii():
                problems.append(f"dimension {name} is {value!r}")
    if not 1 <= len(directive["Metrics"]) <= 100:
        problems.append("not 1 to 100 metrics")
    for metric in directive["Metrics"]:
        values = line.get(metric["Name"])
        values = values if isinstance(values, list) else [values]
        if not 1 <= len(values) <= 100 or any(type(v) not in (int, float) for v in values):
            problems.append(f"metric {metric['Name']} is {values!r}")
        if metric["Unit"] not in CLOUDWATCH_UNITS:
            problems.append(f"unit {metric['Unit']}")
    return problems
