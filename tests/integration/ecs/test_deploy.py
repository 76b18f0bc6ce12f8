"""ecs/deploy.sh deploys to localemu, which is read back; its calls of ECS go to moto."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.conf import settings

from ecs.template import FOLDER, OPTIONAL, deployed, names
from skincare.local.sqs import CLIENT_ENVIRONMENT
from skincare.sqs.queues import attribute_problems
from tests.integration.ecs.emulators import Account, existing, impatient_programs, localemu, moto
from tests.unit.ecs.test_tasks import OPTIONAL_SECRETS, ROLE_SECRETS, SECRETS

pytestmark = [pytest.mark.ecs, pytest.mark.timeout(900)]

IMAGE = "123456789012.dkr.ecr.ap-southeast-3.amazonaws.com/skincare"
#: Those that hold values of ours; SECRET_KEY is made with the stack.
OPERATORS_SECRETS = SECRETS - {"SECRET_KEY"}


@dataclass
class Deployment:
    """deploy.sh with its parameters file, and the account that it deploys to."""

    account: Account
    ecs: Account
    programs: Path
    scripts: Path
    parameters: Path
    shop: str
    """Where an API answers that it is well."""

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.scripts / "deploy.sh", *options, self.parameters],
            env={
                "PATH": f"{self.programs}:{os.environ['PATH']}",
                "HOME": str(self.parameters.parent),
                **CLIENT_ENVIRONMENT,
                "AWS_ENDPOINT_URL": self.account.url,
                "AWS_ENDPOINT_URL_ECS": self.ecs.url,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    def deploy(self, tag: str) -> subprocess.CompletedProcess[str]:
        return self.run("--image", f"{IMAGE}:{tag}", "--url", self.shop)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("deploy")
    with localemu(folder) as account, moto(folder) as ecs:
        parameters = {
            **existing(account),
            # Tasks are placed by moto, so in its subnets.
            "PrivateSubnetIds": existing(ecs)["PrivateSubnetIds"],
            "AlarmEmail": "oncall@shop.example",
        }
        file = folder / "parameters"
        file.write_text("".join(f"{name}={value}\n" for name, value in parameters.items()))
        prepare_ecs(ecs, parameters["PrivateSubnetIds"].split(","))
        with answering() as shop:
            programs, scripts = impatient_programs(folder), scripts_for_localemu(folder)
            yield Deployment(account, ecs, programs, scripts, file, shop)


def scripts_for_localemu(folder: Path) -> Path:
    """A copy of the folder `ecs` in which what outlives its stack is retained in older words.

    localemu does not know `RetainExceptOnCreate`, and takes it for `Delete`.
    """
    scripts = shutil.copytree(FOLDER, folder / "ecs", ignore=shutil.ignore_patterns("__pycache__"))
    for template in scripts.glob("*.yaml"):
        template.write_text(template.read_text().replace("RetainExceptOnCreate", "Retain"))
    return scripts


class Well(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path in ("/healthz", "/readyz") else 404)
        self.end_headers()


@contextmanager
def answering() -> Iterator[str]:
    """The API as deploy.sh sees it from outside: no emulator starts the tasks."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Well) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def prepare_ecs(account: Account, subnets: list[str]) -> None:
    """What the templates would make if localemu had ECS: what deploy.sh asks for."""
    ecs = account.client("ecs")
    ecs.create_cluster(clusterName="skincare")
    for task in ("migration", "worker", "api"):
        ecs.register_task_definition(
            family=f"skincare-{task}",
            requiresCompatibilities=["FARGATE"],
            networkMode="awsvpc",
            cpu="256",
            memory="512",
            containerDefinitions=[
                {"name": task, "image": f"{IMAGE}:one", "memory": 512, "essential": True}
            ],
        )
        if task != "migration":
            ecs.create_service(
                cluster="skincare",
                serviceName=f"skincare-{task}",
                taskDefinition=f"skincare-{task}",
                desiredCount=0,
            )


@pytest.fixture(scope="module")
def first_try(deployment: Deployment) -> subprocess.CompletedProcess[str]:
    """The first deployment, before anybody has put the secrets."""
    return deployment.deploy("one")


@pytest.fixture(scope="module")
def deployed_once(
    deployment: Deployment, first_try: subprocess.CompletedProcess[str]
) -> subprocess.CompletedProcess[str]:
    manager = deployment.account.client("secretsmanager")
    for name in OPERATORS_SECRETS:
        manager.put_secret_value(SecretId=f"skincare/{name}", SecretString="value")
    return deployment.deploy("one")


def test_without_the_secrets_it_stops_and_says_how_to_put_them(
    first_try: subprocess.CompletedProcess[str],
) -> None:
    assert first_try.returncode == 1
    assert "skincare/DATABASE_URL has no value" in first_try.stderr
    assert "aws secretsmanager put-secret-value --secret-id skincare/DATABASE_URL" in (
        first_try.stderr
    )
    assert "run-task" not in first_try.stdout + first_try.stderr


def test_with_the_secrets_it_migrates_rolls_both_services_and_asks_for_health(
    deployment: Deployment, deployed_once: subprocess.CompletedProcess[str]
) -> None:
    output = deployed_once.stdout

    assert deployed_once.returncode == 0, output + deployed_once.stderr
    order = [
        output.index(step)
        for step in ("== Migration", "skincare-worker --template", "skincare-api --template")
    ]
    assert order == sorted(order)
    assert f"deploy: skincare runs {IMAGE}:one" in output
    ecs = deployment.ecs.client("ecs")
    migrations = ecs.list_tasks(cluster="skincare", startedBy="deploy-one")["taskArns"]
    assert len(migrations) == 1


def test_every_template_is_a_stack(
    deployment: Deployment, deployed_once: subprocess.CompletedProcess[str]
) -> None:
    stacks = deployment.account.client("cloudformation").describe_stacks()["Stacks"]

    statuses = {stack["StackName"]: stack["StackStatus"] for stack in stacks}
    made = set(names()) - OPTIONAL - {"alarms-database"}  # without RDS, which no emulator has
    assert set(statuses) == {f"skincare-{name}" for name in made}
    assert set(statuses.values()) <= {"CREATE_COMPLETE", "UPDATE_COMPLETE"}


def test_the_queues_are_as_the_policy_wants_them(
    deployment: Deployment, deployed_once: subprocess.CompletedProcess[str]
) -> None:
    queue = attributes(deployment, "skincare-order-events")
    dead_letters = attributes(deployment, "skincare-order-events-dlq")

    assert attribute_problems(queue, name="it", policy=settings.SQS_POLICY) == []
    assert json.loads(queue["RedrivePolicy"])["deadLetterTargetArn"] == dead_letters["QueueArn"]
    assert json.loads(dead_letters["RedriveAllowPolicy"])["sourceQueueArns"] == [queue["QueueArn"]]
    for made in (queue, dead_letters):
        assert made["SqsManagedSseEnabled"] == "true"
        (statement,) = json.loads(made["Policy"])["Statement"]
        assert statement["Effect"] == "Deny"
        assert "aws:SecureTransport" in json.dumps(statement["Condition"])


def attributes(deployment: Deployment, name: str) -> dict[str, str]:
    sqs = deployment.account.client("sqs")
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    return dict(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"])


def test_the_alarms_watch_what_the_templates_say_and_tell_the_topic(
    deployment: Deployment, deployed_once: subprocess.CompletedProcess[str]
) -> None:
    account = deployment.account
    made = account.client("cloudwatch").describe_alarms()["MetricAlarms"]
    (topic,) = account.client("sns").list_topics()["Topics"]
    parameters = dict(line.split("=", 1) for line in deployment.parameters.read_text().splitlines())
    # No emulator has RDS, so nobody watches it there.
    of_rds = deployed().resources("AWS::CloudWatch::Alarm", "alarms-database")
    wanted = [
        alarm
        for name, alarm in deployed(**parameters).resources("AWS::CloudWatch::Alarm").items()
        if name not in of_rds
    ]

    by_name = {alarm["AlarmName"]: alarm for alarm in made}
    for alarm in wanted:
        found = by_name[alarm["AlarmName"]]
        assert found["Threshold"] == alarm["Threshold"]
        assert found["ComparisonOperator"] == alarm["ComparisonOperator"]
        assert found["AlarmActions"] == found["OKActions"] == [topic["TopicArn"]]
        assert found.get("MetricName") == alarm.get("MetricName")
    (subscription,) = account.client("sns").list_subscriptions()["Subscriptions"]
    assert subscription["Endpoint"] == "oncall@shop.example"


def test_the_roles_allow_what_the_template_allows(
    deployment: Deployment, deployed_once: subprocess.CompletedProcess[str]
) -> None:
    iam = deployment.account.client("iam")
    names = [role["RoleName"] for role in iam.list_roles()["Roles"]]
    # Beside them is the role that ECS works with, which deploy.sh made.
    roles = {name.split("-")[2]: name for name in names if name.startswith("skincare-")}
    policy: Any = iam.get_role_policy(RoleName=roles["WorkerTaskRole"], PolicyName="OrderEvents")[
        "PolicyDocument"
    ]
    (statement,) = policy["Statement"]

    assert {"ExecutionRole", "ApiTaskRole", "WorkerTaskRole"} <= set(roles)
    assert statement["Resource"].endswith(":skincare-order-events")
    assert "sqs:ReceiveMessage" in statement["Action"]


@pytest.mark.ecs(last=True)
def test_a_sick_release_shows_the_way_back_and_all_goes_away_but_what_holds_money(
    deployment: Deployment, deployed_once: subprocess.CompletedProcess[str]
) -> None:
    account, parameters = deployment.account, deployment.parameters
    cloudformation = account.client("cloudformation")
    parameters.write_text(parameters.read_text().replace("oncall@", "night@"))
    nobody_answers = f"{account.url}/_nothing"

    again = deployment.run("--image", f"{IMAGE}:two", "--url", nobody_answers)

    assert again.returncode != 0
    assert f"FAILED at the smoke test of {nobody_answers}/healthz" in again.stderr
    assert f"--image {IMAGE}:one {parameters}" in again.stderr
    (api,) = cloudformation.describe_stacks(StackName="skincare-api")["Stacks"]
    images = [p["ParameterValue"] for p in api["Parameters"] if p["ParameterKey"] == "Image"]
    assert images == [f"{IMAGE}:two"]
    subscriptions = account.client("sns").list_subscriptions()["Subscriptions"]
    assert "night@shop.example" in {made["Endpoint"] for made in subscriptions}

    for stack in stacks_in_the_order_of_removal():
        cloudformation.delete_stack(StackName=f"skincare-{stack}")
        cloudformation.get_waiter("stack_delete_complete").wait(
            StackName=f"skincare-{stack}", WaiterConfig={"Delay": 1}
        )

    assert account.client("cloudwatch").describe_alarms()["MetricAlarms"] == []
    assert account.client("sns").list_topics()["Topics"] == []
    queues = {url.rsplit("/", 1)[-1] for url in account.client("sqs").list_queues()["QueueUrls"]}
    assert queues == {"skincare-order-events", "skincare-order-events-dlq"}
    left = account.client("secretsmanager").list_secrets()["SecretList"]
    assert {secret["Name"] for secret in left} == {
        f"skincare/{name}" for name in SECRETS | OPTIONAL_SECRETS | ROLE_SECRETS
    }


def stacks_in_the_order_of_removal() -> list[str]:
    """The loop that README.md gives."""
    loop = re.search(r"for stack in (.*?); do", (FOLDER / "README.md").read_text(), re.DOTALL)
    assert loop is not None
    stacks = loop[1].replace("\\", " ").split()
    assert sorted([*stacks, *OPTIONAL]) == names()
    return stacks


# Without any emulator.


def test_a_dry_run_prints_every_call_and_makes_none(tmp_path: Path) -> None:
    parameters = tmp_path / "parameters"
    parameters.write_text("AllowedHosts=api.shop.example\nPrivateSubnetIds=subnet-1,subnet-2\n")

    done = subprocess.run(
        [FOLDER / "deploy.sh", "--dry-run", parameters],
        env={"PATH": "/usr/bin:/bin"},  # no aws, no docker
        capture_output=True,
        text=True,
        check=True,
    )

    calls = re.findall(r"^(?:\[\S+\] )?\+ (.*)$", done.stdout + done.stderr, re.MULTILINE)
    stacks = [m[1] for call in calls if (m := re.search(r"deploy --stack-name (\S+)", call))]
    assert sorted(stacks) == sorted(f"skincare-{name}" for name in set(names()) - OPTIONAL)
    for call in ("docker build", "docker push", "ecs run-task", "ecs describe-services", "curl"):
        assert any(call in made for made in calls), call
