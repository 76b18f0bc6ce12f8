"""Who guesses is stopped before anything is hashed; who is in sees nothing that others keep."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import hashers
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from django_otp.oath import totp
from django_otp.plugins.otp_totp.models import TOTPDevice

from tests.log_lines import captured

pytestmark = pytest.mark.django_db

LOGIN = "/admin/login/"
PASSWORD = "a-long-word-of-one-person"


@pytest.fixture
def person() -> User:
    return User.objects.create_superuser("ayu", password=PASSWORD)


def log_in(client: Client, password: str = PASSWORD, **fields: str) -> int:
    return client.post(LOGIN, {"username": "ayu", "password": password, **fields}).status_code


def test_wrong_passwords_are_refused_after_some_before_any_hashing(
    person: User, client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = [log_in(client, "wrong") for _ in range(settings.AXES_FAILURE_LIMIT)]
    monkeypatch.setattr(hashers, "check_password", pytest.fail)
    monkeypatch.setattr(hashers, "make_password", pytest.fail)

    answer = client.post(LOGIN, {"username": "ayu", "password": PASSWORD})

    assert tries == [200] * (settings.AXES_FAILURE_LIMIT - 1) + [429]
    assert answer.status_code == 429
    assert int(answer["Retry-After"]) == settings.AXES_COOLOFF_TIME.total_seconds()
    assert client.post(LOGIN, {"username": "budi", "password": "x"}).status_code == 429


def test_another_address_may_still_log_in_as_that_person(
    person: User, client: Client, settings: Any
) -> None:
    for _ in range(settings.AXES_FAILURE_LIMIT):
        log_in(client, "wrong")

    assert log_in(Client(REMOTE_ADDR="198.51.100.7")) == 302


def test_after_a_while_it_may_be_tried_again(person: User, client: Client, settings: Any) -> None:
    from axes.models import AccessAttempt

    for _ in range(settings.AXES_FAILURE_LIMIT):
        log_in(client, "wrong")
    AccessAttempt.objects.update(
        attempt_time=timezone.now() - settings.AXES_COOLOFF_TIME - timedelta(seconds=1)
    )

    assert log_in(client) == 302


def test_each_wrong_password_is_a_line_and_a_count_without_the_name(
    person: User, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    log_in(client, "wrong")

    assert "'event': 'login_failed'" in caplog.text
    assert "ayu" not in caplog.text


@pytest.mark.django_db(transaction=True)
def test_wrong_passwords_and_refused_ones_are_metrics(
    person: User, client: Client, settings: Any
) -> None:
    with captured() as lines:
        answers = [log_in(client, "wrong") for _ in range(settings.AXES_FAILURE_LIMIT + 1)]

    assert set(answers) == {200, 429}
    assert len(lines.metric("LoginsFailed")) == settings.AXES_FAILURE_LIMIT + 1
    assert len(lines.metric("LoginsRefused")) == 2


def test_who_has_a_device_needs_its_code(person: User, client: Client) -> None:
    device = TOTPDevice.objects.create(user=person, name="phone")

    assert log_in(client) == 200
    assert log_in(client, otp_token="000000") == 200
    device.refresh_from_db()
    device.throttle_reset()
    code = str(totp(device.bin_key)).zfill(6)
    assert log_in(client, otp_token=code, otp_device=device.persistent_id) == 302
    assert client.get("/admin/").status_code == 200


def test_a_device_is_set_up_by_a_picture_that_its_owner_scans(
    person: User, admin_client: Client
) -> None:
    device = TOTPDevice.objects.create(user=person, name="phone")

    answer = admin_client.get(f"/admin/otp_totp/totpdevice/{device.pk}/qrcode/")

    assert (answer.status_code, answer["Content-Type"]) == (200, "image/svg+xml")
    assert b"<svg" in answer.content
    assert "no-store" in answer["Cache-Control"]


def test_a_session_that_began_without_a_code_ends_where_one_is_needed(
    person: User, client: Client, settings: Any
) -> None:
    assert log_in(client) == 302
    assert client.get("/admin/operations/").status_code == 200

    settings.ADMIN_REQUIRES_CODE = True

    assert client.get("/admin/operations/").status_code == 302


@pytest.mark.parametrize("fields", [{}, {"username": "ayu"}, {"password": "x"}])
def test_a_form_with_fields_missing_is_shown_again(
    fields: dict[str, str], person: User, client: Client
) -> None:
    assert client.post(LOGIN, fields).status_code == 200


def test_a_session_lasts_a_working_day(person: User, client: Client) -> None:
    log_in(client)

    assert client.cookies["sessionid"]["max-age"] == 12 * 3600


@pytest.mark.parametrize("path", [LOGIN, "/admin/", "/admin/operations/", "/admin/orders/order/"])
def test_pages_hold_no_inline_code_and_nobody_keeps_them(path: str, admin_client: Client) -> None:
    answer = admin_client.get(path, follow=True)
    page = answer.content.decode()

    assert "no-store" in answer["Cache-Control"]
    policy = answer["Content-Security-Policy"]
    assert "unsafe-inline" not in policy
    assert "script-src 'self'" in policy
    assert "<style" not in page
    for tag in page.split("<script")[1:]:
        assert "src=" in tag.split(">")[0] or 'type="application/json"' in tag.split(">")[0]
    assert not any(f" on{name}=" in page for name in ("click", "change", "submit", "load"))


def test_the_admin_answers_on_its_own_host_alone(admin_client: Client, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["shop.example", "office.example"]
    settings.ADMIN_HOSTS = ["office.example"]

    assert admin_client.get("/admin/", headers={"Host": "office.example:8443"}).status_code == 200
    assert admin_client.get("/admin/", headers={"Host": "office.example"}).status_code == 200
    for path in ("/admin/", LOGIN, "/admin/operations/"):
        assert admin_client.get(path, headers={"Host": "shop.example"}).status_code == 404
    assert admin_client.get("/v1/products", headers={"Host": "shop.example"}).status_code == 200


@pytest.mark.parametrize("named", ["Office.Example", ".example"])
def test_the_admins_hosts_are_read_as_all_hosts_are(
    named: str, admin_client: Client, settings: Any
) -> None:
    settings.ALLOWED_HOSTS = settings.ADMIN_HOSTS = [named]

    assert admin_client.get("/admin/", headers={"Host": "office.example"}).status_code == 200
