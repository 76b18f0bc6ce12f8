"""The first hour of ecs/README.md, walked through on the shop as it is confined on AWS.

The commands are read out of the table, so that it says what works. What only AWS has, its load
balancer and Container Insights, is taken to be well; all else that an alarm watches was reported by
the shop.
"""

import json
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import requests

from ecs.template import FOLDER, deployed
from skincare.local.deadline import wait_until
from skincare.local.mailbox import Mailbox
from skincare.local.outsiders import Buyer, Clerk
from skincare.sqs.queues import depth
from tests.integration.ecs.test_least_privilege import DEAD_LETTERS, QUEUE, ConfinedStack
from tests.log_lines import Line, read_log
from tests.unit.ecs.account import LOAD_BALANCER
from tests.unit.ecs.alarm_clock import DataPoints

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

README = (FOLDER / "README.md").read_text()
ALARMS = {
    alarm["AlarmName"].removeprefix("skincare-"): alarm
    for alarm in deployed(**LOAD_BALANCER, EnvironmentName="development")
    .resources("AWS::CloudWatch::Alarm")
    .values()
}
#: What the shop reads off by itself, without being used.
READINGS = ("OutboxOldestAgeSeconds", "OutboxUnsent", "OpenAttemptsOver26Hours", "DeadLetters")
BALANCER = {"LoadBalancer": "app/shop/0123", "TargetGroup": "targetgroup/skincare-api/4567"}
WORKER = {"ClusterName": "skincare", "ServiceName": "skincare-worker"}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfinedStack]:
    with ExitStack() as closing, pytest.MonkeyPatch.context() as patch:
        for name in ("DATABASE_URL", "SQS_ENDPOINT_URL"):
            patch.delenv(name, raising=False)  # the stack makes servers of its own
        with ConfinedStack(tmp_path_factory.mktemp("first-hour"), closing) as stack:
            yield stack


def one_off_command(word: str) -> tuple[list[str], dict[str, str]]:
    """Return the arguments of `manage` in the table's command with this word, and its variable."""
    (command,) = re.findall(rf"`([^`]*ecs/run\.sh [^`]*\bmanage {word}[^`]*)`", README)
    words = shlex.split(command)
    variables = [word.removeprefix("ENVIRONMENT=") for word in words if "ENVIRONMENT=" in word]
    return words[words.index("manage") + 1 :], dict(pair.split("=", 1) for pair in variables)


def curls(url: str) -> list[str]:
    """Return the two calls that buy, to the shop at this address."""
    (block,) = re.findall(r"```sh\n(curl .*?)```", README, re.DOTALL)
    return [
        f"curl {call}" for call in block.replace("https://api.shop.example", url).split("curl ")[1:]
    ]


def call(command: str) -> dict[str, Any]:
    done = subprocess.run(
        ["bash", "-c", command], check=True, capture_output=True, text=True, timeout=60
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def lines(stack: ConfinedStack) -> list[Line]:
    return [line for name in ("web", "worker") for line in read_log(stack.folder / f"{name}.log")]


def states(stack: ConfinedStack) -> dict[str, str]:
    """Return the state of each alarm, now."""
    told, now = lines(stack), time.time()
    points = DataPoints()
    points.add_lines(told)
    for line in told:
        if line["event"] == "event_published" and line.get("event_type") == "payment.processed":
            points.add("Skincare/skincare", "PaymentsAccepted", now, 1)
        if line["event"] == "request_served":
            points.add("AWS/ApplicationELB", "RequestCount", now, 1, **BALANCER)
            if line["status"] >= 500:
                points.add("AWS/ApplicationELB", "HTTPCode_Target_5XX_Count", now, 1, **BALANCER)
    for queue, url in ((QUEUE, stack.queue_url), (DEAD_LETTERS, stack.dlq_url)):
        waiting = depth(stack.sqs, url).visible
        name = "ApproximateNumberOfMessagesVisible"
        points.add("AWS/SQS", name, now, waiting, QueueName=queue)
    for minute in range(15):
        at = now - 60 * minute
        points.add("ECS/ContainerInsights", "RunningTaskCount", at, 1, **WORKER)
        points.add("ECS/ContainerInsights", "DesiredTaskCount", at, 1, **WORKER)
        points.add("AWS/ApplicationELB", "HealthyHostCount", at, 2, **BALANCER)
    return {name: points.state(alarm, now) for name, alarm in ALARMS.items()}


def has_told(stack: ConfinedStack, name: str, least: float = 0) -> bool:
    told = [line[name] for line in lines(stack) if name in line and "_aws" in line]
    return any(max(values) >= least for values in told)


def test_the_first_hour(stack: ConfinedStack) -> None:
    # 3: both answer
    for path in ("/healthz", "/readyz"):
        assert requests.get(f"{stack.web_url}{path}", timeout=10).status_code == 200
    # 4: each with the role of its service
    for name, service in (("web", "api"), ("worker", "worker")):
        stack.manage("preflight", service, SQS_ENDPOINT_URL=stack.ways[name].url)
    # 5: products
    arguments, _ = one_off_command("seed_catalogue")
    stack.manage(*arguments, DATABASE_URL=stack.services_database_url)
    buyer = Buyer(stack.web_url)
    stock = buyer.available("CLN-GEL-100")
    # 6 and 7: the first of the staff
    arguments, password = one_off_command("createsuperuser")
    written = stack.manage(*arguments, DATABASE_URL=stack.services_database_url, **password)
    assert "Superuser created successfully." in written
    clerk = Clerk(stack.web_url, "you", password["DJANGO_SUPERUSER_PASSWORD"])
    assert "Nothing is stuck." in clerk.read("/admin/operations/")
    # 8 and 9: bought, paid, told
    checkout, payment = curls(stack.web_url)
    order = call(checkout)
    page = call(payment.replace("ORDER_ID", order["order_id"]))["redirect_url"]
    buyer.press(page, "pick", method="gopay")
    buyer.press(page, "pay")
    mailbox = Mailbox(stack.emails)
    wait_until(
        lambda: mailbox.count(to="you@shop.example", kind="receipt") == 1,
        seconds=60,
        what="the receipt",
    )
    assert buyer.order(order["order_id"])["status"] == "paid"
    assert buyer.available("CLN-GEL-100") == stock - 1
    # 10: nothing is wrong, and that is not for want of data
    for name in READINGS:
        wait_until(lambda name=name: has_told(stack, name), seconds=120, what=f"{name} to be told")
    assert {name for name, state in states(stack).items() if state != "OK"} == set()
    # Nor because no alarm can be red: what no handler can read goes to the dead-letter queue.
    stack.sqs.send_message(QueueUrl=stack.queue_url, MessageBody="this is not an event")
    wait_until(
        lambda: depth(stack.sqs, stack.dlq_url).visible == 1, seconds=60, what="the dead letter"
    )
    assert states(stack)["dead-letters"] == "ALARM"
    wait_until(
        lambda: has_told(stack, "DeadLetters", least=1), seconds=120, what="the API to tell of it"
    )
    assert {name for name, state in states(stack).items() if state != "OK"} == {"dead-letters"}
