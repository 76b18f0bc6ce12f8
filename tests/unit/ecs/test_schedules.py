"""What runs by the clock is a command that there is, and may be started and nothing else."""

import json
from typing import Any

import pytest
from django.core.management import get_commands

from ecs.template import Deployed, deployed


@pytest.fixture(scope="module")
def deployment() -> Deployed:
    return deployed(PrivateSubnetIds=["subnet-1", "subnet-2"])


@pytest.fixture(scope="module")
def targets(deployment: Deployed) -> list[dict[str, Any]]:
    return [s["Target"] for s in deployment.resources("AWS::Scheduler::Schedule").values()]


def test_each_schedule_runs_a_command_that_there_is(targets: list[dict[str, Any]]) -> None:
    for target in targets:
        (override,) = json.loads(target["Input"])["containerOverrides"]
        assert override["name"] == "api"
        manage, command = override["command"]
        assert manage == "manage"
        assert command in get_commands()


def test_each_runs_in_the_private_network_and_is_not_tried_for_ever(
    targets: list[dict[str, Any]],
) -> None:
    for target in targets:
        parameters = target["EcsParameters"]
        network = parameters["NetworkConfiguration"]["AwsvpcConfiguration"]
        assert parameters["TaskDefinitionArn"].endswith(":task-definition/skincare-api")
        assert network["AssignPublicIp"] == "DISABLED"
        assert network["SecurityGroups"] == ["network.ApiSecurityGroup.GroupId"]
        assert target["RetryPolicy"]["MaximumEventAgeInSeconds"] <= 3600


def test_the_scheduler_may_start_the_apis_task_and_pass_its_two_roles(deployment: Deployed) -> None:
    ((policy,), trust) = (
        deployment.resource("schedules", "Role")["Policies"],
        deployment.resource("schedules", "Role")["AssumeRolePolicyDocument"],
    )
    run, pass_role = policy["PolicyDocument"]["Statement"]

    assert run["Action"] == "ecs:RunTask"
    assert all("task-definition/skincare-api" in resource for resource in run["Resource"])
    assert run["Condition"]["ArnEquals"]["ecs:cluster"].endswith(":cluster/skincare")
    assert pass_role["Action"] == "iam:PassRole"
    assert pass_role["Resource"] == ["roles.ExecutionRole.Arn", "roles.ApiTaskRole.Arn"]
    assert trust["Statement"][0]["Principal"] == {"Service": "scheduler.amazonaws.com"}
