"""An account at AWS as deploy.sh sees it: aws, docker, git, curl and sleep, which ask this.

No emulator knows what makes a deployment fail, so this knows the rules and nothing else: ECR's
immutable tags, the states of CloudFormation's stacks, their change sets, and what a failed creation
leaves behind, ECS's tasks that cannot be placed, that fail and that take long. `sleep` moves the
clock, so nothing waits. Answers have the shape of the real ones, and `--query` is evaluated.

Sources: https://docs.aws.amazon.com/AmazonECR/latest/userguide/image-tag-mutability.html
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
https://github.com/aws/aws-cli/issues/4534 (failed change sets)
https://docs.aws.amazon.com/AmazonECS/latest/developerguide/api_failures_messages.html
"""

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from socketserver import StreamRequestHandler, TCPServer
from threading import Thread
from typing import Any
from zoneinfo import ZoneInfo

import jmespath  # type: ignore[import-untyped]

from ecs.template import FOLDER, load

REGISTRY = "123456789012.dkr.ecr.ap-southeast-3.amazonaws.com"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
MINUTE = 60
#: Made with their stack, value and all.
MADE_SECRETS = {"SECRET_KEY", "SERVICES_PASSWORD", "database"}

_ELB = "arn:aws:elasticloadbalancing:ap-southeast-3:123456789012"
#: What foundation.yaml makes.
FOUNDATION = {
    "VpcId": "vpc-0f0",
    "PrivateSubnetIds": "subnet-0f0,subnet-0f1",
    "LoadBalancerArn": f"{_ELB}:loadbalancer/app/shop/0f",
    "LoadBalancerSecurityGroupId": "sg-0f2",
    "HttpsListenerArn": f"{_ELB}:listener/app/shop/0f/0f",
    "TargetGroupArn": f"{_ELB}:targetgroup/shop/0f",
    "DatabaseSecurityGroupId": "sg-0d0",
    "DatabaseHost": "shop.example.ap-southeast-3.rds.amazonaws.com",
    "DatabaseSecretArn": "arn:aws:secretsmanager:ap-southeast-3:123456789012:secret:database-0f",
    "EndpointSecurityGroupId": "",
}

#: Talks to the server below without starting another program.
_CLIENT = """#!/bin/bash
exec 5<>"/dev/tcp/127.0.0.1/$CLOUD_PORT"
printf '%s\\0' "$#" "${TZ-UTC}" "${AWS_REGION-}" "${AWS_DEFAULT_REGION-}" "${0##*/}" "$@" >&5
IFS= read -r code <&5
IFS= read -r -d $'\\x1e' out <&5
IFS= read -r -d '' err <&5
printf '%s' "$out"
printf '%s' "$err" >&2
exit "$code"
"""


class Refused(Exception):
    """The program ends with a status that is not 0, and says this."""

    def __init__(self, message: str, code: int = 255) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Task:
    """A one-off task that runs until `ends`, and how it ends then."""

    family: str
    started_by: str
    begins: int
    ends: int
    exit_code: int | None
    reason: str = "Essential container in task exited"


@dataclass
class Stack:
    """One stack, and what deploy.sh gave it."""

    template: str
    status: str
    parameters: dict[str, str]
    busy_until: int = 0
    later: str = ""
    """The status after `busy_until`."""
    events: list[str] = field(default_factory=list)
    failed_change_sets: list[str] = field(default_factory=list)

    @property
    def is_protected(self) -> bool:
        """Whether AWS refuses to delete what is in it: a database, a load balancer."""
        known = load(self.template).parameters.get("DeletionProtection", {"Default": "false"})
        return self.parameters.get("DeletionProtection", known["Default"]) == "true"


@dataclass
class Cloud:
    """The account. What is set here before a run decides how it goes."""

    now: int = 0
    calls: list[str] = field(default_factory=list)
    stacks: dict[str, Stack] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """Names that are taken, and the stack that took each."""
    images: dict[str, str] = field(default_factory=dict)
    """Pushed: tag → digest."""
    built: dict[str, str] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)
    changed: dict[str, float] = field(default_factory=dict)
    """Secrets that were given another value, and when."""
    replaced: set[str] = field(default_factory=set)
    """Secrets that have had a value before."""
    leaving: set[str] = field(default_factory=set)
    """Secrets that are scheduled for deletion."""
    most_change_sets: int = 1000
    """Of one stack."""
    tasks: dict[str, Task] = field(default_factory=dict)
    fail: list[str] = field(default_factory=list)
    """A call whose text contains one of these fails, once for each."""
    migration_seconds: int = 30
    migration_exit: int | None = 0
    migration_reason: str = "Essential container in task exited"
    unknown_seconds: int = 0
    """For so long ECS does not know a task that was started."""
    log_seconds: int = 0
    """How long after its end a task's log can be read."""
    placed_at_try: int = 1
    """The first tries of run-task place nothing."""
    sick: set[str] = field(default_factory=set)
    """Images whose tasks fail: the circuit breaker rolls them back."""
    stuck: set[str] = field(default_factory=set)
    """Images whose service is never steady, and which CloudFormation waits for for three hours."""
    unsteady: bool = False
    """The services are never steady after CloudFormation said they were."""
    services: tuple[str, ...] = ("skincare-worker", "skincare-api")
    """Those that ECS knows, once they were made."""
    desired: int = 1
    """Tasks that each service should have."""
    number: str = "123456789012"
    """Of the account that the credentials are of."""
    warning: str = ""
    """What the AWS CLI writes to its standard error beside each answer."""
    has_address: bool = True
    """Whether the shop's host has a record in DNS."""
    is_enabled: bool = True
    """Whether the account has opted into the region."""
    is_clone: bool = True
    """Whether the scripts are in a clone of a repository."""
    service_role: bool = True
    vcpus: float = 100.0
    certificate: str = "ISSUED"
    certified: tuple[str, ...] = ("api.shop.example", "*.shop.example")
    health_path: str = "/healthz"
    target_type: str = "ip"
    listeners: int = 1
    database: str | None = "available"
    credentials_end: int | None = None
    """The second from which on AWS answers that the token has expired."""
    interrupted_at: str = ""
    """Somebody presses Ctrl-C when a call contains this, once."""
    interrupt: Callable[[], None] = field(default=lambda: None)
    regions: set[tuple[str, str]] = field(default_factory=set)
    """What CLI 2 and CLI 1 were told in the environment."""
    time_zone: str = "UTC"
    """Of the program that asks; CLI 2 writes times in it."""
    _tries: int = 0

    # -- programs ----------------------------------------------------------------------------------

    def program(self, name: str, arguments: Sequence[str]) -> str:
        """Carry out one call; return what it prints. Raises Refused."""
        text = " ".join([name, *arguments])
        if name == "sleep":
            self.now += int(arguments[0])
            return ""
        self.calls.append(text)
        if self.interrupted_at and self.interrupted_at in text:
            self.interrupted_at = ""
            self.interrupt()
        if name == "aws" and self.credentials_end is not None and self.now >= self.credentials_end:
            raise Refused(
                "An error occurred (ExpiredTokenException) when calling: The security token "
                "included in the request is expired\n"
            )
        for fault in self.fail:
            if fault in text:
                self.fail.remove(fault)
                self._before_failing(arguments)
                raise Refused(f"An error occurred (Broken) when calling: {text[:60]}\n")
        return {"git": self._git, "docker": self._docker, "curl": self._curl}.get(name, self._aws)(
            arguments
        )

    def _curl(self, _: Sequence[str]) -> str:
        if not self.has_address:
            raise Refused("curl: (6) Could not resolve host: api.shop.example\n", code=6)
        return "ok\n"

    def _git(self, arguments: Sequence[str]) -> str:
        text = " ".join(arguments)
        if not self.is_clone:
            raise Refused("fatal: not a git repository (or any of the parent directories)\n", 128)
        if "--short=12" in text:
            return f"{COMMIT[:12]}\n"
        if "rev-parse" in text:
            return f"{COMMIT}\n"
        return "2026-11-30T09:00:00+07:00\n" if " log " in f" {text} " else ""

    def _docker(self, arguments: Sequence[str]) -> str:
        if arguments[0] == "build":
            tag = arguments[arguments.index("--tag") + 1]
            # Never twice the same bytes, as with any real build.
            self.built[tag] = f"sha256:{len(self.calls):064x}"
        if arguments[0] == "push":
            tag = arguments[1].rsplit(":", 1)[1]
            if tag in self.images and self.images[tag] != self.built[arguments[1]]:
                raise Refused(
                    f"tag invalid: The image tag '{tag}' already exists in the 'skincare' "
                    "repository and cannot be overwritten because the repository is immutable.\n",
                    code=1,
                )
            self.images[tag] = self.built[arguments[1]]
        return ""

    def _aws(self, arguments: Sequence[str]) -> str:
        service, operation, *rest = arguments
        options = _options(rest)
        name = f"_{service}_{operation}".replace("-", "_")
        answer: Callable[[Mapping[str, str]], Any] | None = getattr(self, name, None)
        if answer is None:
            raise Refused(f"this account has no {service} {operation}\n", code=252)
        document = answer(options)
        if document is None:
            return ""
        if isinstance(document, str):
            return document
        return _as_text(jmespath.search(options["query"], document))

    # -- account -----------------------------------------------------------------------------------

    def _sts_get_caller_identity(self, _: Mapping[str, str]) -> Any:
        if not self.is_enabled:
            raise Refused(
                "An error occurred (InvalidClientTokenId) when calling the GetCallerIdentity "
                "operation: The security token included in the request is invalid\n"
            )
        return {"Account": self.number, "Arn": f"arn:aws:iam::{self.number}:user/you"}

    def _iam_get_role(self, _: Mapping[str, str]) -> Any:
        if not self.service_role:
            raise Refused("An error occurred (NoSuchEntity) when calling the GetRole operation\n")
        return {"Role": {"Arn": "arn:aws:iam::123456789012:role/aws-service-role/ecs"}}

    def _iam_create_service_linked_role(self, _: Mapping[str, str]) -> None:
        self.service_role = True

    def _service_quotas_get_service_quota(self, _: Mapping[str, str]) -> Any:
        return {"Quota": {"Value": self.vcpus}}

    # -- CloudFormation ----------------------------------------------------------------------------

    def _status(self, stack: Stack) -> str:
        if stack.busy_until and self.now >= stack.busy_until:
            stack.status, stack.busy_until = stack.later, 0
        return stack.status

    def _before(self, name: str) -> Stack | None:
        """The stack as `aws cloudformation deploy` sees it: one that was only proposed is none."""
        stack = self.stacks.get(name)
        return None if stack and stack.status == "REVIEW_IN_PROGRESS" else stack

    def _stack(self, options: Mapping[str, str]) -> Stack:
        name = options["stack-name"]
        if name not in self.stacks:
            raise Refused(
                "An error occurred (ValidationError) when calling the DescribeStacks operation: "
                f"Stack with id {name} does not exist\n"
            )
        return self.stacks[name]

    def _cloudformation_describe_stacks(self, options: Mapping[str, str]) -> Any:
        stack = self._stack(options)
        outputs = {
            "RepositoryUri": f"{REGISTRY}/skincare",
            "WorkerSecurityGroupId": "sg-0a0",
            "ApiSecurityGroupId": "sg-0b0",
            **FOUNDATION,
        }
        declared = load(stack.template).document.get("Outputs", {})
        return {
            "Stacks": [
                {
                    "StackStatus": self._status(stack),
                    "Parameters": [
                        {"ParameterKey": key, "ParameterValue": value}
                        for key, value in stack.parameters.items()
                    ],
                    "Outputs": [
                        {"OutputKey": key, "OutputValue": outputs.get(key, f"<{key}>")}
                        for key, output in declared.items()
                        if "Condition" not in output
                    ],
                }
            ]
        }

    def _cloudformation_describe_stack_events(self, options: Mapping[str, str]) -> Any:
        return {
            "StackEvents": [
                {
                    "Timestamp": "2026-11-30T02:00:00Z",
                    "LogicalResourceId": "Resource",
                    "ResourceStatus": "CREATE_FAILED",
                    "ResourceStatusReason": reason,
                }
                for reason in self._stack(options).events
            ]
        }

    def _cloudformation_deploy(self, options: Mapping[str, str]) -> str:
        name = options["stack-name"]
        template = Path(options["template-file"]).stem
        before = self._before(name)
        given = dict(pair.split("=", 1) for pair in options["parameter-overrides"].split("\n"))
        known = {**(before.parameters if before else {}), **given}
        self._validate(template, known, before)
        parameters = {key: known[key] for key in load(template).parameters if key in known}
        failed = before.failed_change_sets if before else []
        if len(failed) >= self.most_change_sets:
            raise Refused(
                "An error occurred (LimitExceededException) when calling the CreateChangeSet "
                f"operation: ChangeSet limit exceeded for stack {name}\n"
            )
        if before and before.parameters == parameters:
            failed.append(f"awscli-cloudformation-package-deploy-{len(self.calls)}")
            return f"No changes to deploy. Stack {name} is up to date\n"
        stack = self.stacks[name] = Stack(template, "", parameters)
        for taken, policy in _named(template, parameters.get("Prefix", "skincare")):
            if self.names.setdefault(taken, name) != name or (not before and policy == "left"):
                self._fail_creation(stack, before, f"{taken} already exists")
        image = parameters.get("Image", "")
        if image in self.sick and template in ("api", "worker"):
            self._fail_creation(stack, before, "ECS Deployment Circuit Breaker was triggered.")
        if image in self.stuck and template in ("api", "worker"):
            stack.status, stack.later = "UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"
            stack.busy_until, self.now = self.now + 180 * MINUTE, self.now + 60 * MINUTE
            raise Refused("Waiter StackUpdateComplete failed: Max attempts exceeded\n")
        stack.status = "UPDATE_COMPLETE" if before else "CREATE_COMPLETE"
        return "Successfully created/updated stack\n"

    def _validate(self, template: str, given: Mapping[str, str], before: Stack | None) -> None:
        if before and self._status(before) not in (
            "CREATE_COMPLETE",
            "UPDATE_COMPLETE",
            "UPDATE_ROLLBACK_COMPLETE",
        ):
            raise Refused(
                "An error occurred (ValidationError) when calling the CreateChangeSet operation: "
                f"Stack is in {before.status} state and can not be updated.\n"
            )
        for key, definition in load(template).parameters.items():
            value = given.get(key, definition.get("Default"))
            if value is None:
                raise Refused(f"Parameters: [{key}] must have values\n")
            pattern = definition.get("AllowedPattern", ".*")
            if not re.fullmatch(pattern, str(value)) or "\r" in str(value):
                raise Refused(f"Parameter {key} failed to satisfy constraint: {pattern}\n")
        for export in _imports(load(template).document, given.get("Prefix", "skincare")):
            if export not in self._exports():
                raise Refused(f"No export named {export} found.\n")

    def _exports(self) -> set[str]:
        return {
            str(name["Fn::Sub"]).replace("${Prefix}", stack.parameters.get("Prefix", "skincare"))
            for stack in self.stacks.values()
            if self._status(stack).endswith("_COMPLETE") and stack.status != "ROLLBACK_COMPLETE"
            for name, _ in load(stack.template).exports
        }

    def _fail_creation(self, stack: Stack, before: Stack | None, reason: str) -> None:
        """Roll back: a new stack's names are free again, but for those that Retain keeps."""
        name = next(key for key, value in self.stacks.items() if value is stack)
        stack.events.append(reason)
        stack.status = "UPDATE_ROLLBACK_COMPLETE" if before else "ROLLBACK_COMPLETE"
        if before:
            stack.parameters = before.parameters
        elif stack.is_protected:
            stack.status = "ROLLBACK_FAILED"
        else:
            prefix = stack.parameters.get("Prefix", "skincare")
            for taken, policy in _named(stack.template, prefix):
                if self.names.get(taken) == name:
                    if policy == "Retain":
                        self.names[taken] = "nobody: left behind"
                    else:
                        del self.names[taken]
        raise Refused(f"Failed to create/update the stack: {reason}\n")

    def _before_failing(self, arguments: Sequence[str]) -> None:
        """A stack whose creation fails half way leaves more behind than a call that was refused."""
        if list(arguments[:2]) != ["cloudformation", "deploy"]:
            return
        options = _options(arguments[2:])
        name = options["stack-name"]
        before = self._before(name)
        template = Path(options["template-file"]).stem
        parameters = dict(pair.split("=", 1) for pair in options["parameter-overrides"].split("\n"))
        stack = self.stacks[name] = Stack(template, "", parameters)
        for taken, _ in _named(template, parameters.get("Prefix", "skincare")):
            self.names.setdefault(taken, name)
        self._fail_creation(stack, before, "Resource handler returned message: it broke")

    def _cloudformation_delete_stack(self, options: Mapping[str, str]) -> None:
        stack = self.stacks.get(options["stack-name"])
        if stack and stack.is_protected:
            stack.status = "DELETE_FAILED"
            return
        self.stacks.pop(options["stack-name"], None)

    def _cloudformation_wait(self, options: Mapping[str, str]) -> None:
        if options["stack-name"] in self.stacks:
            raise Refused("Waiter StackDeleteComplete failed: terminal failure state\n")

    def _cloudformation_list_change_sets(self, options: Mapping[str, str]) -> Any:
        names = self._stack(options).failed_change_sets
        return {"Summaries": [{"ChangeSetName": name, "Status": "FAILED"} for name in names]}

    def _cloudformation_delete_change_set(self, options: Mapping[str, str]) -> None:
        self._stack(options).failed_change_sets.remove(options["change-set-name"])

    # -- ECR, secrets, load balancer, database -----------------------------------------------------

    def _ecr_describe_images(self, options: Mapping[str, str]) -> Any:
        tag = options["image-ids"].removeprefix("imageTag=")
        if tag not in self.images:
            raise Refused(
                "An error occurred (ImageNotFoundException) when calling the DescribeImages "
                f"operation: The image with imageId {{imageTag:'{tag}'}} does not exist\n"
            )
        return {"imageDetails": [{"imageDigest": self.images[tag]}]}

    def _ecr_get_login_password(self, _: Mapping[str, str]) -> str:
        return "password\n"

    def _secretsmanager_describe_secret(self, options: Mapping[str, str]) -> Any:
        name = options["secret-id"]
        changed = datetime.fromtimestamp(self.changed.get(name, 1.5), ZoneInfo(self.time_zone))
        found: dict[str, Any] = {"Name": name, "LastChangedDate": changed.isoformat()}
        if name in self.secrets or name.partition("/")[2] in MADE_SECRETS:
            found["VersionIdsToStages"] = {"2": ["AWSCURRENT"]}
        if name in self.replaced:
            found["VersionIdsToStages"]["1"] = ["AWSPREVIOUS"]
        if name in self.leaving:
            found["DeletedDate"] = 1764460800.0
        return found

    def _elbv2_describe_target_groups(self, _: Mapping[str, str]) -> Any:
        group = {"TargetType": self.target_type, "HealthCheckPath": self.health_path}
        return {"TargetGroups": [group]}

    def _elbv2_describe_listeners(self, _: Mapping[str, str]) -> Any:
        secure = {"Protocol": "HTTPS", "ListenerArn": f"{_ELB}:listener/app/shop/01/01"}
        plain = {"Protocol": "HTTP", "ListenerArn": f"{_ELB}:listener/app/shop/01/02"}
        return {"Listeners": [plain, *[secure] * self.listeners]}

    def _elbv2_describe_listener_certificates(self, _: Mapping[str, str]) -> Any:
        return {"Certificates": [{"CertificateArn": "arn:aws:acm:certificate/1"}]}

    def _acm_describe_certificate(self, _: Mapping[str, str]) -> Any:
        names = list(self.certified)
        return {"Certificate": {"Status": self.certificate, "SubjectAlternativeNames": names}}

    def _rds_describe_db_instances(self, _: Mapping[str, str]) -> Any:
        group = [{"VpcSecurityGroupId": "sg-0d0"}]
        replica = {
            "DBInstanceIdentifier": "a-reader",
            "DBInstanceStatus": "available",
            "VpcSecurityGroups": group,
            "ReadReplicaSourceDBInstanceIdentifier": "shop",
        }
        database = {
            "DBInstanceIdentifier": "shop",
            "DBInstanceStatus": self.database,
            "VpcSecurityGroups": group,
        }
        return {"DBInstances": [replica, database] if self.database else []}

    # -- ECS ---------------------------------------------------------------------------------------

    def _ecs_run_task(self, options: Mapping[str, str]) -> Any:
        self._tries += 1
        if self._tries < self.placed_at_try:
            return {"tasks": [], "failures": [{"reason": "Capacity is unavailable at this time."}]}
        arn = f"arn:aws:ecs:ap-southeast-3:123456789012:task/skincare/{len(self.tasks):032x}"
        self.tasks[arn] = Task(
            options["task-definition"],
            options["started-by"],
            self.now,
            self.now + self.migration_seconds,
            self.migration_exit,
            self.migration_reason,
        )
        return {"tasks": [{"taskArn": arn}], "failures": []}

    def _ecs_list_tasks(self, options: Mapping[str, str]) -> Any:
        wanted = options["desired-status"] == "RUNNING"
        return {
            "taskArns": [
                arn
                for arn, task in self.tasks.items()
                if task.family == options["family"] and (task.ends > self.now) == wanted
            ]
        }

    def _ecs_describe_tasks(self, options: Mapping[str, str]) -> Any:
        task = self.tasks[options["tasks"]]
        if self.now < task.begins + self.unknown_seconds:
            return {"tasks": [], "failures": [{"arn": options["tasks"], "reason": "MISSING"}]}
        ended = self.now >= task.ends
        container = {"name": task.family.rpartition("-")[2], "exitCode": task.exit_code}
        return {
            "tasks": [
                {
                    "lastStatus": "STOPPED" if ended else "RUNNING",
                    "containers": [container if ended else {"name": container["name"]}],
                    **({"stopCode": "X", "stoppedReason": task.reason} if ended else {}),
                }
            ]
        }

    def _ecs_describe_services(self, _: Mapping[str, str]) -> Any:
        state = "IN_PROGRESS" if self.unsteady else "COMPLETED"
        return {
            "services": [
                {
                    "serviceName": name,
                    "status": "ACTIVE",
                    "runningCount": self.desired,
                    "desiredCount": 2 if self.unsteady else self.desired,
                    "deployments": [{"status": "PRIMARY", "rolloutState": state}],
                    "events": [{"createdAt": 1.5, "message": f"({name}) unable to place a task"}],
                }
                for name in self.services
            ],
            "failures": [
                {
                    "arn": f"arn:aws:ecs:ap-southeast-3:123456789012:service/skincare/{name}",
                    "reason": "MISSING",
                }
                for name in ("skincare-worker", "skincare-api")
                if name not in self.services
            ],
        }

    def _logs_get_log_events(self, options: Mapping[str, str]) -> Any:
        if self.now < self.log_seconds + max(task.ends for task in self.tasks.values()):
            return {"events": []}
        return {"events": [{"message": f"the last line of {options['log-stream-name']}"}]}


def _options(arguments: Sequence[str]) -> dict[str, str]:
    """`--name value…` as a mapping; several values of one option are separated by a newline."""
    found: dict[str, list[str]] = {}
    name = ""
    for argument in arguments:
        if argument.startswith("--"):
            name = argument[2:]
            found[name] = []
        elif name:
            found[name].append(argument)
    return {key: "\n".join(values) for key, values in found.items()}


def _as_text(value: Any) -> str:
    """What the AWS CLI prints for `--output text`."""
    if isinstance(value, list):
        if any(isinstance(item, list) for item in value):
            return "".join(_as_text(item) for item in value)
        return "\t".join(str(item) for item in value) + "\n" if value else ""
    return f"{value}\n"


def _named(template: str, prefix: str) -> Iterator[tuple[str, str]]:
    """Each name that can be taken only once, with its deletion policy."""
    keys = {"QueueName", "RepositoryName", "GroupName", "Name"}
    for resource in load(template).resources.values():
        for key in keys & set(resource.get("Properties", {})):
            value = resource["Properties"][key]
            if isinstance(value, dict) and ("Fn::Sub" in value or value.get("Ref") == "Prefix"):
                text = str(value.get("Fn::Sub", "${Prefix}")).replace("${Prefix}", prefix)
                yield f"{resource['Type']} {text}", resource.get("DeletionPolicy", "Delete")


def _imports(value: Any, prefix: str) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _imports(item, prefix)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "Fn::ImportValue":
                yield str(item["Fn::Sub"]).replace("${Prefix}", prefix)
            else:
                yield from _imports(item, prefix)


@dataclass
class Deployer:
    """deploy.sh with a parameters file, in front of a Cloud."""

    cloud: Cloud
    folder: Path
    port: int

    @property
    def parameters(self) -> Path:
        return self.folder / "parameters"

    def deploy(self, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.run("deploy.sh", *options, str(self.parameters), **environment)

    def run(
        self, script: str, *arguments: str, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a script to its end, in a process group of its own, as a terminal does."""
        programs = {"PATH": f"{self.folder / 'bin'}:/usr/bin:/bin", "CLOUD_PORT": str(self.port)}
        with subprocess.Popen(
            [FOLDER / script, *arguments],
            env=programs | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            self.cloud.interrupt = lambda: os.killpg(process.pid, signal.SIGINT)
            out, err = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def made(self, text: str) -> list[str]:
        """Return the calls that contain a text."""
        return [call for call in self.cloud.calls if text in call]


@contextmanager
def account(folder: Path, parameters: str) -> Iterator[Deployer]:
    """Serve a new, empty account, with programs that reach it and a parameters file."""
    cloud = Cloud()

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            count = int(self._text())
            cloud.time_zone, region = self._text(), (self._text(), self._text())
            name = self._text()
            cloud.regions |= {region} if name == "aws" else set()
            try:
                answer = (
                    0,
                    cloud.program(name, [self._text() for _ in range(count)]),
                    cloud.warning if name == "aws" else "",
                )
            except Refused as refusal:
                answer = (refusal.code, "", str(refusal))
            self.wfile.write("{}\n{}\x1e{}".format(*answer).encode())

        def _text(self) -> str:
            found = bytearray()
            while (byte := self.rfile.read(1)) not in (b"\0", b""):
                found += byte
            return found.decode()

    programs = folder / "bin"
    programs.mkdir()
    for name in ("aws", "docker", "git", "curl", "sleep"):
        (programs / name).write_text(_CLIENT)
        (programs / name).chmod(0o755)
    (folder / "parameters").write_text(parameters, newline="")
    with TCPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield Deployer(cloud, folder, server.server_address[1])
        server.shutdown()
