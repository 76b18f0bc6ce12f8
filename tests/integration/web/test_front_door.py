"""What anybody can send is a refusal in words: no 5xx, no ERROR line, nothing for Sentry."""

import logging
from typing import Any

import pytest
from django.test import Client

from tests.log_lines import captured

pytestmark = pytest.mark.django_db

PAGES = (
    "/admin/operations/",
    "/admin/operations/dead-letters/",
    "/admin/operations/held/",
    "/admin/orders/order/",
    "/admin/payments/payment/",
    "/admin/payments/paymentnotification/",
    "/admin/events/outboxevent/",
    "/admin/events/processedevent/",
    "/admin/auth/user/",
)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("query", ["q=%00", "status__exact=%00", "%00=1", "id=a%00b", "e=1&p=%00"])
def test_a_nul_in_an_address_is_refused_on_every_page_of_the_staff(
    page: str, query: str, admin_client: Client
) -> None:
    assert admin_client.get(f"{page}?{query}").status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "/admin/operations/events/%00/",
        "/admin/operations/events/a%00b/put-back/",
        "/admin/operations/dead-letters/%00/",
        "/admin/orders/order/%00/change/",
    ],
)
def test_a_nul_in_a_path_is_refused(path: str, admin_client: Client) -> None:
    assert admin_client.get(path).status_code == 400
    assert admin_client.post(path, {"reason": "because"}).status_code == 400


@pytest.mark.parametrize("field", ["reason", "order", "action", "message", "type", "username"])
def test_a_nul_in_a_form_is_refused(field: str, admin_client: Client) -> None:
    for path in (
        "/admin/login/",
        "/admin/operations/dead-letters/act/",
        "/admin/operations/events/evt-1/skip/",
        "/admin/operations/held/notifications/1/",
    ):
        assert admin_client.post(path, {field: "a\0b"}).status_code == 400


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:99999", "a b", "[::1", ""])
def test_a_foreign_host_is_a_problem_and_no_error_of_ours(
    host: str, client: Client, caplog: pytest.LogCaptureFixture, settings: Any
) -> None:
    settings.ALLOWED_HOSTS = ["shop.example"]

    answer = client.get("/v1/products", headers={"Host": host})

    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert [record for record in caplog.records if record.levelno > logging.WARNING] == []


def test_too_many_fields_are_no_error_of_ours(admin_client: Client) -> None:
    with captured() as lines:
        answer = admin_client.post("/admin/login/", {f"f{number}": "" for number in range(1_100)})

    assert answer.status_code == 400
    assert {line["level"] for line in lines.all()} == {"warning"}
