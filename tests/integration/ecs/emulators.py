"""Two emulators of AWS, each in its own environment, on 127.0.0.1 only.

Neither makes everything that the templates ask for, and both answer CREATE_COMPLETE all the same:

- moto 5.2.5 has the API of ECS. Of templates it makes task definitions and services in part, and
  no alarm, scaling, secret, queue policy or dashboard, though it has their APIs. Change sets
  (`aws cloudformation deploy`) lose the outputs, and an update does not reach a service.
- localemu 1.3.2 makes the rest, through change sets too, but nothing of ECS. It needs Python 3.13.
"""

import os
import shutil
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest

from skincare.local.sqs import CLIENT_ENVIRONMENT, REGION, free_port
from skincare.local.supervised import Supervised

ENVIRONMENTS = Path(sys.prefix)


class Account:
    """An emulator, seen as an account at AWS."""

    def __init__(self, url: str) -> None:
        self.url = url

    def client(self, service: str) -> Any:
        make: Any = boto3.client  # its stubs know some services only
        return make(
            service,
            region_name=REGION,
            endpoint_url=self.url,
            aws_access_key_id="local",
            aws_secret_access_key="local",
        )


@contextmanager
def moto(folder: Path) -> Iterator[Account]:
    """moto's server, new and empty."""
    program = ENVIRONMENTS / "aws-emulator" / "bin" / "moto_server"
    port = free_port()
    with _running([str(program), "-H", "127.0.0.1", "-p", str(port)], "moto", {}, folder) as server:
        url = f"http://127.0.0.1:{port}"
        server.wait_ready(lambda: _answers(f"{url}/moto-api/data.json"), seconds=60)
        yield Account(url)


@contextmanager
def localemu(folder: Path) -> Iterator[Account]:
    """localemu's server, new and empty."""
    python = ENVIRONMENTS / "localemu" / "bin" / "python"
    port = free_port()
    environment = {
        "GATEWAY_LISTEN": f"127.0.0.1:{port}",
        "LOCALEMU_HOST": "127.0.0.1",
        "GATEWAY_SERVER": "hypercorn",  # the default one listens on all interfaces all the same
    }
    command = [str(python), "-m", "localemu.runtime.main"]
    with _running(command, "localemu", environment, folder) as server:
        url = f"http://127.0.0.1:{port}"
        server.wait_ready(lambda: _answers(f"{url}/_localemu/health"), seconds=90)
        yield Account(url)


def impatient_programs(folder: Path) -> Path:
    """A new folder with the `aws` and the `sleep` of scripts that wait for an emulator.

    What changes there has changed when it is asked for again, so no pause has to be long.
    """
    programs = folder / "bin"
    programs.mkdir()
    python = ENVIRONMENTS / "aws-emulator" / "bin" / "python"
    for name, command in {
        "aws": f'"{python}" "{Path(__file__).with_name("impatient_aws.py")}" "$@"',
        "sleep": f"{shutil.which('sleep')} 1",
    }.items():
        (programs / name).write_text(f"#!/bin/sh\nexec {command}\n")
        (programs / name).chmod(0o755)
    return programs


@contextmanager
def _running(
    command: list[str], name: str, environment: Mapping[str, str], folder: Path
) -> Iterator[Supervised]:
    if not Path(command[0]).exists():
        pytest.skip(f"{command[0]} is missing: `make ecs` installs it where it can")
    inherited = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    with Supervised(
        command,
        name=name,
        env={**inherited, **CLIENT_ENVIRONMENT, **environment},
        cwd=folder,
        log=folder / f"{name}.log",
    ) as server:
        yield server


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310  (our own server)
            return bool(answer.status == 200)
    except OSError:
        return False


def existing(account: Account) -> dict[str, str]:
    """Make what an account has before the first deployment; return it as template parameters."""
    ec2, elb = account.client("ec2"), account.client("elbv2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    subnets = [
        ec2.create_subnet(
            VpcId=vpc, CidrBlock=f"10.0.{n}.0/24", AvailabilityZone=f"{REGION}{zone}"
        )["Subnet"]["SubnetId"]
        for n, zone in enumerate("ab")
    ]
    balancer_group, database_group = (
        ec2.create_security_group(GroupName=name, Description=name, VpcId=vpc)["GroupId"]
        for name in ("load-balancer", "database")
    )
    balancer = elb.create_load_balancer(Name="shop", Subnets=subnets)["LoadBalancers"][0]
    target = elb.create_target_group(
        Name="skincare-api",
        Protocol="HTTP",
        Port=8000,
        TargetType="ip",
        VpcId=vpc,
        HealthCheckPath="/healthz",
    )["TargetGroups"][0]
    certificate = account.client("acm").request_certificate(
        DomainName="api.shop.example", ValidationMethod="DNS"
    )["CertificateArn"]
    elb.create_listener(
        LoadBalancerArn=balancer["LoadBalancerArn"],
        Protocol="HTTPS",
        Port=443,
        Certificates=[{"CertificateArn": certificate}],
        DefaultActions=[{"Type": "forward", "TargetGroupArn": target["TargetGroupArn"]}],
    )
    return {
        "VpcId": vpc,
        "PrivateSubnetIds": ",".join(subnets),
        "LoadBalancerArn": balancer["LoadBalancerArn"],
        "LoadBalancerSecurityGroupId": balancer_group,
        "TargetGroupArn": target["TargetGroupArn"],
        "DatabaseSecurityGroupId": database_group,
        "AllowedHosts": "api.shop.example",
        "ShopUrl": "https://shop.example",
    }
