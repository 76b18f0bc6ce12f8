"""The staff's pages have a door of their own, and no address knocks without end."""

from typing import Any

import pytest

from ecs.template import deployed

HOSTS = "api.shop.example,toko.shop.example"


def rules(**parameters: Any) -> dict[str, dict[str, Any]]:
    return deployed(AllowedHosts=HOSTS, **parameters).resources(
        "AWS::ElasticLoadBalancingV2::ListenerRule", "routing"
    )


def conditions(rule: dict[str, Any]) -> dict[str, list[str]]:
    return {
        condition["Field"]: next(
            value["Values"] for value in condition.values() if isinstance(value, dict)
        )
        for condition in rule["Conditions"]
    }


def test_the_public_hosts_hide_the_admin_before_they_lead_to_the_api() -> None:
    found = rules()
    hidden, public = found["NoAdminOnThePublicHost"], found["Public"]

    assert conditions(hidden) == {
        "host-header": HOSTS.split(","),
        "path-pattern": ["/admin", "/admin/*"],
    }
    assert hidden["Actions"][0]["FixedResponseConfig"] == {"StatusCode": "404"}
    assert conditions(public) == {"host-header": HOSTS.split(",")}
    assert hidden["Priority"] < public["Priority"]


def test_without_a_host_of_its_own_no_rule_leads_to_the_admin() -> None:
    assert set(rules()) == {"NoAdminOnThePublicHost", "Public"}


def test_the_admins_host_is_reached_from_the_networks_that_are_named() -> None:
    admin = rules(AdminHost="kantor.shop.example", AdminCidrs="203.0.113.0/24,198.51.100.7/32")

    assert conditions(admin["Admin"]) == {
        "host-header": ["kantor.shop.example"],
        "source-ip": ["203.0.113.0/24", "198.51.100.7/32"],
    }
    assert len({rule["Priority"] for rule in admin.values()}) == 3


@pytest.mark.parametrize("task", ["api", "worker", "migration"])
def test_django_answers_on_the_admins_host_too(task: str) -> None:
    deployment = deployed(AllowedHosts=HOSTS, AdminHost="kantor.shop.example")
    (container,) = deployment.resource(task, "TaskDefinition")["ContainerDefinitions"]
    environment = {p["Name"]: p["Value"] for p in container["Environment"]}

    assert environment["ALLOWED_HOSTS"] == f"{HOSTS},kantor.shop.example"


def limits() -> dict[str, dict[str, Any]]:
    acl = deployed().resource("waf", "WebAcl")
    return {
        rule["Name"]: rule["Statement"]["RateBasedStatement"]
        for rule in acl["Rules"]
        if "RateBasedStatement" in rule["Statement"]
    }


def test_logins_are_limited_most_then_checkouts_then_all() -> None:
    found = [(name, rule["Limit"]) for name, rule in limits().items()]

    assert [name for name, _ in found] == ["logins", "admin", "checkouts", "requests"]
    by_name = dict(found)
    assert by_name["logins"] < by_name["checkouts"] < by_name["requests"]
    # https://docs.aws.amazon.com/waf/latest/developerguide/waf-rule-statement-type-rate-based.html
    assert all(limit >= 10 for limit in by_name.values())


def test_no_limit_stops_a_gateways_notifications() -> None:
    for name, rule in limits().items():
        scope = rule["ScopeDownStatement"]
        if name == "requests":
            assert scope["NotStatement"]["Statement"]["ByteMatchStatement"]["SearchString"] == (
                "/v1/webhooks/"
            )
        else:
            path = scope["ByteMatchStatement"]["SearchString"]
            assert not "/v1/webhooks/midtrans".startswith(path)


def test_a_blocked_address_is_told_when_to_come_back() -> None:
    for rule in deployed().resource("waf", "WebAcl")["Rules"]:
        if "Action" in rule:
            response = rule["Action"]["Block"]["CustomResponse"]
            assert response["ResponseCode"] == 429
            assert response["ResponseHeaders"] == [{"Name": "Retry-After", "Value": "300"}]
