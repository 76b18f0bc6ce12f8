"""deploy.sh on an account that knows AWS's rules: again and again, and after every failure."""

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from ecs.template import FOLDER, load, names
from tests.integration.ecs.cloud import (
    COMMIT,
    FOUNDATION,
    MINUTE,
    REGISTRY,
    Cloud,
    Deployer,
    Stack,
    account,
)

TAG = COMMIT[:12]
IMAGE = f"{REGISTRY}/skincare:{TAG}"
OPERATORS_SECRETS = {
    f"skincare/{name}"
    for name in (
        *("DATABASE_URL", "EMAIL_URL", "MIDTRANS_SERVER_KEY", "XENDIT_CALLBACK_TOKEN"),
        "XENDIT_SECRET_KEY",
    )
}
PARAMETERS = """\
VpcId=vpc-0123456789abcdef0
PrivateSubnetIds=subnet-0123456789abcdef0,subnet-0fedcba9876543210
LoadBalancerArn=arn:aws:elasticloadbalancing:ap-southeast-3:123456789012:loadbalancer/app/shop/01
LoadBalancerSecurityGroupId=sg-0123456789abcdef0
TargetGroupArn=arn:aws:elasticloadbalancing:ap-southeast-3:123456789012:targetgroup/skincare-api/01
DatabaseSecurityGroupId=sg-0d0
AllowedHosts=api.shop.example
DefaultFromEmail=Toko Skincare <pesanan@shop.example>
ShopUrl=https://shop.example
"""


@pytest.fixture
def deployer(tmp_path: Path) -> Iterator[Deployer]:
    with account(tmp_path, PARAMETERS) as deployer:
        deployer.cloud.secrets |= OPERATORS_SECRETS
        yield deployer


@pytest.fixture
def cloud(deployer: Deployer) -> Cloud:
    return deployer.cloud


def assert_never_two_migrations_at_once(cloud: Cloud) -> None:
    times = sorted((task.begins, task.ends) for task in cloud.tasks.values())
    for (_, end), (begin, _) in pairwise(times):
        assert end <= begin


# -- Twice, and as the README says -----------------------------------------------------------------


def test_the_first_run_stops_for_the_secrets_before_anything_is_built(deployer: Deployer) -> None:
    deployer.cloud.secrets.clear()

    done = deployer.deploy()

    assert done.returncode == 1
    for secret in OPERATORS_SECRETS:
        assert f"put-secret-value --secret-id {secret} " in done.stderr
    assert deployer.made("docker") == []
    assert deployer.cloud.tasks == {}


def test_the_run_after_the_secrets_deploys_and_the_next_one_builds_nothing(
    deployer: Deployer, cloud: Cloud
) -> None:
    cloud.secrets.clear()
    deployer.deploy()
    cloud.secrets |= OPERATORS_SECRETS

    first, digest = deployer.deploy(), dict(cloud.images)
    second = deployer.deploy()

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert len(deployer.made("docker build")) == len(deployer.made("docker push")) == 1
    assert cloud.images == digest
    assert "is in the registry already" in second.stdout
    assert f"skincare runs {IMAGE}" in second.stdout
    assert {stack.status for stack in cloud.stacks.values()} <= {
        "CREATE_COMPLETE",
        "UPDATE_COMPLETE",
    }


def test_a_changed_parameter_reaches_the_services_at_the_same_commit(deployer: Deployer) -> None:
    deployer.deploy()
    deployer.parameters.write_text(PARAMETERS.replace("api.shop.example", "kasir.shop.example"))

    done = deployer.deploy()

    assert done.returncode == 0, done.stderr
    for service in ("api", "worker", "migration"):
        given = deployer.cloud.stacks[f"skincare-{service}"].parameters
        assert given["AllowedHosts"] == "kasir.shop.example"


def test_a_release_is_one_image_of_the_fifty_that_the_registry_keeps(deployer: Deployer) -> None:
    # With a provenance it would be three. https://docs.docker.com/build/building/variables/
    (deployer.folder / "bin" / "docker").write_text(
        '#!/bin/bash\necho "$1 without provenance: $BUILDX_NO_DEFAULT_ATTESTATIONS"\n'
    )

    done = deployer.deploy()

    assert "build without provenance: 1\n" in done.stdout


def test_an_image_of_the_other_architecture_has_a_tag_of_its_own(
    deployer: Deployer, cloud: Cloud
) -> None:
    deployer.deploy()
    deployer.parameters.write_text(f"{PARAMETERS}CpuArchitecture=ARM64\n")

    done = deployer.deploy()

    assert done.returncode == 0, done.stderr
    assert set(cloud.images) == {TAG, f"{TAG}-arm64"}
    assert "--platform linux/arm64" in deployer.made("docker build")[1]
    assert cloud.stacks["skincare-worker"].parameters["Image"] == f"{IMAGE}-arm64"


@pytest.mark.parametrize(
    ("architecture", "tag"), [("ARM64", TAG), ("X86_64", f"{TAG}-arm64")], ids=["x86", "arm"]
)
def test_the_way_back_to_an_image_of_the_other_architecture_says_what_goes_with_it(
    deployer: Deployer, architecture: str, tag: str
) -> None:
    deployer.parameters.write_text(f"{PARAMETERS}CpuArchitecture={architecture}\n")

    done = deployer.deploy("--image", f"{REGISTRY}/skincare:{tag}")

    other = {"ARM64": "X86_64", "X86_64": "ARM64"}[architecture]
    assert done.returncode == 1
    assert f"is built for {other}: with it goes CpuArchitecture={other}" in done.stderr
    assert deployer.cloud.calls == []


def test_whoever_pushes_second_uses_the_image_that_is_there(
    deployer: Deployer, cloud: Cloud
) -> None:
    cloud.fail.append("docker push")
    original = cloud.program

    def other_deployment_pushes_first(name: str, arguments: list[str]) -> str:
        if name == "docker" and arguments[0] == "push":
            cloud.images.setdefault(TAG, "sha256:theirs")
        return original(name, arguments)

    cloud.program = other_deployment_pushes_first  # type: ignore[method-assign, assignment]

    done = deployer.deploy()

    assert done.returncode == 0, done.stderr
    assert cloud.images == {TAG: "sha256:theirs"}


def test_the_way_back_to_an_image_that_is_gone_stops_before_the_migration(
    deployer: Deployer, cloud: Cloud
) -> None:
    done = deployer.deploy("--image", f"{REGISTRY}/skincare:cafecafecafe")

    assert done.returncode == 1
    assert "the registry has no" in done.stderr
    assert cloud.tasks == {}


def test_a_registry_that_does_not_answer_is_not_taken_for_one_without_the_image(
    deployer: Deployer,
) -> None:
    deployer.cloud.fail.append("ecr describe-images")

    done = deployer.deploy()

    assert done.returncode == 1
    assert "An error occurred (Broken)" in done.stderr
    assert deployer.made("docker build") == []


# -- The parameters file ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        PARAMETERS.replace("\n", "\r\n"),
        "\ufeff" + PARAMETERS,
        PARAMETERS.rstrip("\n"),
        PARAMETERS.replace("\n", "  \t\n"),
        f"# a comment\n\n{PARAMETERS}\r\n",
        f"  # an indented comment\n\t#WorkerMaxTasks=1\n{PARAMETERS}",
    ],
    ids=[
        *("CRLF", "byte order mark", "no newline at the end", "blanks at the ends", "empty lines"),
        "indented comments",
    ],
)
def test_what_an_editor_adds_to_the_parameters_reaches_no_value(
    deployer: Deployer, text: str
) -> None:
    deployer.parameters.write_text(text, newline="")

    done = deployer.deploy()

    assert done.returncode == 0, done.stderr
    expected = dict(line.split("=", 1) for line in PARAMETERS.splitlines())
    given = deployer.cloud.stacks["skincare-api"].parameters
    assert {key: given[key] for key in given if key in expected}.items() <= expected.items()
    assert not any("\r" in call or "\ufeff" in call for call in deployer.cloud.calls)
    assert deployer.made("curl")[0].endswith("https://api.shop.example/healthz")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("WorkerMaxTask=10", "no template has a parameter WorkerMaxTask"),
        ("WorkerMaxTasks = 10", "without blanks around the ="),
        ("export WorkerMaxTasks=10", "without blanks around the ="),
        ("WorkerMaxTasks: 10", "without blanks around the ="),
        ('WorkerMaxTasks="10"', "no quotes around the value of WorkerMaxTasks"),
        ("VpcId=vpc-2", "VpcId is there twice"),
        ("WorkerMaxTasks=“10”", "no quotes around the value of WorkerMaxTasks"),
        ("WorkerMaxTasks=10 # for the sale", "a comment has a line of its own"),
        ("AdminHost=kantor.shop.example\t# staff", "a comment has a line of its own"),
        ("AdminHost=kantor.shop.example\u00a0", "a character that cannot be seen"),
        ("AdminHost=kantor\u200b.shop.example", "a character that cannot be seen"),
        ("AdminHost=kantor.shop.example\rAdminCidrs=10.0.0.0/8", "a character that cannot be seen"),
        ("AdminHost = kantor.shop.example", "without blanks around the ="),
        ("Waf=True", "Waf is [true, false], not 'True'"),
        ("Foundation=yes", "Foundation is [true, false]"),
        ("PaymentProviders=xendit,midtrans", 'PaymentProviders is ["midtrans,xendit", midtrans'),
        ("CpuArchitecture=arm64", "CpuArchitecture is [X86_64, ARM64]"),
        ("WorkerCpu=500", 'WorkerCpu is ["256", "512", "1024"'),
        ("WorkerMaxTasks=ten", "WorkerMaxTasks is a number, not 'ten'"),
        ("WorkerMaxTasks=a[$(id)]", "WorkerMaxTasks is a number"),
        ("WorkerMaxTasks=010", "WorkerMaxTasks is a number, not '010'"),
        ("AdminCidrs=203.0.113.0/24, 198.51.100.0/24", "no blanks in the value of AdminCidrs"),
        ("AdminCidrs=203.0.113.0/24,", "AdminCidrs has a comma with nothing"),
        ("AdminCidrs=,203.0.113.0/24", "AdminCidrs has a comma with nothing"),
        ("AdminCidrs=203.0.113.0/24,,198.51.100.0/24", "AdminCidrs has a comma with nothing"),
        (
            "CorsAllowedOrigins=https://shop.example https://m.shop.example",
            "no blanks in the value",
        ),
    ],
)
def test_a_line_that_would_be_ignored_or_misread_is_refused_with_its_number(
    deployer: Deployer, line: str, complaint: str
) -> None:
    deployer.parameters.write_text(f"{PARAMETERS}{line}\n")

    done = deployer.deploy()

    assert done.returncode == 1
    assert ", line 10: " in done.stderr
    assert complaint in done.stderr
    assert deployer.cloud.calls == []


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_a_name_with_signs_of_other_languages_is_as_good_as_any(
    deployer: Deployer, cloud: Cloud, locale: str
) -> None:
    name = "Toko Kulit Cantik “Sari” & é 化粧 <pesanan@shop.example>"
    text = PARAMETERS.replace("Toko Skincare <pesanan@shop.example>", name)
    deployer.parameters.write_text(text)

    done = deployer.deploy(LC_ALL=locale)

    assert done.returncode == 0, done.stderr
    assert cloud.stacks["skincare-worker"].parameters["DefaultFromEmail"] == name


def test_each_value_that_a_template_allows_is_allowed(deployer: Deployer) -> None:
    allowed: dict[str, set[str]] = {}
    for name in names():
        for key, definition in load(name).parameters.items():
            if "AllowedValues" in definition:
                values = {str(value) for value in definition["AllowedValues"]}
                assert allowed.setdefault(key, values) == values, key
    assert "" in allowed["AcceptPrevious"]
    for number in range(max(map(len, allowed.values()))):
        chosen = {key: sorted(values)[number % len(values)] for key, values in allowed.items()}
        chosen["Foundation"] = "false"
        text = "".join(f"{key}={value}\n" for key, value in chosen.items())
        deployer.parameters.write_text(PARAMETERS + text)

        done = deployer.deploy("--dry-run")

        assert done.returncode == 0, done.stderr


def test_a_line_that_is_deleted_goes_back_to_the_templates_default(
    deployer: Deployer, cloud: Cloud
) -> None:
    deployer.parameters.write_text(f"{PARAMETERS}WorkerMaxTasks=30\nWorkerCpu=1024\n")
    deployer.deploy()
    before = dict(cloud.stacks["skincare-scaling"].parameters)
    deployer.parameters.write_text(PARAMETERS)

    done = deployer.deploy()

    assert done.returncode == 0, done.stderr
    assert (before["WorkerMaxTasks"], before["WorkerCpu"]) == ("30", "1024")
    after = cloud.stacks["skincare-scaling"].parameters
    assert (after["WorkerMaxTasks"], after["WorkerCpu"]) == ("10", "512")


def test_each_stack_is_given_each_default_as_its_template_has_it(
    deployer: Deployer, cloud: Cloud
) -> None:
    named = {line.split("=")[0] for line in PARAMETERS.splitlines()}

    assert deployer.deploy().returncode == 0
    for stack in cloud.stacks.values():
        for name, definition in load(stack.template).parameters.items():
            # These two deploy.sh finds.
            found = {"HttpsListenerArn", "SecretsVersion"}
            if name not in named | found and "Default" in definition:
                assert stack.parameters[name] == str(definition["Default"]), name


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        (
            "AllowedHosts=api.shop.example",
            "AllowedHosts=a.shop.example,b.shop.example,c.shop.example,d.shop.example",
            "AllowedHosts names 4 hosts: a rule of the load balancer takes three",
        ),
        ("AllowedHosts=api.shop.example\n", "", "lacks AllowedHosts"),
        ("PrivateSubnetIds=", "#PrivateSubnetIds=", "lacks PrivateSubnetIds"),
        (
            "VpcId=",
            "CloudFormationRoleArn=arn:aws:iam::1:role/shop-CloudFormationRole-1\nVpcId=",
            "lacks PermissionsBoundaryArn",
        ),
    ],
)
def test_what_no_template_would_take_is_refused_before_any_call(
    deployer: Deployer, before: str, after: str, complaint: str
) -> None:
    deployer.parameters.write_text(PARAMETERS.replace(before, after))

    done = deployer.deploy()

    assert done.returncode == 1
    assert complaint in done.stderr
    assert deployer.cloud.calls == []


# -- Where it runs ---------------------------------------------------------------------------------


def test_a_warning_of_the_cli_is_no_answer(deployer: Deployer, cloud: Cloud) -> None:
    # CLI 1 writes one beside each answer where its Python is old.
    cloud.warning = "/usr/lib/python3/compat.py:90: PythonDeprecationWarning: upgrade\n  warn()\n"
    cloud.fail.append("cloudformation deploy --stack-name skincare-queues ")

    failed, again, third = deployer.deploy(), deployer.deploy(), deployer.deploy()

    assert failed.returncode != 0
    assert "is ROLLBACK_COMPLETE" in again.stdout
    assert (again.returncode, third.returncode) == (0, 0), again.stderr + third.stderr
    assert len(deployer.made("docker build")) == 1


def test_the_cli_opens_no_pager_and_asks_the_region_for_a_roles_credentials(
    deployer: Deployer,
) -> None:
    (deployer.folder / "bin" / "curl").write_text(
        '#!/bin/bash\necho "pager=[$AWS_PAGER] sts=$AWS_STS_REGIONAL_ENDPOINTS"\n'
    )

    done = deployer.deploy(AWS_PAGER="less", AWS_STS_REGIONAL_ENDPOINTS="legacy")

    assert "pager=[] sts=regional" in done.stdout


@pytest.mark.parametrize(
    ("region", "number", "complaint"),
    [
        ("us-east-1", "123456789012", "export AWS_REGION=ap-southeast-3 AWS_DEFAULT_REGION=ap-"),
        ("ap-southeast-3", "210987654321", "these credentials are of 210987654321"),
    ],
)
def test_another_account_or_region_gets_no_half_shop(
    deployer: Deployer, cloud: Cloud, region: str, number: str, complaint: str
) -> None:
    cloud.number = number

    done = deployer.deploy(AWS_REGION=region)

    assert done.returncode == 1
    assert complaint in done.stderr
    assert cloud.stacks == {}


def test_without_a_region_it_is_that_of_the_load_balancer_and_not_a_profiles(
    deployer: Deployer,
) -> None:
    # CLI 2 reads AWS_REGION, CLI 1 AWS_DEFAULT_REGION; without its own each takes the profile's.
    region = "ap-southeast-3"
    named: list[dict[str, str]] = [{}, {"AWS_REGION": region}, {"AWS_DEFAULT_REGION": region}]
    for environment in named:
        deployer.cloud.regions.clear()

        done = deployer.deploy(**environment)

        assert done.returncode == 0, done.stderr
        assert deployer.cloud.regions == {(region, region)}


def test_a_region_that_is_not_enabled_is_told_from_wrong_credentials(
    deployer: Deployer, cloud: Cloud
) -> None:
    cloud.is_enabled = False

    done = deployer.deploy(AWS_REGION="ap-southeast-3")

    assert done.returncode == 1
    assert "aws account enable-region --region-name ap-southeast-3" in done.stderr
    assert cloud.stacks == {}


def test_a_shop_without_an_address_runs_and_says_what_it_lacks(
    deployer: Deployer, cloud: Cloud
) -> None:
    cloud.has_address = False

    done = deployer.deploy()

    assert done.returncode == 1
    assert "everything runs, but api.shop.example has no address yet" in done.stderr
    assert "FAILED at the smoke test of https://api.shop.example/healthz" in done.stderr
    cloud.has_address = True
    assert deployer.deploy().returncode == 0


def test_a_folder_that_is_no_clone_is_told_before_any_call(
    deployer: Deployer, cloud: Cloud
) -> None:
    cloud.is_clone = False

    done, with_image = deployer.deploy(), deployer.deploy("--image", "example/skincare:one")

    assert done.returncode == 1
    assert "this is no clone: use one, or give --image" in done.stderr
    assert with_image.returncode == 0, with_image.stderr


def test_it_runs_from_any_folder_and_where_cd_says_where_it_went(deployer: Deployer) -> None:
    shell = f'cd "{FOLDER.parent}" && ecs/deploy.sh --dry-run "{deployer.parameters}"'
    for environment in ({}, {"CDPATH": f".:{FOLDER.parent}"}):
        done = subprocess.run(
            ["bash", "-c", shell],
            env={"PATH": "/usr/bin:/bin", **environment},
            capture_output=True,
            text=True,
            check=False,
        )

        assert done.returncode == 0, done.stderr


def test_two_environments_in_one_account_share_no_name_and_no_metric(
    deployer: Deployer, cloud: Cloud
) -> None:
    first = deployer.deploy("--image", "example/skincare:one")
    cloud.secrets |= {secret.replace("/", "-staging/") for secret in OPERATORS_SECRETS}
    deployer.parameters.write_text(f"{PARAMETERS}Prefix=skincare-staging\n")

    second = deployer.deploy("--image", "example/skincare:one")

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    for template in ("worker", "api", "alarms-events", "alarms-queue", "dashboard"):
        names = {
            cloud.stacks[f"{prefix}-{template}"].parameters["EnvironmentName"]
            for prefix in ("skincare", "skincare-staging")
        }
        assert names == {"production", "skincare-staging"}, template


# -- What has to be there --------------------------------------------------------------------------


def test_a_new_account_gets_the_role_that_ecs_works_with(deployer: Deployer, cloud: Cloud) -> None:
    cloud.service_role = False

    done = deployer.deploy()

    assert done.returncode == 0, done.stderr
    (made,) = deployer.made("create-service-linked-role")
    assert cloud.calls.index(made) < cloud.calls.index(deployer.made("skincare-cluster")[0])


def test_too_small_a_quota_is_told_with_the_command_that_raises_it(deployer: Deployer) -> None:
    deployer.cloud.vcpus = 6.0

    done = deployer.deploy()

    assert done.returncode == 0
    assert "service-quotas request-service-quota-increase" in done.stderr


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("certificate", "PENDING_VALIDATION", "no issued certificate of the HTTPS listener"),
        ("certified", ("shop.example",), "is for api.shop.example"),
        ("health_path", "/readyz", "--health-check-path /healthz"),
        # What the CLI makes where nobody names one, and what a group that checks by TCP has.
        ("health_path", "/", "the target group checks /. /healthz alone"),
        ("health_path", None, "--health-check-path /healthz"),
        ("target_type", "instance", "the target group's type is instance"),
        ("listeners", 0, "the load balancer has no HTTPS listener"),
        ("database", "creating", "the database shop is creating"),
        ("database", "storage-full", "shop is storage-full: aws rds modify-db-instance"),
    ],
)
def test_what_the_tasks_need_is_looked_at_before_anything_is_built(
    deployer: Deployer, name: str, value: object, complaint: str
) -> None:
    setattr(deployer.cloud, name, value)

    done = deployer.deploy()

    assert done.returncode == 1
    assert complaint in done.stderr
    assert deployer.made("docker") == []


def test_a_database_that_is_not_on_rds_is_not_looked_at(deployer: Deployer) -> None:
    deployer.cloud.database = None

    assert deployer.deploy().returncode == 0
    assert "skincare-alarms-database" not in deployer.cloud.stacks


def test_the_database_that_is_written_to_is_watched_while_it_is_on_rds(
    deployer: Deployer, cloud: Cloud
) -> None:
    deployer.deploy()
    watched = cloud.stacks["skincare-alarms-database"].parameters["DatabaseInstance"]
    cloud.database = None

    done = deployer.deploy()

    assert done.returncode == 0, done.stderr
    assert watched == "shop"
    assert "skincare-alarms-database" not in cloud.stacks


def test_an_empty_account_becomes_a_shop_with_one_command(deployer: Deployer, cloud: Cloud) -> None:
    cloud.service_role = False
    cloud.secrets.discard("skincare/DATABASE_URL")
    deployer.parameters.write_text(
        "Foundation=true\nDomainName=shop.example\nAllowedHosts=api.shop.example\n"
        "AdminHost=kantor.shop.example\nShopUrl=https://shop.example\n"
    )

    done = deployer.deploy()

    assert done.returncode == 0, done.stderr
    assert set(cloud.stacks) == {f"skincare-{name}" for name in names() if name != "deployer"}
    api = cloud.stacks["skincare-api"].parameters
    assert api["DatabaseHost"] == FOUNDATION["DatabaseHost"]
    migration = cloud.stacks["skincare-migration"].parameters
    assert migration["DatabaseSecretArn"] == FOUNDATION["DatabaseSecretArn"]
    assert cloud.stacks["skincare-network"].parameters["VpcId"] == FOUNDATION["VpcId"]
    assert (
        cloud.stacks["skincare-routing"].parameters["HttpsListenerArn"]
        == FOUNDATION["HttpsListenerArn"]
    )
    assert "subnets=[subnet-0f0,subnet-0f1]" in deployer.made("ecs run-task")[0]


def test_a_foundation_that_does_not_answer_is_not_taken_for_one_without_a_network(
    deployer: Deployer, cloud: Cloud
) -> None:
    deployer.parameters.write_text(
        "Foundation=true\nDomainName=shop.example\nAllowedHosts=api.shop.example\n"
        "ShopUrl=https://shop.example\n"
    )
    cloud.fail.append("Outputs[].[OutputKey, OutputValue]")

    failed = deployer.deploy()
    made = set(cloud.stacks)

    assert "FAILED at stack skincare-foundation" in failed.stderr
    assert made == {"skincare-foundation"}
    cloud.secrets.discard("skincare/DATABASE_URL")
    assert deployer.deploy().returncode == 0


def test_what_the_parameters_name_stays_theirs_beside_a_foundation(
    deployer: Deployer, cloud: Cloud
) -> None:
    deployer.parameters.write_text(
        f"{PARAMETERS}Foundation=true\nDomainName=shop.example\nDatabaseHost=db.example\n"
    )

    assert deployer.deploy().returncode == 0
    assert cloud.stacks["skincare-network"].parameters["VpcId"] == "vpc-0123456789abcdef0"
    assert cloud.stacks["skincare-api"].parameters["DatabaseHost"] == "db.example"


def test_the_rules_are_made_for_the_https_listener_that_is_found(
    deployer: Deployer, cloud: Cloud
) -> None:
    deployer.deploy()

    assert cloud.stacks["skincare-routing"].parameters["HttpsListenerArn"].endswith("/01/01")


def test_the_firewall_can_be_left_to_others(deployer: Deployer, cloud: Cloud) -> None:
    deployer.parameters.write_text(f"{PARAMETERS}Waf=false\n")

    assert deployer.deploy().returncode == 0
    assert "skincare-waf" not in cloud.stacks


def test_a_firewall_that_is_no_longer_wanted_is_removed(deployer: Deployer, cloud: Cloud) -> None:
    deployer.deploy()
    assert "skincare-waf" in cloud.stacks
    deployer.parameters.write_text(f"{PARAMETERS}Waf=false\n")

    assert deployer.deploy().returncode == 0
    assert "skincare-waf" not in cloud.stacks


@pytest.mark.parametrize(
    ("accepted", "secret"),
    [
        ("midtrans", "MIDTRANS_SERVER_KEY"),
        ("xendit", "XENDIT_CALLBACK_TOKEN"),
        ("midtrans,xendit", "XENDIT_CALLBACK_TOKEN"),
    ],
)
def test_the_last_value_of_a_secret_is_accepted_only_where_there_is_one(
    deployer: Deployer, cloud: Cloud, accepted: str, secret: str
) -> None:
    deployer.parameters.write_text(f"{PARAMETERS}AcceptPrevious={accepted}\n")
    cloud.replaced |= {"skincare/MIDTRANS_SERVER_KEY", "skincare/XENDIT_CALLBACK_TOKEN"}
    cloud.replaced.remove(f"skincare/{secret}")

    refused = deployer.deploy()
    cloud.replaced.add(f"skincare/{secret}")
    done = deployer.deploy()

    assert refused.returncode == 1
    assert f"skincare/{secret} has had one value only" in refused.stderr
    assert done.returncode == 0, done.stderr


def test_a_secret_that_is_about_to_be_deleted_is_told_with_the_command_that_keeps_it(
    deployer: Deployer, cloud: Cloud
) -> None:
    cloud.leaving.add("skincare/EMAIL_URL")

    done = deployer.deploy()

    assert done.returncode == 1
    assert "restore-secret --secret-id skincare/EMAIL_URL" in done.stderr
    assert "has no value" not in done.stderr
    assert deployer.made("docker") == []


def test_another_value_of_a_secret_makes_new_tasks_at_the_same_commit(
    deployer: Deployer, cloud: Cloud
) -> None:
    def versions() -> set[str]:
        return {
            cloud.stacks[f"skincare-{name}"].parameters["SecretsVersion"]
            for name in ("worker", "api", "migration")
        }

    deployer.deploy()
    first = versions()
    deployer.deploy()
    same = versions()
    cloud.changed["skincare/EMAIL_URL"] = 2.5

    deployer.deploy()

    assert len(first) == len(versions()) == 1
    assert same == first
    assert versions() != first


def test_whoever_deploys_in_another_time_zone_finds_the_same_secrets(
    deployer: Deployer, cloud: Cloud
) -> None:
    # CLI 2 writes times in the zone of its machine: https://github.com/aws/aws-cli/issues/6385
    versions = []
    for zone in ("UTC", "Asia/Jakarta"):
        assert deployer.deploy(TZ=zone).returncode == 0
        versions.append(cloud.stacks["skincare-worker"].parameters["SecretsVersion"])

    assert versions[0] == versions[1]


def test_a_database_of_ones_own_in_parts_needs_its_password(deployer: Deployer) -> None:
    deployer.parameters.write_text(f"{PARAMETERS}DatabaseHost=db.example\n")

    done = deployer.deploy()

    assert done.returncode == 1
    assert "DatabaseHost needs DatabaseSecretArn" in done.stderr


def test_what_the_foundation_made_is_protected_and_keeps_what_it_was_made_with(
    deployer: Deployer, cloud: Cloud
) -> None:
    text = "Foundation=true\nDomainName=shop.example\nAllowedHosts=api.shop.example\n"
    text += "ShopUrl=https://shop.example\n"
    deployer.parameters.write_text(f"{text}VpcCidr=10.30.0.0/16\n")
    first = deployer.deploy()
    deployer.parameters.write_text(text)

    again = deployer.deploy()

    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    foundation = cloud.stacks["skincare-foundation"]
    assert foundation.is_protected
    assert foundation.parameters["VpcCidr"] == "10.30.0.0/16"


def test_a_foundation_that_failed_half_way_is_made_by_the_next_run(
    deployer: Deployer, cloud: Cloud
) -> None:
    cloud.fail.append("cloudformation deploy --stack-name skincare-foundation ")
    deployer.parameters.write_text(f"{PARAMETERS}Foundation=true\nDomainName=shop.example\n")

    failed, again = deployer.deploy(), deployer.deploy()

    assert "FAILED at stack skincare-foundation" in failed.stderr
    assert again.returncode == 0, again.stderr
    assert cloud.stacks["skincare-foundation"].is_protected


def test_a_foundation_that_was_interrupted_before_it_began_can_still_be_rolled_back(
    deployer: Deployer, cloud: Cloud
) -> None:
    # What is protected from the start stays half made when its creation fails.
    parameters = dict(line.split("=", 1) for line in PARAMETERS.splitlines())
    cloud.stacks["skincare-foundation"] = Stack("foundation", "REVIEW_IN_PROGRESS", parameters)
    cloud.fail.append("cloudformation deploy --stack-name skincare-foundation ")
    deployer.parameters.write_text(f"{PARAMETERS}Foundation=true\nDomainName=shop.example\n")

    failed, again = deployer.deploy(), deployer.deploy()

    assert "FAILED at stack skincare-foundation" in failed.stderr
    assert again.returncode == 0, again.stderr
    assert "DeletionProtection=false" in deployer.made("deploy --stack-name skincare-foundation")[0]


def test_a_role_for_cloudformation_is_handed_to_every_stack(deployer: Deployer) -> None:
    role = "arn:aws:iam::123456789012:role/skincare-cloudformation"
    deployer.parameters.write_text(f"{PARAMETERS}CloudFormationRoleArn={role}\n")

    assert deployer.deploy().returncode == 0
    assert all(f"--role-arn {role}" in call for call in deployer.made("cloudformation deploy"))


# -- The migration ---------------------------------------------------------------------------------


def test_a_migration_of_twenty_minutes_is_waited_for(deployer: Deployer, cloud: Cloud) -> None:
    cloud.migration_seconds = 20 * MINUTE

    done = deployer.deploy()

    assert done.returncode == 0, done.stderr
    assert cloud.now >= 20 * MINUTE
    assert "RUNNING after 19 minutes" in done.stdout


def test_a_migration_that_ecs_cannot_place_is_tried_again_and_then_told(
    deployer: Deployer, cloud: Cloud
) -> None:
    cloud.placed_at_try = 4

    refused = deployer.deploy()
    services = {"skincare-worker", "skincare-api"} & set(cloud.stacks)
    later = deployer.deploy()

    assert refused.returncode == 1
    assert "ECS places no task (Capacity is unavailable at this time." in refused.stderr
    assert services == set()
    assert "--tasks None" not in " ".join(cloud.calls)
    assert later.returncode == 0, later.stderr
    assert len(cloud.tasks) == 1


@pytest.mark.parametrize("script", ["deploy.sh", "run.sh"])
def test_a_task_that_ecs_refuses_to_start_is_waited_for_by_nobody(
    deployer: Deployer, cloud: Cloud, script: str
) -> None:
    deployer.deploy()
    before = (cloud.now, len(cloud.tasks))
    cloud.calls.clear()
    cloud.fail.append("ecs run-task")

    arguments = [str(deployer.parameters)]
    if script == "run.sh":
        arguments += ["api", "manage", "check"]
    done = deployer.run(script, *arguments)

    assert done.returncode == 1
    assert "An error occurred (Broken)" in done.stderr
    assert "ECS started no" in done.stderr
    assert "still runs. Deploy again" not in done.stderr
    assert (cloud.now, len(cloud.tasks)) == before
    assert deployer.made("ecs describe-tasks") == []


def test_a_task_that_ecs_does_not_know_yet_is_asked_for_again(
    deployer: Deployer, cloud: Cloud
) -> None:
    cloud.unknown_seconds = 25

    done = deployer.deploy()

    assert done.returncode == 0, done.stderr


def test_a_task_that_ecs_never_knows_is_not_waited_for_for_ever(
    deployer: Deployer, cloud: Cloud
) -> None:
    cloud.unknown_seconds, cloud.migration_seconds = 600 * MINUTE, 600 * MINUTE

    done = deployer.deploy()

    assert done.returncode == 1
    assert "AWS does not say how" in done.stderr
    assert cloud.now < 10 * MINUTE


@pytest.mark.parametrize(
    ("exit_code", "reason"),
    [
        (1, "Essential container in task exited"),
        (None, "CannotPullContainerError: pull image manifest has been retried 5 times"),
        (None, "ResourceInitializationError: unable to pull secrets or registry auth"),
        (137, "OutOfMemoryError: Container killed due to memory usage"),
    ],
)
def test_a_migration_that_fails_says_why_and_leaves_the_services_alone(
    deployer: Deployer, cloud: Cloud, exit_code: int | None, reason: str
) -> None:
    cloud.migration_exit, cloud.migration_reason = exit_code, reason

    done = deployer.deploy()

    assert done.returncode == 1
    assert f"the migration ended with exit code {exit_code};" in done.stderr
    assert reason in done.stderr
    assert "the last line of migration/migration/" in done.stderr
    assert not {"skincare-worker", "skincare-api"} & set(cloud.stacks)


def test_a_log_that_comes_seconds_after_the_end_is_shown_all_the_same(
    deployer: Deployer, cloud: Cloud
) -> None:
    cloud.migration_exit, cloud.log_seconds = 1, 8

    done = deployer.deploy()

    assert "the last line of migration/migration/" in done.stderr


def test_a_task_that_wrote_nothing_is_told_as_such(deployer: Deployer, cloud: Cloud) -> None:
    cloud.migration_exit, cloud.log_seconds = None, 60 * MINUTE

    done = deployer.deploy()

    assert "(it wrote no log line)" in done.stderr


def test_the_run_after_one_that_lost_sight_of_its_migration_waits_for_it(
    deployer: Deployer, cloud: Cloud
) -> None:
    cloud.migration_seconds = 40 * MINUTE
    cloud.fail += ["ecs describe-tasks"] * 10

    lost = deployer.deploy()
    again = deployer.deploy()

    assert lost.returncode == 1
    assert "it still runs. Deploy again: that waits for it" in lost.stderr
    assert again.returncode == 0, again.stderr
    assert "a migration still runs" in again.stdout
    assert len(cloud.tasks) == 2
    assert_never_two_migrations_at_once(cloud)


def test_credentials_that_end_during_a_migration_leave_it_to_the_next_run(
    deployer: Deployer, cloud: Cloud
) -> None:
    cloud.migration_seconds = 20 * MINUTE
    cloud.credentials_end = 10 * MINUTE

    lost = deployer.deploy()
    cloud.credentials_end = None
    again = deployer.deploy()

    assert lost.returncode == 1
    assert "it still runs. Deploy again: that waits for it" in lost.stderr
    assert again.returncode == 0, again.stderr
    assert "a migration still runs" in again.stdout
    assert_never_two_migrations_at_once(cloud)


@pytest.mark.parametrize("call", ["ecs describe-tasks", "ecs describe-services"])
def test_one_answer_that_does_not_come_ends_no_wait(deployer: Deployer, call: str) -> None:
    deployer.cloud.fail.append(call)

    assert deployer.deploy().returncode == 0


def test_services_of_which_aws_says_nothing_are_not_waited_for_for_ever(
    deployer: Deployer, cloud: Cloud
) -> None:
    cloud.fail += ["ecs describe-services"] * 20

    done = deployer.deploy()

    assert done.returncode == 1
    assert "AWS does not say how the services go" in done.stderr
    assert cloud.now < 10 * MINUTE


# -- Stacks and services ---------------------------------------------------------------------------


@pytest.mark.parametrize("template", ["registry", "queues", "secrets", "network", "worker"])
def test_a_stack_whose_creation_failed_is_created_by_the_next_run(
    deployer: Deployer, cloud: Cloud, template: str
) -> None:
    cloud.fail.append(f"cloudformation deploy --stack-name skincare-{template} ")

    failed = deployer.deploy()
    again = deployer.deploy()

    assert failed.returncode != 0
    assert f"FAILED at stack skincare-{template}" in failed.stderr
    assert "is ROLLBACK_COMPLETE. What failed in it" in failed.stderr
    assert "it broke" in failed.stderr
    assert again.returncode == 0, again.stderr
    assert cloud.stacks[f"skincare-{template}"].status == "CREATE_COMPLETE"


def test_a_stack_that_could_not_even_be_rolled_back_is_told_with_the_command(
    deployer: Deployer, cloud: Cloud
) -> None:
    deployer.deploy()
    cloud.stacks["skincare-worker"].status = "UPDATE_ROLLBACK_FAILED"

    done = deployer.deploy()

    assert done.returncode != 0
    assert "continue-update-rollback --stack-name skincare-worker" in done.stderr
    assert cloud.stacks["skincare-api"].status in ("CREATE_COMPLETE", "UPDATE_COMPLETE")


@pytest.mark.parametrize("state", ["DELETE_FAILED", "CREATE_FAILED", "ROLLBACK_FAILED"])
def test_what_an_interrupted_deletion_or_creation_left_is_no_obstacle(
    deployer: Deployer, cloud: Cloud, state: str
) -> None:
    deployer.deploy()
    worker, api = (cloud.stacks[f"skincare-{name}"] for name in ("worker", "api"))
    worker.status = state
    api.status, api.later, api.busy_until = "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE", cloud.now + 90

    done = deployer.deploy()

    assert done.returncode == 0, done.stderr
    assert cloud.stacks["skincare-worker"].status == "CREATE_COMPLETE"
    assert "skincare-api is UPDATE_IN_PROGRESS: waiting" in done.stdout


def test_the_hundredth_deployment_finds_room_for_its_change_sets(
    deployer: Deployer, cloud: Cloud
) -> None:
    # What changed nothing leaves a failed change set behind, and AWS keeps so many and no more.
    cloud.most_change_sets = 3
    for number in range(6):
        done = deployer.deploy("--image", f"example/skincare:{number}")
        assert done.returncode == 0, done.stderr

    assert max(len(stack.failed_change_sets) for stack in cloud.stacks.values()) <= 1


def test_a_deployer_who_may_not_delete_change_sets_deploys_all_the_same(deployer: Deployer) -> None:
    deployer.deploy()
    deployer.deploy()
    deployer.cloud.fail += ["delete-change-set"] * 100

    assert deployer.deploy().returncode == 0


def test_of_two_deployments_at_once_none_ends_well_on_a_mixture_of_both(
    deployer: Deployer, cloud: Cloud
) -> None:
    images = ("example/skincare:one", "example/skincare:two")
    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(lambda image: deployer.deploy("--image", image), images))

    running = {cloud.stacks[f"skincare-{name}"].parameters["Image"] for name in ("worker", "api")}
    well = [image for image, done in zip(images, ends, strict=True) if done.returncode == 0]
    assert len(running) == 1 or not well
    for done in ends:
        assert done.returncode == 0 or "another deployment" in done.stderr, done.stderr
    again = deployer.deploy("--image", images[0])
    assert again.returncode == 0, again.stderr


def test_whoever_was_overtaken_says_so(deployer: Deployer, cloud: Cloud) -> None:
    original = cloud.program

    def other_deployment_rolls_the_workers(name: str, arguments: list[str]) -> str:
        if name == "aws" and arguments[1] == "describe-services":
            cloud.stacks["skincare-worker"].parameters["Image"] = "example/skincare:theirs"
        return original(name, arguments)

    cloud.program = other_deployment_rolls_the_workers  # type: ignore[method-assign, assignment]

    done = deployer.deploy("--image", "example/skincare:ours")

    assert done.returncode == 1
    assert "skincare-worker runs example/skincare:theirs: another deployment" in done.stderr


@pytest.mark.parametrize("place", ["skincare-secrets", "skincare-worker", "ecs run-task"])
def test_a_deployment_that_somebody_interrupts_says_so_and_the_next_one_finishes(
    deployer: Deployer, cloud: Cloud, place: str
) -> None:
    cloud.interrupted_at = place

    stopped = deployer.deploy()
    again = deployer.deploy()

    assert stopped.returncode != 0
    assert "deploy: FAILED at" in stopped.stderr
    assert again.returncode == 0, again.stderr
    assert_never_two_migrations_at_once(cloud)


def test_a_release_that_the_circuit_breaker_rolls_back_shows_the_way_back(
    deployer: Deployer, cloud: Cloud
) -> None:
    deployer.deploy("--image", "example/skincare:one")
    cloud.sick.add(IMAGE)

    done = deployer.deploy()

    assert done.returncode != 0
    assert "FAILED at stack skincare-worker" in done.stderr
    assert "skincare-worker is UPDATE_ROLLBACK_COMPLETE" in done.stderr
    assert "Circuit Breaker was triggered" in done.stderr
    assert "unable to place a task" in done.stderr
    assert f"--image example/skincare:one {deployer.parameters}" in done.stderr
    assert cloud.stacks["skincare-api"].parameters["Image"] == "example/skincare:one"


def test_a_parameter_that_breaks_the_release_that_runs_is_put_back_and_not_the_image(
    deployer: Deployer, cloud: Cloud
) -> None:
    deployer.deploy()
    cloud.sick.add(IMAGE)
    deployer.parameters.write_text(f"{PARAMETERS}WorkerConcurrency=4\n")

    done = deployer.deploy()
    cloud.sick.clear()
    deployer.parameters.write_text(PARAMETERS)
    again = deployer.deploy()

    assert done.returncode != 0
    assert f"put back what has changed in {deployer.parameters}" in done.stderr
    assert f"--image {IMAGE}" not in done.stderr
    assert again.returncode == 0, again.stderr


def test_a_service_that_never_becomes_steady_is_waited_for_by_the_next_run(
    deployer: Deployer, cloud: Cloud
) -> None:
    deployer.deploy("--image", "example/skincare:one")
    cloud.stuck.add(IMAGE)

    given_up, back = deployer.deploy(), deployer.deploy("--image", "example/skincare:one")

    assert given_up.returncode != 0
    assert "skincare-worker is UPDATE_IN_PROGRESS" in given_up.stderr
    assert back.returncode == 0, back.stderr
    assert "skincare-worker is UPDATE_IN_PROGRESS: waiting" in back.stdout
    assert cloud.stacks["skincare-worker"].parameters["Image"] == "example/skincare:one"


def test_services_that_are_never_steady_end_the_run_after_half_an_hour(
    deployer: Deployer, cloud: Cloud
) -> None:
    cloud.unsteady = True

    done = deployer.deploy()

    assert done.returncode == 1
    assert "not steady after half an hour" in done.stderr
    assert 30 * MINUTE <= cloud.now < 40 * MINUTE
    assert "unable to place a task" in done.stderr


def test_a_service_that_somebody_deleted_is_missed_also_where_nothing_changes(
    deployer: Deployer, cloud: Cloud
) -> None:
    deployer.deploy()
    cloud.services = ("skincare-api",)

    done = deployer.deploy()

    assert done.returncode == 1
    assert "skincare-worker is MISSING" in done.stderr
    assert "for stack in skincare-scaling skincare-worker; do aws cloudformation delete-stack" in (
        done.stderr
    )


def test_services_that_somebody_stopped_are_told(deployer: Deployer, cloud: Cloud) -> None:
    cloud.desired = 0

    done = deployer.deploy()

    assert done.returncode == 0, done.stderr
    for service in ("worker", "api"):
        assert f"--service skincare-{service} --desired-count 1" in done.stderr


def calls_of_a_first_deployment(folder: Path) -> list[str]:
    with account(folder, PARAMETERS) as deployer:
        deployer.cloud.secrets |= OPERATORS_SECRETS
        assert deployer.deploy().returncode == 0
        return [call for call in deployer.cloud.calls if not call.startswith("git")]


@pytest.mark.slow
@pytest.mark.timeout(900)  # two deployments for each call, on a machine that may be busy
def test_after_every_call_that_can_fail_the_next_run_finishes(tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.mkdir()
    #: Without it the deployment goes on, or it is only asked to explain.
    tolerated = (
        "service-quotas",
        "describe-tasks",
        "describe-services",
        "docker push",
        "change-set",
    )
    for number, call in enumerate(dict.fromkeys(calls_of_a_first_deployment(first))):
        folder = tmp_path / str(number)
        folder.mkdir()
        with account(folder, PARAMETERS) as deployer:
            cloud = deployer.cloud
            cloud.secrets |= OPERATORS_SECRETS
            cloud.fail.append(call.split(" --query")[0])

            failed, again = deployer.deploy(), deployer.deploy()

            assert (
                failed.returncode != 0
                or any(t in call for t in tolerated)
                or ("describe-stacks" in call)
            ), call
            if failed.returncode:
                assert "deploy: FAILED at" in failed.stderr, call
            assert again.returncode == 0, f"{call}\n{again.stderr}"
            assert_never_two_migrations_at_once(cloud)
            assert set(cloud.images) == {TAG}
            assert {stack.status for stack in cloud.stacks.values()} <= {
                "CREATE_COMPLETE",
                "UPDATE_COMPLETE",
            }, call


# -- One-off tasks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("service", ["api", "worker", "migration"])
def test_a_one_off_command_runs_with_the_role_and_the_network_of_its_service(
    deployer: Deployer, service: str
) -> None:
    deployer.deploy()
    deployer.cloud.calls.clear()

    done = deployer.run(
        "run.sh", str(deployer.parameters), service, "manage", "preflight", service, 'a "b" \\'
    )

    assert done.returncode == 0, done.stderr
    (call,) = deployer.made("ecs run-task")
    assert f"--task-definition skincare-{service} " in call
    assert f"securityGroups=[{'sg-0b0' if service == 'api' else 'sg-0a0'}]" in call
    assert f'"command": ["manage", "preflight", "{service}", "a \\"b\\" \\\\"]' in call
    assert f"the last line of {service}/{service}/" in done.stdout


def test_a_one_off_command_ends_with_the_status_of_its_task(
    deployer: Deployer, cloud: Cloud
) -> None:
    deployer.deploy()
    cloud.migration_exit = 3

    done = deployer.run("run.sh", str(deployer.parameters), "api", "manage", "status")

    assert done.returncode == 3


def test_a_one_off_command_that_nobody_waits_for_any_more_says_how_it_is_ended(
    deployer: Deployer, cloud: Cloud
) -> None:
    deployer.deploy()
    cloud.interrupted_at = "ecs describe-tasks"

    done = deployer.run("run.sh", str(deployer.parameters), "api", "manage", "reconcile")

    (task,) = [arn for arn, task in cloud.tasks.items() if task.family == "skincare-api"]
    assert done.returncode == 130
    assert f"aws ecs stop-task --cluster skincare --task {task}" in done.stderr


def test_a_one_off_commands_variable_is_not_printed(deployer: Deployer) -> None:
    # The first hour's sixth step hands a password over so.
    deployer.deploy()

    done = deployer.run(
        *("run.sh", str(deployer.parameters), "api", "manage", "createsuperuser"),
        ENVIRONMENT='DJANGO_SUPERUSER_PASSWORD=a "b" \\c$',
    )

    assert done.returncode == 0, done.stderr
    assert r'"value": "a \"b\" \\c$"' in deployer.made("ecs run-task")[-1]
    assert "DJANGO_SUPERUSER_PASSWORD" in done.stderr
    assert "c$" not in done.stdout + done.stderr
    assert "c\\$" not in done.stdout + done.stderr
