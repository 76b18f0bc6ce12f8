"""Each role may do its own, on its own."""

import pytest

from ecs.template import deployed

QUEUE, DEAD_LETTERS = "queues.OrderEvents.Arn", "queues.DeadLetters.Arn"


def allowed(role: str) -> dict[tuple[str, str], str]:
    """Return the statement for each allowed (action, resource)."""
    found = {}
    for policy in deployed().resource("roles", role)["Policies"]:
        for statement in policy["PolicyDocument"]["Statement"]:
            assert statement["Effect"] == "Allow"
            for action in as_list(statement["Action"]):
                for resource in as_list(statement["Resource"]):
                    found[action, resource] = policy["PolicyName"]
    return found


def as_list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def test_the_api_sends_to_the_queue_and_never_receives_from_it() -> None:
    on_queue = {action for action, resource in allowed("ApiTaskRole") if resource == QUEUE}

    assert on_queue == {"sqs:GetQueueAttributes", "sqs:SendMessage"}


def test_the_worker_works_on_its_queue_and_never_touches_the_dead_letters() -> None:
    assert set(allowed("WorkerTaskRole")) == {
        (f"sqs:{action}", QUEUE)
        for action in (
            "ReceiveMessage",
            "DeleteMessage",
            "ChangeMessageVisibility",
            "GetQueueAttributes",
            "SendMessage",
        )
    }


@pytest.mark.parametrize("role", ["ExecutionRole", "ApiTaskRole", "WorkerTaskRole"])
def test_no_action_and_no_resource_is_a_wildcard_where_aws_takes_less(role: str) -> None:
    for action, resource in allowed(role):
        assert "*" not in action
        # https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelasticcontainerregistry.html
        assert resource != "*" or action == "ecr:GetAuthorizationToken"


@pytest.mark.parametrize("role", ["ExecutionRole", "ApiTaskRole", "WorkerTaskRole"])
def test_only_tasks_of_this_account_take_the_role(role: str) -> None:
    (statement,) = deployed().resource("roles", role)["AssumeRolePolicyDocument"]["Statement"]

    assert statement["Principal"] == {"Service": "ecs-tasks.amazonaws.com"}
    assert statement["Condition"]["StringEquals"] == {"aws:SourceAccount": "123456789012"}


def test_the_migration_has_no_role_of_its_own() -> None:
    assert "TaskRoleArn" not in deployed().resource("migration", "TaskDefinition")


def test_api_and_worker_run_under_their_roles() -> None:
    for task, role in (("api", "ApiTaskRole"), ("worker", "WorkerTaskRole")):
        definition = deployed().resource(task, "TaskDefinition")
        assert definition["TaskRoleArn"] == f"roles.{role}.Arn"
        assert definition["ExecutionRoleArn"] == "roles.ExecutionRole.Arn"
