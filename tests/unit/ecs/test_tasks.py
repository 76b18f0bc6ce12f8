"""Each process gets what the settings read, and the time to end that the policy says."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.urls import resolve

from ecs.template import deployed, load
from skincare.connections import DATABASE_PARTS, EMAIL_PARTS
from skincare.operations.management.commands import services_role
from skincare.sqs import health
from skincare.sqs.worker import INTERVAL
from tests.unit.ecs.account import LOAD_BALANCER
from tests.unit.test_settings import PRODUCTION, variables_read

SETTINGS = (Path(settings.BASE_DIR) / "skincare" / "settings.py").read_text()
#: Read by the settings, and in production better left out.
DEVELOPMENT_ONLY = {
    *("DEBUG", "ENV_FILE", "LIMIT_BUYERS", "SQS_ENDPOINT_URL"),
    *("MIDTRANS_SNAP_URL", "MIDTRANS_API_URL", "XENDIT_API_URL"),
}
#: Read by the settings, of use to the worker alone.
WORKER_ONLY = {"WORKER_CONCURRENCY", "SQS_HEALTH_FILE"}
#: In the place of a URL, for those who have its parts; and another database's certificates.
INSTEAD_OF_URLS = {*DATABASE_PARTS, *EMAIL_PARTS}
#: While a gateway's secret is changed, the last one is accepted too.
PREVIOUS = {"MIDTRANS_SERVER_KEY_PREVIOUS", "XENDIT_CALLBACK_TOKEN_PREVIOUS"}
#: Has a default that is right behind the load balancer.
RIGHT_BY_DEFAULT = {"ADMIN_REQUIRES_CODE", "TRUSTED_PROXY_COUNT"}
#: Only where the shop has a login of its own (BuyerTokens).
OPTIONAL_SECRETS = {"BUYER_TOKEN_SECRETS"}
#: Only where the migration makes the services' role (DatabaseHost).
ROLE_SECRETS = {"SERVICES_PASSWORD"}
SECRETS = {
    "SECRET_KEY",
    "DATABASE_URL",
    "EMAIL_URL",
    "MIDTRANS_SERVER_KEY",
    "XENDIT_CALLBACK_TOKEN",
    "XENDIT_SECRET_KEY",
}
#: Proves who calls a webhook, and nothing else.
API_ONLY = {"XENDIT_CALLBACK_TOKEN", "XENDIT_CALLBACK_TOKEN_PREVIOUS"}
TASKS = ["api", "worker", "migration"]


def given_to(task: str, secrets: set[str]) -> set[str]:
    return secrets if task == "api" else secrets - API_ONLY


def container(task: str, **parameters: Any) -> dict[str, Any]:
    definition = deployed(**parameters).resource(task, "TaskDefinition")
    (only,) = definition["ContainerDefinitions"]
    return dict(only)


def readable_secrets(**parameters: Any) -> list[str]:
    """What ECS may read for a task before it starts."""
    (policy,) = deployed(**parameters).resource("roles", "ExecutionRole")["Policies"]
    (secrets,) = (
        statement["Resource"]
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Sid"] == "ReadTheSecrets"
    )
    return list(secrets)


def names(pairs: list[dict[str, Any]]) -> set[str]:
    assert len({pair["Name"] for pair in pairs}) == len(pairs), "a name is given twice"
    return {pair["Name"] for pair in pairs}


@pytest.mark.parametrize("task", TASKS)
def test_each_task_gets_every_variable_that_the_settings_read_and_none_that_nobody_reads(
    task: str,
) -> None:
    elsewhere = DEVELOPMENT_ONLY | RIGHT_BY_DEFAULT | INSTEAD_OF_URLS
    elsewhere |= SECRETS | OPTIONAL_SECRETS | PREVIOUS
    wanted = variables_read(SETTINGS) - elsewhere
    if task != "worker":
        wanted -= WORKER_ONLY

    assert names(container(task)["Environment"]) == wanted


@pytest.mark.parametrize("task", TASKS)
def test_each_secret_comes_from_secrets_manager_and_never_from_the_environment(task: str) -> None:
    definition = container(task)

    assert names(definition["Secrets"]) == given_to(task, SECRETS)
    assert variables_read(SETTINGS) >= SECRETS
    assert names(definition["Environment"]) & SECRETS == set()


@pytest.mark.parametrize(
    ("providers", "missing"),
    [
        ("midtrans", {"XENDIT_CALLBACK_TOKEN", "XENDIT_SECRET_KEY"}),
        ("xendit", {"MIDTRANS_SERVER_KEY"}),
    ],
)
@pytest.mark.parametrize("task", TASKS)
def test_the_secret_of_a_disabled_gateway_is_not_asked_for(
    task: str, providers: str, missing: set[str]
) -> None:
    definition = container(task, PaymentProviders=providers)

    assert names(definition["Secrets"]) == given_to(task, SECRETS - missing)


@pytest.mark.parametrize("task", TASKS)
def test_what_signs_buyers_tokens_is_asked_for_where_the_shop_has_a_login(task: str) -> None:
    definition = container(task, BuyerTokens="true")

    assert names(definition["Secrets"]) == given_to(task, SECRETS | OPTIONAL_SECRETS)


@pytest.mark.parametrize("task", TASKS)
def test_the_last_secret_of_a_gateway_is_accepted_while_it_is_changed(task: str) -> None:
    # https://docs.aws.amazon.com/AmazonECS/latest/developerguide/secrets-envvar-secrets-manager.html
    secrets = {
        s["Name"]: s["ValueFrom"]
        for s in container(task, AcceptPrevious="midtrans,xendit")["Secrets"]
    }

    assert set(secrets) == given_to(task, SECRETS | PREVIOUS)
    assert secrets["MIDTRANS_SERVER_KEY_PREVIOUS"] == "secrets.MidtransServerKey::AWSPREVIOUS:"
    assert {s["Name"] for s in container(task, AcceptPrevious="xendit")["Secrets"]} == (
        given_to(task, SECRETS | {"XENDIT_CALLBACK_TOKEN_PREVIOUS"})
    )


@pytest.mark.parametrize("host", ["", "db.example"])
def test_services_with_a_role_of_their_own_leave_the_owners_login_to_the_migration(
    host: str,
) -> None:
    owners = {"DatabaseHost": host, "DatabaseSecretArn": "arn:owner" if host else ""}
    given = {**owners, "ServicesDatabaseSecretArn": "arn:services"}

    for task in ("api", "worker"):
        definition = container(task, **given)
        secrets = {s["Name"]: s["ValueFrom"] for s in definition["Secrets"]}
        assert secrets["DATABASE_URL"] == "arn:services"
        assert names(definition["Secrets"]) == given_to(task, SECRETS)
        assert names(definition["Environment"]) & {*DATABASE_PARTS} == set()
    for part in ("Secrets", "Environment"):
        assert container("migration", **given)[part] == container("migration", **owners)[part]
    assert "arn:services" in readable_secrets(**given)


@pytest.mark.parametrize(
    ("task", "user", "password"),
    [
        ("migration", "skincare", "arn:secret:password::"),
        ("api", services_role.ROLE, "secrets.ServicesPassword"),
        ("worker", services_role.ROLE, "secrets.ServicesPassword"),
    ],
)
def test_the_owner_of_a_database_migrates_and_the_services_log_in_as_a_lesser_role(
    task: str, user: str, password: str
) -> None:
    given = {"DatabaseHost": "db.example", "DatabaseSecretArn": "arn:secret"}
    definition = container(task, **given, DatabasePort="6432")
    environment = {p["Name"]: p["Value"] for p in definition["Environment"]}
    secrets = {s["Name"]: s["ValueFrom"] for s in definition["Secrets"]}

    assert (environment["DATABASE_HOST"], environment["DATABASE_PORT"]) == ("db.example", "6432")
    assert (environment["DATABASE_NAME"], environment["DATABASE_USER"]) == ("skincare", user)
    assert secrets["DATABASE_PASSWORD"] == password
    assert "DATABASE_URL" not in secrets
    assert {"DATABASE_HOST", "DATABASE_NAME", "DATABASE_USER", "DATABASE_PASSWORD"} <= {
        *DATABASE_PARTS
    }
    # The migration gives the role the password that the services log in with.
    assert (secrets.get("SERVICES_PASSWORD") == "secrets.ServicesPassword") is (task == "migration")
    assert {"arn:secret", "secrets.ServicesPassword"} <= set(readable_secrets(**given))


def test_the_password_of_the_services_is_made_with_the_stack_and_long_enough() -> None:
    secret = deployed().resource("secrets", "ServicesPassword")

    assert secret["GenerateSecretString"]["PasswordLength"] >= services_role.SHORTEST_PASSWORD
    assert secret["GenerateSecretString"]["ExcludePunctuation"] is True


@pytest.mark.parametrize("task", TASKS)
def test_a_task_has_all_that_production_requires(task: str) -> None:
    definition = container(task)

    given = names(definition["Environment"]) | names(definition["Secrets"])
    assert given >= given_to(task, set(PRODUCTION))


@pytest.mark.parametrize("task", TASKS)
def test_the_secrets_are_those_of_the_secrets_template_and_the_execution_role_reads_them(
    task: str,
) -> None:
    for secret in container(task, BuyerTokens="true")["Secrets"]:
        template, logical_id = secret["ValueFrom"].split(".")
        assert template == "secrets"
        assert deployed().resource("secrets", logical_id)["Name"] == f"skincare/{secret['Name']}"
        assert secret["ValueFrom"] in readable_secrets()


@pytest.mark.parametrize("task", TASKS)
def test_the_three_task_definitions_are_one_in_all_that_the_process_does_not_choose(
    task: str,
) -> None:
    own = {"Name", "Command", "PortMappings", "HealthCheck", "StopTimeout"}

    def shared(definition: dict[str, Any]) -> dict[str, Any]:
        rest = {key: value for key, value in definition.items() if key not in own}
        rest["Environment"] = [p for p in rest["Environment"] if p["Name"] not in WORKER_ONLY]
        rest["Secrets"] = [p for p in rest["Secrets"] if p["Name"] not in API_ONLY]
        rest["LogConfiguration"] = {
            **rest["LogConfiguration"],
            "Options": {
                key: str(value).replace(definition["Name"], "TASK")
                for key, value in rest["LogConfiguration"]["Options"].items()
            },
        }
        return rest

    assert shared(container(task)) == shared(container("api"))


@pytest.mark.parametrize("task", TASKS)
def test_nothing_can_be_written_but_the_temporary_folder_and_nothing_is_privileged(
    task: str,
) -> None:
    definition = container(task)

    assert definition["ReadonlyRootFilesystem"] is True
    assert [m["ContainerPath"] for m in definition["MountPoints"]] == ["/tmp"]  # noqa: S108
    assert definition["LinuxParameters"]["Capabilities"] == {"Drop": ["ALL"]}
    assert definition["LinuxParameters"]["InitProcessEnabled"] is True
    assert definition.get("Privileged", False) is False
    assert {limit["Name"] for limit in definition["Ulimits"]} == {"nofile"}


# -- The worker ------------------------------------------------------------------------------------


def test_another_share_of_spot_replaces_the_tasks_with_it() -> None:
    # "… making a change to a capacity provider strategy on a service that is already using one, you
    # must force a new deployment": https://github.com/pipe-cd/pipecd/pull/6385
    forced = [
        deployed(WorkerSpotWeight=weight).resource("worker", "Service")["ForceNewDeployment"]
        for weight in ("0", "3")
    ]

    assert all(force["EnableForceNewDeployment"] for force in forced)
    assert len({force["ForceNewDeploymentNonce"] for force in forced}) == 2


def test_a_stopping_worker_has_the_time_that_the_policy_says() -> None:
    policy = settings.SQS_POLICY

    assert container("worker")["StopTimeout"] == policy.stop_timeout
    assert container("worker")["StopTimeout"] > policy.hard_time_limit


def test_the_worker_says_itself_whether_it_is_well() -> None:
    check = container("worker")["HealthCheck"]

    assert check["Command"] == ["CMD", "python", "-m", health.__name__]
    assert_within_fargates_limits(check)
    assert check["Interval"] * check["Retries"] > health.MAX_TICK_AGE
    assert check["StartPeriod"] > 2 * INTERVAL


def test_the_worker_writes_its_health_file_where_it_may_write() -> None:
    environment = {p["Name"]: p["Value"] for p in container("worker")["Environment"]}

    assert Path(environment["SQS_HEALTH_FILE"]).parent == Path("/tmp")  # noqa: S108
    assert Path(environment["SQS_HEALTH_FILE"]).name == Path(settings.SQS_POLICY.health_file).name


def test_the_workers_concurrency_is_the_policys_unless_a_parameter_says_otherwise() -> None:
    environment = {p["Name"]: p["Value"] for p in container("worker")["Environment"]}

    assert environment["WORKER_CONCURRENCY"] == settings.SQS_POLICY.concurrency


def test_nobody_connects_to_a_worker() -> None:
    service = deployed().resource("worker", "Service")
    group = deployed().resource("network", "WorkerSecurityGroup")

    assert "PortMappings" not in container("worker")
    assert "LoadBalancers" not in service
    assert "SecurityGroupIngress" not in group


# -- The API ---------------------------------------------------------------------------------------


def test_the_api_is_asked_for_health_on_its_port_and_paths() -> None:
    definition = container("api")
    (port,) = definition["PortMappings"]
    url = f"http://127.0.0.1:{port['ContainerPort']}/healthz"

    assert url in definition["HealthCheck"]["Command"][-1]
    assert_within_fargates_limits(definition["HealthCheck"])
    assert resolve("/healthz").func.__name__ == "healthz"
    assert resolve("/readyz").func.__name__ == "readyz"
    # Readiness asks the database: where it decided, a slow one would replace every task of the API.
    assert "/healthz" in load("api").parameters["TargetGroupArn"]["Description"]


def test_the_load_balancer_alone_reaches_the_apis_port() -> None:
    (port,) = container("api")["PortMappings"]
    (target,) = deployed().resource("api", "Service")["LoadBalancers"]
    (rule,) = deployed().resource("network", "ApiSecurityGroup")["SecurityGroupIngress"]

    assert target["ContainerPort"] == port["ContainerPort"]
    assert target["ContainerName"] == container("api")["Name"]
    assert rule["FromPort"] == rule["ToPort"] == port["ContainerPort"]
    assert rule["SourceSecurityGroupId"] == "<LoadBalancerSecurityGroupId>"


def assert_within_fargates_limits(check: dict[str, Any]) -> None:
    # https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_HealthCheck.html
    assert 5 <= check["Interval"] <= 300
    assert 2 <= check["Timeout"] <= 60
    assert check["Timeout"] < check["Interval"]
    assert 1 <= check["Retries"] <= 10
    assert 0 <= check["StartPeriod"] <= 300


# -- Both services ---------------------------------------------------------------------------------


@pytest.mark.parametrize("service", ["api", "worker"])
def test_services_run_in_private_subnets_and_roll_back_by_themselves(service: str) -> None:
    properties = deployed(PrivateSubnetIds=["subnet-1", "subnet-2"]).resource(service, "Service")
    network = properties["NetworkConfiguration"]["AwsvpcConfiguration"]
    deployment = properties["DeploymentConfiguration"]

    assert network["AssignPublicIp"] == "DISABLED"
    assert network["Subnets"] == ["subnet-1", "subnet-2"]
    assert deployment["DeploymentCircuitBreaker"] == {
        "Enable": True,
        "Rollback": True,
        "ResetOnHealthyTask": False,
    }
    # What the circuit breaker does not count: a task that was healthy, and then ended.
    assert f"skincare-{service}-crashing" in deployment["Alarms"]["AlarmNames"]
    assert deployment["Alarms"]["Enable"] is deployment["Alarms"]["Rollback"] is True
    assert set(deployment["Alarms"]["AlarmNames"]) <= set(alarm_names())
    assert "DesiredCount" not in properties, "a deployment would undo what the scaling did"


def alarm_names() -> Iterator[str]:
    for alarm in deployed(**LOAD_BALANCER).resources("AWS::CloudWatch::Alarm").values():
        yield alarm["AlarmName"]


@pytest.mark.parametrize("task", TASKS)
def test_logs_go_to_the_groups_that_the_execution_role_may_write(task: str) -> None:
    options = container(task)["LogConfiguration"]["Options"]
    groups = {
        group["LogGroupName"]: f"cluster.{logical_id}.Arn"
        for logical_id, group in deployed().resources("AWS::Logs::LogGroup").items()
    }
    statements = deployed().resource("roles", "ExecutionRole")["Policies"][0]["PolicyDocument"]
    writable = next(s["Resource"] for s in statements["Statement"] if s["Sid"] == "WriteTheLogs")

    assert groups[options["awslogs-group"]] in writable
