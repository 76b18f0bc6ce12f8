"""Whoever deploys may do what deploy.sh calls, and nothing else; and keeps no key."""

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

from ecs.template import FOLDER, deployed, load, names

ROOT = Path(settings.BASE_DIR)
SCRIPTS = [FOLDER / name for name in ("deploy.sh", "aws.sh", "checks.sh", "release.sh")]
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text())
    for path in (ROOT / ".github" / "workflows").glob("*.yaml")
}
#: The commands of the CLI whose permissions have other names than they.
# https://docs.aws.amazon.com/AmazonECR/latest/userguide/image-push-iam.html
MEANS = {
    "cloudformation deploy": {
        "cloudformation:CreateChangeSet",
        "cloudformation:DescribeChangeSet",
        "cloudformation:ExecuteChangeSet",
        "cloudformation:DescribeStacks",
        "iam:PassRole",
    },
    "cloudformation wait": {"cloudformation:DescribeStacks"},
    # Printed for a person to run.
    "account enable-region": set(),
    "cloudformation continue-update-rollback": set(),
    "ecs update-service": set(),
    "secretsmanager put-secret-value": set(),
    "secretsmanager restore-secret": set(),
    "service-quotas request-service-quota-increase": set(),
    "acm list-certificates": set(),
    "elbv2 create-target-group": set(),
    "elbv2 modify-target-group": set(),
    "elbv2 create-listener": set(),
    "rds modify-db-instance": set(),
    "ecr get-login-password": {"ecr:GetAuthorizationToken"},
    "docker push": {
        f"ecr:{action}"
        for action in (
            *("BatchCheckLayerAvailability", "InitiateLayerUpload", "UploadLayerPart"),
            *("CompleteLayerUpload", "PutImage", "BatchGetImage", "GetDownloadUrlForLayer"),
        )
    },
    "ecs run-task": {"ecs:RunTask", "iam:PassRole"},
    "rds describe-db-instances": {"rds:DescribeDBInstances"},
}
PREFIXES = {"elbv2": "elasticloadbalancing", "service-quotas": "servicequotas"}


def calls() -> set[str]:
    text = "\n".join(path.read_text() for path in SCRIPTS)
    return {
        f"{service} {operation}"
        for service, operation in re.findall(r"\baws ([a-z0-9-]+)\s+([a-z][a-z-]+)", text)
    } | {f"docker {operation}" for operation in re.findall(r"\bdocker (push)", text)}


def needed() -> set[str]:
    found = set()
    for call in calls():
        if call in MEANS:
            found |= MEANS[call]
        else:
            service, operation = call.split()
            action = "".join(word.title() for word in operation.split("-"))
            found.add(f"{PREFIXES.get(service, service)}:{action}")
    return found


def statements(role: str) -> Iterator[dict[str, Any]]:
    for policy in deployed(GitHubRepository="you/shop").resource("deployer", role)["Policies"]:
        yield from policy["PolicyDocument"]["Statement"]


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_the_deployer_may_do_what_the_script_calls_and_nothing_else() -> None:
    allowed = {action for s in statements("Deployer") for action in as_list(s["Action"])}

    assert allowed == needed()


def test_the_scripts_assume_the_defaults_that_the_templates_have() -> None:
    known = {
        name: str(definition["Default"])
        for template in names()
        for name, definition in load(template).parameters.items()
        if "Default" in definition
    }
    text = "\n".join(path.read_text() for path in SCRIPTS)
    for name, assumed in re.findall(r"\(parameter (\w+) ([^)']+)\)", text):
        if name in known and assumed != "absent":
            assert known[name] == assumed, name


def test_every_call_of_the_script_was_found() -> None:
    # A call that is hidden in a variable would be missed.
    for path in SCRIPTS:
        for line in path.read_text().splitlines():
            if re.match(r"\s*(run |ask \S+ )?aws ", line):
                assert re.search(r"\baws [a-z0-9-]+ [a-z][a-z-]+", line), line
    assert len(calls()) > 20


def test_the_deployer_hands_on_two_kinds_of_roles_each_to_its_service() -> None:
    passed = {
        s["Resource"]: s["Condition"]["StringEquals"]["iam:PassedToService"]
        for s in statements("Deployer")
        if s["Action"] == "iam:PassRole"
    }

    assert passed == {
        "deployer.CloudFormationRole.Arn": "cloudformation.amazonaws.com",
        "arn:aws:iam::123456789012:role/skincare-roles-ExecutionRole-*": "ecs-tasks.amazonaws.com",
    }


def test_the_deployer_touches_the_shops_own_and_only_looks_at_the_rest() -> None:
    for statement in statements("Deployer"):
        for resource in as_list(statement["Resource"]):
            if resource == "*" and "Condition" not in statement:
                for action in as_list(statement["Action"]):
                    verb = action.split(":")[1]
                    assert verb.startswith(("Describe", "Get", "List")), action


def test_only_the_approved_environment_of_the_repository_takes_the_role() -> None:
    role = deployed(GitHubRepository="you/shop").resource("deployer", "Deployer")
    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]

    assert statement["Action"] == "sts:AssumeRoleWithWebIdentity"
    assert statement["Condition"] == {
        "StringEquals": {
            "token.actions.githubusercontent.com:aud": "sts.amazonaws.com",
            "token.actions.githubusercontent.com:sub": "repo:you/shop:environment:production",
        }
    }
    assert WORKFLOWS["deploy"]["jobs"]["deploy"]["environment"] == "production"
    asked = role["MaxSessionDuration"]
    (credentials,) = (
        step["with"]
        for step in WORKFLOWS["deploy"]["jobs"]["deploy"]["steps"]
        if "configure-aws-credentials" in step.get("uses", "")
    )
    assert credentials["role-duration-seconds"] <= asked


@pytest.mark.parametrize(
    ("repository", "fits"),
    [
        ("you/shop", True),
        ("you-1@123456/my.shop_2@456789", True),
        ("you@/shop@456789", False),
        ("you@123456/shop", False),
        ("you/*", False),
        ("*@1/*@2", False),
        ("you/shop:environment:other", False),
    ],
)
def test_a_repository_is_named_with_its_numbers_or_as_it_was_before_there_were_any(
    repository: str, fits: bool
) -> None:
    # What GitHub says of one that is made today; an older one says its name alone.
    pattern = load("deployer").parameters["GitHubRepository"]["AllowedPattern"]
    assert bool(re.fullmatch(pattern, repository)) is fits
    if fits:
        role = deployed(GitHubRepository=repository).resource("deployer", "Deployer")
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        subject = statement["Condition"]["StringEquals"]["token.actions.githubusercontent.com:sub"]
        assert subject == f"repo:{repository}:environment:production"


def test_cloudformation_may_make_all_that_the_templates_have() -> None:
    folder = next((ROOT / ".venv" / "ecs-lint").glob("lib/python3*/site-packages/cfnlint"), None)
    if folder is None:
        pytest.skip("`make lint-ecs` installs what knows each resource's handlers")
    types = {r["Type"] for name in names() for r in load(name).resources.values()}
    patterns = [
        action.lower() for s in statements("CloudFormationRole") for action in as_list(s["Action"])
    ]
    services = {pattern.split(":")[0] for pattern in patterns}
    #: What handlers list for properties that no template here sets.
    unused = re.compile(
        r"ec2:.*webacl.*|iam:.*permissionsboundary|iam:listroles|ec2:(attach|detach)vpngateway|ec2:.*verifiedaccess"
        r"|ec2:.*vpcencryption.*|ec2:modifyvpctenancy|logs:.*(dataprotection|kmskey|bearertoken).*"
        r"|logs:putloggroupdeletionprotection|rds:promotereadreplica|rds:rolefrom.*"
    )

    for schema in (json.loads(f.read_text()) for f in folder.glob("data/schemas/resources/*.json")):
        if schema.get("typeName") not in types - {
            "AWS::IAM::OIDCProvider",
            "AWS::IAM::ManagedPolicy",
        }:
            continue
        for kind in ("create", "update", "delete", "read"):
            for action in schema.get("handlers", {}).get(kind, {}).get("permissions", []):
                action = action.lower()
                if action.split(":")[0] in services and not unused.fullmatch(action):
                    assert any(fnmatch(action, pattern) for pattern in patterns), (
                        f"{schema['typeName']} needs {action}"
                    )


def test_cloudformation_makes_no_role_but_the_shops() -> None:
    for statement in statements("CloudFormationRole"):
        for action in as_list(statement["Action"]):
            assert action not in ("*", "iam:*")
            if action.startswith("iam:"):
                assert all(
                    ":role/skincare-" in r or ":role/aws-service-role/" in r
                    for r in as_list(statement["Resource"])
                )


#: What stands for an ARN that only AWS knows, by the template that makes it.
MADE = {
    "registry": "arn:aws:ecr:ap-southeast-3:123456789012:repository/skincare",
    "queues": "arn:aws:sqs:ap-southeast-3:123456789012:skincare-order-events",
    "secrets": "arn:aws:secretsmanager:ap-southeast-3:123456789012:secret:skincare/EMAIL_URL-1",
    "cluster": "arn:aws:logs:ap-southeast-3:123456789012:log-group:/skincare/api:log-stream:1",
    "roles": "arn:aws:iam::123456789012:role/skincare-roles-ApiTaskRole-1",
}


def test_a_role_that_cloudformation_makes_may_do_no_more_than_the_shops_roles() -> None:
    # Else whoever deploys makes a role that may do everything, and starts a task with it.
    makes = {"CreateRole", "PutRolePolicy", "AttachRolePolicy", "PutRolePermissionsBoundary"}
    bound = {"StringEquals": {"iam:PermissionsBoundary": "deployer.Boundary"}}
    for statement in statements("CloudFormationRole"):
        actions = {action.removeprefix("iam:") for action in as_list(statement["Action"])}
        assert not actions & {"DeleteRolePermissionsBoundary", "CreatePolicyVersion"}
        if actions & makes:
            assert statement["Condition"] == bound


@pytest.mark.parametrize("template", ["roles", "schedules"])
def test_the_boundary_leaves_each_role_what_it_needs(template: str) -> None:
    deployment = deployed(GitHubRepository="you/shop", PermissionsBoundaryArn="arn:boundary")
    boundary = deployment.resource("deployer", "Boundary")["PolicyDocument"]["Statement"]

    def fits(action: str, resource: str) -> bool:
        arn = MADE.get(resource.split(".")[0], resource)
        return any(
            action in as_list(allowed["Action"])
            and any(fnmatch(arn, pattern) for pattern in as_list(allowed["Resource"]))
            for allowed in boundary
        )

    for role in deployment.resources("AWS::IAM::Role", template).values():
        assert role["PermissionsBoundary"] == "arn:boundary"
        for policy in role["Policies"]:
            for statement in policy["PolicyDocument"]["Statement"]:
                for action in as_list(statement["Action"]):
                    for resource in as_list(statement["Resource"]):
                        assert fits(action, resource), (action, resource)
    for role in deployed().resources("AWS::IAM::Role", template).values():
        assert "PermissionsBoundary" not in role


# -- Workflows -------------------------------------------------------------------------------------


def test_nothing_is_deployed_that_was_not_tested_or_was_deployed_before() -> None:
    deploy = WORKFLOWS["deploy"]["jobs"]["deploy"]

    assert WORKFLOWS["deploy"]["jobs"]["test"]["uses"] == "./.github/workflows/test.yaml"
    assert deploy["needs"] == "test"
    assert "needs.test.result == 'success' || inputs.image != ''" in deploy["if"]
    assert "github.ref == 'refs/heads/main' && (" in deploy["if"]
    assert WORKFLOWS["deploy"]["concurrency"]["cancel-in-progress"] is False
    assert [step["run"] for step in WORKFLOWS["test"]["jobs"]["all"]["steps"] if "run" in step] == [
        ".ci/run"
    ]


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_a_workflow_may_read_the_code_and_uses_actions_of_one_commit(workflow: str) -> None:
    document = WORKFLOWS[workflow]

    assert document["permissions"] == {"contents": "read"}
    for job in document["jobs"].values():
        for step in job.get("steps", []):
            if "uses" in step:
                assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"])


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_an_action_runs_on_the_node_that_githubs_runners_have(workflow: str) -> None:
    # Without Node 20 since September 2026: what was made for it hangs where it takes a role.
    # https://github.blog/changelog/2025-09-19-deprecation-of-node-20-on-github-actions-runners/
    first = {"actions/checkout": 5, "actions/setup-python": 6}
    first["aws-actions/configure-aws-credentials"] = 6
    text = (ROOT / ".github" / "workflows" / f"{workflow}.yaml").read_text()
    used = re.findall(r"uses: (\S+)@[0-9a-f]{40} # v(\d+)\.", text)

    assert used
    assert [name for name, version in used if int(version) < first[name]] == []


def test_no_key_is_kept_anywhere() -> None:
    files = [
        *(ROOT / ".github").rglob("*.yaml"),
        *FOLDER.glob("*.yaml"),
        *FOLDER.glob("*.sh"),
        FOLDER / "parameters.example",
    ]
    for path in files:
        text = path.read_text()
        assert not re.search(r"\$\{\{\s*secrets\.", text), path.name
        assert not re.search(r"AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY)|AKIA[0-9A-Z]{16}", text)


def test_what_a_person_types_into_the_workflow_reaches_no_shell_as_code() -> None:
    # https://docs.github.com/en/actions/reference/security/secure-use#good-practices-for-mitigating-script-injection-attacks
    for job in WORKFLOWS["deploy"]["jobs"].values():
        for step in job.get("steps", []):
            assert "${{" not in step.get("run", "")
