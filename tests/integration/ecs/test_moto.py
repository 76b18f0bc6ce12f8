"""The templates on moto: created from the files or through the APIs, and read back."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from ecs.template import FOLDER, deployed, load
from skincare.sqs.queues import queue_problems
from tests.integration.ecs.emulators import Account, existing, moto
from tests.unit.ecs.account import LOAD_BALANCER
from tests.unit.ecs.test_tasks import OPTIONAL_SECRETS, ROLE_SECRETS, SECRETS

pytestmark = [pytest.mark.ecs, pytest.mark.timeout(300)]

IMAGE = "123456789012.dkr.ecr.ap-southeast-3.amazonaws.com/skincare"
ORDER = [
    "registry",
    "queues",
    "network",
    "cluster",
    "alarms-topic",
    "roles",
    "migration",
    "worker",
    "api",
]


class Stacks:
    """CloudFormation's calls, without change sets."""

    def __init__(self, account: Account, parameters: dict[str, str]) -> None:
        self.account = account
        self.parameters = parameters
        self.cloudformation = account.client("cloudformation")

    def create(self, template: str) -> None:
        self.cloudformation.create_stack(
            StackName=f"skincare-{template}",
            # Of the two words for it, moto knows the older one.
            TemplateBody=(FOLDER / f"{template}.yaml")
            .read_text()
            .replace("RetainExceptOnCreate", "Retain"),
            Capabilities=["CAPABILITY_IAM"],
            Parameters=[
                {"ParameterKey": name, "ParameterValue": self.parameters[name]}
                for name in load(template).parameters
                if name in self.parameters
            ],
        )

    def outputs(self, template: str) -> dict[str, str]:
        (stack,) = self.cloudformation.describe_stacks(StackName=f"skincare-{template}")["Stacks"]
        return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}

    def delete(self, template: str) -> None:
        self.cloudformation.delete_stack(StackName=f"skincare-{template}")


@contextmanager
def created(folder: Path) -> Iterator[Stacks]:
    """All stacks of ORDER in a new account."""
    with moto(folder) as account:
        parameters = {**existing(account), "Image": f"{IMAGE}:one", "Release": "one"}
        stacks = Stacks(account, parameters)
        make_secrets(account)
        for template in ORDER:
            stacks.create(template)
        yield stacks


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stacks]:
    with created(tmp_path_factory.mktemp("moto")) as stacks:
        yield stacks


def make_secrets(account: Account) -> None:
    """What secrets.yaml does: moto makes secrets through their API only."""
    manager = account.client("secretsmanager")
    outputs = {}
    for name in sorted(SECRETS | OPTIONAL_SECRETS | ROLE_SECRETS):
        arn = manager.create_secret(Name=f"skincare/{name}", SecretString="x")["ARN"]
        export = f"skincare-secret-{name.lower().replace('_', '-')}"
        outputs[name.replace("_", "")] = {"Value": arn, "Export": {"Name": export}}
    topic = {"Topic": {"Type": "AWS::SNS::Topic"}}
    account.client("cloudformation").create_stack(
        StackName="skincare-secrets",
        TemplateBody=json.dumps({"Resources": topic, "Outputs": outputs}),
    )


@pytest.mark.parametrize("template", ORDER)
def test_each_template_is_created_with_what_the_others_export(
    stacks: Stacks, template: str
) -> None:
    (stack,) = stacks.cloudformation.describe_stacks(StackName=f"skincare-{template}")["Stacks"]

    assert stack["StackStatus"] == "CREATE_COMPLETE"


def test_the_secrets_that_a_task_asks_for_exist(stacks: Stacks) -> None:
    ecs, manager = stacks.account.client("ecs"), stacks.account.client("secretsmanager")
    made = ecs.describe_task_definition(taskDefinition="skincare-worker:1")["taskDefinition"]

    # moto leaves an empty place where a template says AWS::NoValue.
    for secret in filter(None, made["containerDefinitions"][0]["secrets"]):
        found = manager.describe_secret(SecretId=secret["valueFrom"])
        assert found["Name"] == f"skincare/{secret['name']}"


def test_the_worker_would_start_on_the_queue(stacks: Stacks) -> None:
    sqs = stacks.account.client("sqs")
    url = sqs.get_queue_url(QueueName="skincare-order-events")["QueueUrl"]

    assert queue_problems(sqs, url, settings.SQS_POLICY) == []


def test_the_network_lets_the_load_balancer_in_and_nobody_else(stacks: Stacks) -> None:
    made = stacks.outputs("network")
    groups = stacks.account.client("ec2").describe_security_groups(GroupIds=list(made.values()))
    inward = {group["GroupId"]: group["IpPermissions"] for group in groups["SecurityGroups"]}

    assert inward[made["WorkerSecurityGroupId"]] == []
    (rule,) = inward[made["ApiSecurityGroupId"]]
    assert (rule["FromPort"], rule["ToPort"]) == (8000, 8000)
    assert rule["IpRanges"] == []


def test_each_role_has_its_policies(stacks: Stacks) -> None:
    iam = stacks.account.client("iam")
    found = {}
    for role in iam.list_roles()["Roles"]:
        for name in iam.list_role_policies(RoleName=role["RoleName"])["PolicyNames"]:
            policy = iam.get_role_policy(RoleName=role["RoleName"], PolicyName=name)
            found[role["RoleName"].split("-")[2], name] = str(policy["PolicyDocument"])

    assert set(found) == {
        ("ExecutionRole", "StartTasks"),
        ("ApiTaskRole", "OrderEvents"),
        ("ApiTaskRole", "DeadLetters"),
        ("WorkerTaskRole", "OrderEvents"),
    }
    assert ":skincare-order-events'" in found["WorkerTaskRole", "OrderEvents"]


# What moto makes of templates only in part, or not at all, is given to its APIs as the templates
# say. boto3 refuses every property that the API does not know.


def as_call(value: Any) -> Any:
    """CloudFormation's properties as the API of ECS names them: `stopTimeout` for `StopTimeout`."""
    if isinstance(value, list):
        return [as_call(item) for item in value]
    if isinstance(value, dict) and set(value) == {"Name", "Value"}:
        return {"name": value["Name"], "value": str(value["Value"])}
    if isinstance(value, dict):
        return {
            key[0].lower() + key[1:]: item if key == "Options" else as_call(item)
            for key, item in value.items()
        }
    return value


def register(stacks: Stacks, task: str, image: str) -> dict[str, Any]:
    wanted = deployed(**{**stacks.parameters, "Image": image}).resource(task, "TaskDefinition")
    made = stacks.account.client("ecs").register_task_definition(**as_call(wanted))
    return dict(made["taskDefinition"])


@pytest.mark.parametrize("task", ["api", "worker", "migration"])
def test_ecs_takes_the_task_definitions_as_they_are_written(stacks: Stacks, task: str) -> None:
    wanted = deployed(**stacks.parameters).resource(task, "TaskDefinition")

    made = register(stacks, task, f"{IMAGE}:one")

    assert made["networkMode"] == "awsvpc"
    assert made["requiresCompatibilities"] == ["FARGATE"]
    assert (made["cpu"], made["memory"]) == (wanted["Cpu"], wanted["Memory"])
    (container,), (written,) = made["containerDefinitions"], wanted["ContainerDefinitions"]
    for name, value in as_call(written).items():
        assert container[name] == value, name


def test_services_roll_to_a_new_image_and_end(stacks: Stacks) -> None:
    ecs = stacks.account.client("ecs")
    (settings_,) = deployed().resource("cluster", "Cluster")["ClusterSettings"]
    ecs.create_cluster(clusterName="rolling", settings=[as_call(settings_)])
    subnets = stacks.parameters["PrivateSubnetIds"].split(",")
    parameters = {**stacks.parameters, "PrivateSubnetIds": subnets}

    groups = stacks.outputs("network")
    for name in ("worker", "api"):
        service = deployed(**parameters).resource(name, "Service")
        network = service["NetworkConfiguration"]["AwsvpcConfiguration"]
        network["SecurityGroups"] = [groups[f"{name.title()}SecurityGroupId"]]
        service.pop("ForceNewDeployment", None)  # CloudFormation's; ECS has it in updates only
        first = register(stacks, name, f"{IMAGE}:one")["taskDefinitionArn"]
        ecs.create_service(
            **{**as_call(service), "cluster": "rolling", "taskDefinition": first, "desiredCount": 1}
        )
        second = register(stacks, name, f"{IMAGE}:two")["taskDefinitionArn"]
        ecs.update_service(cluster="rolling", service=f"skincare-{name}", taskDefinition=second)

        (made,) = ecs.describe_services(cluster="rolling", services=[f"skincare-{name}"])[
            "services"
        ]
        assert made["taskDefinition"] == second != first
        network = made["networkConfiguration"]["awsvpcConfiguration"]
        assert network["assignPublicIp"] == "DISABLED"
        assert network["subnets"] == subnets
        ports = [balancer["containerPort"] for balancer in made["loadBalancers"]]
        assert ports == ([8000] if name == "api" else [])
        gone = ecs.delete_service(cluster="rolling", service=f"skincare-{name}", force=True)
        assert gone["service"]["status"] != "ACTIVE"


def test_cloudwatch_takes_every_alarm(stacks: Stacks) -> None:
    cloudwatch = stacks.account.client("cloudwatch")
    alarms = deployed(**LOAD_BALANCER).resources("AWS::CloudWatch::Alarm").values()

    for alarm in alarms:
        cloudwatch.put_metric_alarm(**alarm)

    made = {a["AlarmName"]: a for a in cloudwatch.describe_alarms()["MetricAlarms"]}
    for alarm in alarms:
        assert made[alarm["AlarmName"]]["Threshold"] == alarm["Threshold"]
        assert made[alarm["AlarmName"]]["EvaluationPeriods"] == alarm["EvaluationPeriods"]


def test_cloudwatch_logs_take_the_filter_that_counts_accepted_payments(stacks: Stacks) -> None:
    logs = stacks.account.client("logs")
    wanted = deployed().resource("alarms-events", "PaymentsAccepted")

    logs.put_metric_filter(**as_call(wanted))

    (made,) = logs.describe_metric_filters(logGroupName="/skincare/api")["metricFilters"]
    assert made["filterPattern"] == wanted["FilterPattern"]


def test_log_lines_are_kept_as_long_as_the_parameter_says(stacks: Stacks) -> None:
    groups = stacks.account.client("logs").describe_log_groups()["logGroups"]

    assert {group["logGroupName"]: group["retentionInDays"] for group in groups} == {
        "/skincare/api": 90,
        "/skincare/worker": 90,
        "/skincare/migration": 90,
    }


def test_cloudwatch_takes_the_dashboard(stacks: Stacks) -> None:
    cloudwatch = stacks.account.client("cloudwatch")
    wanted = deployed(**LOAD_BALANCER).resource("dashboard", "Dashboard")

    cloudwatch.put_dashboard(**wanted)

    made = cloudwatch.get_dashboard(DashboardName="skincare")
    assert json.loads(made["DashboardBody"]) == json.loads(wanted["DashboardBody"])


def test_application_auto_scaling_takes_the_targets_and_the_policies(stacks: Stacks) -> None:
    scaling = stacks.account.client("application-autoscaling")
    for target, policy in (
        ("WorkerTarget", "WorkerBacklog"),
        ("WorkerTarget", "WorkerArrivals"),
        ("ApiTarget", "ApiCpu"),
    ):
        wanted = deployed().resource("scaling", target)
        scaling.register_scalable_target(**wanted)
        given = deployed().resource("scaling", policy)
        scaling.put_scaling_policy(
            PolicyName=given["PolicyName"],
            PolicyType=given["PolicyType"],
            ServiceNamespace=wanted["ServiceNamespace"],
            ScalableDimension=wanted["ScalableDimension"],
            ResourceId=wanted["ResourceId"],
            TargetTrackingScalingPolicyConfiguration=given[
                "TargetTrackingScalingPolicyConfiguration"
            ],
        )

    made = scaling.describe_scaling_policies(ServiceNamespace="ecs")["ScalingPolicies"]
    by_name = {policy["PolicyName"]: policy for policy in made}
    tracking = by_name["skincare-worker-backlog"]["TargetTrackingScalingPolicyConfiguration"]
    expression = tracking["CustomizedMetricSpecification"]["Metrics"][0]["Expression"]
    assert expression == "visible / IF(tasks > 0, tasks, 1)"
    assert set(by_name) == {
        "skincare-worker-backlog",
        "skincare-worker-arrivals",
        "skincare-api-cpu",
    }


def test_everything_goes_away_again_but_what_holds_money(tmp_path: Path) -> None:
    with created(tmp_path) as stacks:
        for template in reversed(ORDER):
            stacks.delete(template)

        account = stacks.account
        assert account.client("logs").describe_log_groups()["logGroups"] == []
        assert account.client("iam").list_roles()["Roles"] == []
        queues = {
            url.rsplit("/", 1)[-1] for url in account.client("sqs").list_queues()["QueueUrls"]
        }
        assert queues == {"skincare-order-events", "skincare-order-events-dlq"}
