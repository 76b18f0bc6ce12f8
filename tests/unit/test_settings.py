"""Wrong settings stop the process at boot, with the fix in the message."""

import ast
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

ROOT = Path(__file__).resolve().parents[2]
PRODUCTION = {
    "APP_ENV": "production",
    "SECRET_KEY": "k" * 60 + "0123456789",
    "ALLOWED_HOSTS": "shop.example",
    "DATABASE_URL": "postgresql://skincare:secret@db.example:5432/skincare",
    "AWS_REGION": "ap-southeast-3",
    "ORDER_EVENTS_QUEUE_URL": "https://sqs.example/000000000000/skincare-order-events",
    "MIDTRANS_SERVER_KEY": "Mid-server-key",
    "XENDIT_CALLBACK_TOKEN": "xendit-token",
    "EMAIL_URL": "smtp+tls://user:password@smtp.example:587",
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"APP_ENV": "staging"}, "APP_ENV is 'staging': set it to development, test or production"),
        ({"LOG_LEVEL": "loud"}, "LOG_LEVEL is 'LOUD': set it to DEBUG, INFO, WARNING"),
        ({"SECRET_KEY": ""}, "SECRET_KEY is empty: set it"),
        ({"SECRET_KEY": "short"}, "SECRET_KEY is shorter than 50 characters: make one with"),
        ({"DEBUG": "true"}, "DEBUG is on in production: remove DEBUG"),
        ({"ALLOWED_HOSTS": ""}, "ALLOWED_HOSTS is empty: list the API's host names"),
        ({"DATABASE_URL": ""}, "DATABASE_URL is empty: set it"),
        ({"DATABASE_URL": "sqlite:///db.sqlite3"}, "DATABASE_URL is not a PostgreSQL URL"),
        ({"AWS_REGION": ""}, "AWS_REGION is empty: set it"),
        ({"ORDER_EVENTS_QUEUE_URL": ""}, "ORDER_EVENTS_QUEUE_URL is empty: set it"),
        ({"SQS_ENDPOINT_URL": "http://127.0.0.1:4566"}, "SQS_ENDPOINT_URL is plain http"),
        ({"MIDTRANS_SERVER_KEY": " "}, "MIDTRANS_SERVER_KEY is empty: set it"),
        ({"XENDIT_CALLBACK_TOKEN": ""}, "XENDIT_CALLBACK_TOKEN is empty: set it"),
        ({"PAYMENT_PROVIDERS": "midtrans,paypal"}, "PAYMENT_PROVIDERS names paypal: known are"),
        ({"PAYMENT_PROVIDERS": "sandbox"}, "PAYMENT_PROVIDERS enables sandbox in production"),
        ({"EMAIL_URL": ""}, "EMAIL_URL is empty: set it"),
        ({"ENV_FILE": "/no/such/file"}, "ENV_FILE is '/no/such/file', which is not there"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_remedy(
    changes: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skincare.telemetry.logs.configure_logging", lambda **_: None)
    for name, value in {**PRODUCTION, **changes}.items():
        monkeypatch.setenv(name, value)
    for name in {"DEBUG", "SQS_ENDPOINT_URL", "PAYMENT_PROVIDERS"} - set(changes):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(ImproperlyConfigured) as refusal:
        runpy.run_path(str(ROOT / "skincare" / "settings.py"))

    assert str(refusal.value).startswith(message)


def test_a_disabled_provider_needs_no_secret() -> None:
    environment = {**PRODUCTION, "PAYMENT_PROVIDERS": "midtrans", "XENDIT_CALLBACK_TOKEN": ""}

    assert run_check(environment).returncode == 0


@pytest.mark.parametrize("app_env", ["development", "test"])
def test_outside_production_an_empty_variable_is_one_that_is_not_set(app_env: str) -> None:
    environment = dict.fromkeys(variables_documented(), "") | {"APP_ENV": app_env}

    checked = run_check(environment, "check")

    assert checked.returncode == 0, checked.stderr


def test_the_example_works_as_it_is(tmp_path: Path) -> None:
    copy = tmp_path / ".env"
    copy.write_text((ROOT / ".env.example").read_text().replace("ENV_FILE=\n", ""))

    checked = run_check({"ENV_FILE": str(copy)}, "check")

    assert checked.returncode == 0, checked.stderr


def test_an_empty_environment_name_is_production() -> None:
    checked = run_check({"APP_ENV": ""}, "check")

    assert checked.returncode != 0
    assert "SECRET_KEY is empty: set it (see .env.example)." in checked.stdout + checked.stderr


def test_a_local_sqs_server_is_enough_to_be_in_development() -> None:
    environment = {
        name: PRODUCTION[name] for name in ("DATABASE_URL", "ORDER_EVENTS_QUEUE_URL")
    } | {"SQS_ENDPOINT_URL": "http://127.0.0.1:4566"}

    checked = run_check(environment, "check")

    assert checked.returncode == 0, checked.stderr


def test_nothing_said_is_production() -> None:
    checked = run_check({"DATABASE_URL": PRODUCTION["DATABASE_URL"]}, "check")

    assert checked.returncode != 0
    assert "SECRET_KEY is empty: set it (see .env.example)." in checked.stdout + checked.stderr


def test_production_settings_pass_djangos_deployment_checks() -> None:
    checked = run_check(PRODUCTION)

    assert checked.returncode == 0, checked.stderr
    assert "no issues" in checked.stdout


def run_check(environment: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    command = command or ("check", "--deploy", "--fail-level", "WARNING")
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=ROOT,
        env={**inherited, "ENV_FILE": "", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_variable_that_the_settings_read_is_documented() -> None:
    source = (ROOT / "skincare" / "settings.py").read_text()

    assert variables_read(source) == variables_documented()


def variables_documented() -> set[str]:
    return {
        line.partition("=")[0]
        for line in (ROOT / ".env.example").read_text().splitlines()
        if line and not line.startswith("#")
    }


def variables_read(source: str) -> set[str]:
    """Return the names given to env.* calls, to required() and to provider_secret()."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        function = ast.unparse(node.func)
        texts = [a.value for a in node.args if isinstance(a, ast.Constant)]
        if function.startswith("env.") or function == "required":
            names.update(texts[:1])
        elif function == "provider_secret":
            names.update(texts[1:2])
    return names
