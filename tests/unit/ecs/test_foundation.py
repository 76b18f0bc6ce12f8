"""What foundation.yaml makes fits the other templates, and opens nothing but the load balancer."""

from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from ecs.template import OPTIONAL, Deployed, deployed, load, names

PARAMETERS = {
    "DomainName": "shop.example",
    "AllowedHosts": "api.shop.example",
    "AdminHost": "kantor.shop.example",
}


@pytest.fixture(scope="module")
def foundation() -> Deployed:
    return deployed(**PARAMETERS, HostedZoneId="Z1", Outbound="both")


def of(deployment: Deployed, type_: str) -> list[dict[str, Any]]:
    return list(deployment.resources(type_, "foundation").values())


def test_each_output_is_a_parameter_of_another_template() -> None:
    asked = {p for name in set(names()) - OPTIONAL for p in load(name).parameters}
    made = set(load("foundation").document["Outputs"])

    assert made - asked == {"LoadBalancerName"}


def test_what_the_others_cannot_do_without_is_made() -> None:
    given = {*load("foundation").parameters, *load("foundation").document["Outputs"]}
    by_deploy = {"Image", "Release", "DatabaseInstance"}
    for name in set(names()) - OPTIONAL:
        needed = {p for p, what in load(name).parameters.items() if "Default" not in what}
        # SHOP_URL is the shop's own pages, which no template here serves.
        assert needed - by_deploy - {"ShopUrl"} <= given, name


def test_the_subnets_do_not_overlap(foundation: Deployed) -> None:
    networks = [ip_network(s["CidrBlock"]) for s in of(foundation, "AWS::EC2::Subnet")]

    assert len(set(networks)) == 4
    assert all(n.subnet_of(ip_network("10.20.0.0/16")) for n in networks)
    assert not any(s["MapPublicIpOnLaunch"] for s in of(foundation, "AWS::EC2::Subnet"))


def test_the_internet_reaches_the_load_balancer_and_nothing_else(foundation: Deployed) -> None:
    open_groups = {
        name: [rule["FromPort"] for rule in group.get("SecurityGroupIngress", [])]
        for name, group in foundation.resources("AWS::EC2::SecurityGroup", "foundation").items()
    }

    assert open_groups == {
        "LoadBalancerSecurityGroup": [443, 80],
        "DatabaseSecurityGroup": [],
        "EndpointSecurityGroup": [],
    }
    assert foundation.resource("foundation", "Database")["PubliclyAccessible"] is False


@pytest.mark.parametrize("storage", ["20", "100", "6000"])
def test_the_disk_may_grow_tenfold_whatever_it_begins_with(storage: str) -> None:
    # AWS takes no limit below 110 % of what there is, and none above 65,536 GiB.
    database = deployed(**PARAMETERS, DatabaseStorage=storage).resource("foundation", "Database")

    assert database["MaxAllocatedStorage"] == f"{storage}0"
    assert int(database["MaxAllocatedStorage"]) <= 65_536
    assert load("foundation").parameters["DatabaseStorage"]["MaxValue"] == 6000


def test_plain_http_is_redirected_and_tls_is_1_2_or_newer(foundation: Deployed) -> None:
    https = foundation.resource("foundation", "HttpsListener")
    http = foundation.resource("foundation", "HttpListener")

    assert https["SslPolicy"] == "ELBSecurityPolicy-TLS13-1-2-2021-06"
    assert https["DefaultActions"][0]["FixedResponseConfig"]["StatusCode"] == "404"
    assert http["DefaultActions"][0]["RedirectConfig"]["Protocol"] == "HTTPS"


def test_the_target_group_is_as_the_api_needs_it(foundation: Deployed) -> None:
    group = foundation.resource("foundation", "TargetGroup")
    (container,) = foundation.resource("api", "TaskDefinition")["ContainerDefinitions"]

    assert (group["TargetType"], group["HealthCheckPath"]) == ("ip", "/healthz")
    assert group["Port"] == container["PortMappings"][0]["ContainerPort"]


def test_the_database_is_encrypted_backed_up_and_known_to_the_images_certificates(
    foundation: Deployed,
) -> None:
    database = foundation.resource("foundation", "Database")
    parameters = foundation.resource("foundation", "DatabaseParameters")
    bundle = (Path(settings.BASE_DIR) / "docker" / "rds-ca-bundle.pem").read_text()

    assert database["StorageEncrypted"] is True
    assert database["BackupRetentionPeriod"] >= 7
    assert parameters["Parameters"]["rds.force_ssl"] == "1"
    assert parameters["Family"] == f"postgres{database['EngineVersion'].split('.')[0]}"
    assert database["CACertificateIdentifier"] == "rds-ca-rsa2048-g1"
    assert bundle.count("BEGIN CERTIFICATE") >= 1
    assert load("foundation").resources["Database"]["DeletionPolicy"] == "Snapshot"


def test_what_the_database_logs_of_buyers_is_kept_nowhere_for_ever(foundation: Deployed) -> None:
    # RDS makes the log group itself, without an end: Django writes the values into the statement.
    # https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_LogAccess.Procedural.UploadtoCloudWatch.html
    assert "EnableCloudwatchLogsExports" not in foundation.resource("foundation", "Database")


def test_somebody_is_woken_before_the_database_is_full(foundation: Deployed) -> None:
    database = foundation.resource("foundation", "Database")
    taken = foundation.resource("foundation", "DatabaseParameters")["Parameters"]["max_connections"]
    disk, connections = (
        float(foundation.resource("alarms-database", alarm)["Threshold"])
        for alarm in ("DiskAlarm", "ConnectionsAlarm")
    )

    # RDS adds disk where a tenth is left, and the smallest has this many GiB; three connections are
    # kept for its administrator.
    # https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_PIOPS.Autoscaling.html
    assert disk <= int(database["AllocatedStorage"]) / 10
    assert connections < int(taken) - 3


def test_what_is_made_is_protected_unless_it_is_being_made(foundation: Deployed) -> None:
    # deploy.sh makes it without, as AWS could not roll back what it refuses to delete.
    for protected in (foundation, deployed(**PARAMETERS, DeletionProtection="false")):
        wanted = "true" if protected is foundation else "false"
        attributes = protected.resource("foundation", "LoadBalancer")["LoadBalancerAttributes"]
        assert {"Key": "deletion_protection.enabled", "Value": wanted} in attributes
        assert protected.resource("foundation", "Database")["DeletionProtection"] == wanted


def test_the_tasks_log_in_with_the_secret_that_the_database_was_made_with(
    foundation: Deployed,
) -> None:
    database = foundation.resource("foundation", "Database")
    secret = foundation.resource("foundation", "DatabaseSecret")

    assert database["MasterUserPassword"] == (
        "{{resolve:secretsmanager:foundation.DatabaseSecret:SecretString:password}}"
    )
    assert secret["GenerateSecretString"]["GenerateStringKey"] == "password"
    assert database["DBName"] == database["MasterUsername"] == "skincare"


@pytest.mark.parametrize(
    ("outbound", "gateways", "interfaces"), [("nat", 1, 0), ("endpoints", 0, 5), ("both", 1, 5)]
)
def test_tasks_reach_others_by_what_the_parameter_says(
    outbound: str, gateways: int, interfaces: int
) -> None:
    deployment = deployed(**PARAMETERS, Outbound=outbound)
    endpoints = of(deployment, "AWS::EC2::VPCEndpoint")

    assert len(of(deployment, "AWS::EC2::NatGateway")) == gateways
    assert sum(e["VpcEndpointType"] == "Interface" for e in endpoints) == interfaces
    assert sum(e["VpcEndpointType"] == "Gateway" for e in endpoints) == 1


def test_names_are_made_where_the_zone_is_known(foundation: Deployed) -> None:
    found = {record["Name"] for record in of(foundation, "AWS::Route53::RecordSet")}

    assert found == {"api.shop.example", "kantor.shop.example"}
    assert of(deployed(**PARAMETERS), "AWS::Route53::RecordSet") == []
