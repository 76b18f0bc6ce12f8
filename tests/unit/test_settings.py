"""Wrong settings stop the process at boot, with the fix in the message."""

import ast
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from skincare import connections

ROOT = Path(__file__).resolve().parents[2]
QUEUE_URL = "https://sqs.ap-southeast-3.amazonaws.com/000000000000/skincare-order-events"
PRODUCTION = {
    "APP_ENV": "production",
    "SECRET_KEY": "k" * 60 + "0123456789",
    "ALLOWED_HOSTS": "shop.example",
    "DATABASE_URL": "postgresql://skincare:secret@db.example:5432/skincare",
    "AWS_REGION": "ap-southeast-3",
    "ORDER_EVENTS_QUEUE_URL": QUEUE_URL,
    "MIDTRANS_SERVER_KEY": "Mid-server-0123456789abcdef",
    "XENDIT_CALLBACK_TOKEN": "xendit-0123456789abcdef",
    "XENDIT_SECRET_KEY": "xnd_production_0123456789abcdef",
    "SHOP_URL": "https://shop.example",
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
        ({"LIMIT_BUYERS": "false"}, "LIMIT_BUYERS is off in production"),
        ({"ALLOWED_HOSTS": ""}, "ALLOWED_HOSTS is empty: list the API's host names"),
        ({"DATABASE_URL": ""}, "DATABASE_URL is empty: set it"),
        ({"DATABASE_URL": "sqlite:///db.sqlite3"}, "DATABASE_URL is not a PostgreSQL URL"),
        ({"AWS_REGION": ""}, "AWS_REGION is empty: set it"),
        ({"ORDER_EVENTS_QUEUE_URL": ""}, "ORDER_EVENTS_QUEUE_URL is empty: set it"),
        ({"SQS_ENDPOINT_URL": "http://127.0.0.1:4566"}, "SQS_ENDPOINT_URL is plain http"),
        ({"MIDTRANS_SERVER_KEY": " "}, "MIDTRANS_SERVER_KEY is empty: set it"),
        ({"PAYMENT_PROVIDERS": "midtrans,paypal"}, "PAYMENT_PROVIDERS names paypal: known are"),
        ({"PAYMENT_PROVIDERS": "sandbox"}, "PAYMENT_PROVIDERS enables sandbox in production"),
        ({"EMAIL_URL": ""}, "EMAIL_URL is empty: set it"),
        ({"SECRET_KEY": "ab" * 30}, "SECRET_KEY has fewer than 5 different characters"),
        ({"ALLOWED_HOSTS": "*"}, "ALLOWED_HOSTS: entry 1 is not a host name"),
        ({"ALLOWED_HOSTS": "shop.example, .com"}, "ALLOWED_HOSTS: entry 2 is not a host name"),
        ({"ALLOWED_HOSTS": "https://shop.example"}, "ALLOWED_HOSTS: entry 1 is not a host name"),
        *(
            ({name: f"shop.example, {wildcard}"}, f"{name}: entry 2 takes the names of strangers")
            for name in ("ALLOWED_HOSTS", "ADMIN_HOSTS")
            for wildcard in (
                *(".co.id", ".web.id", ".my.id", ".or.id", ".CO.ID", ".biz.id", ".com.sg"),
                *(".ap-southeast-3.elb.amazonaws.com", ".amazonaws.com", ".pages.dev"),
            )
        ),
        ({"ALLOWED_HOSTS": "shop.example:443"}, "ALLOWED_HOSTS: entry 1 is not a host name"),
        ({"ADMIN_HOSTS": "*"}, "ADMIN_HOSTS: entry 1 is not a host name"),
        (
            {"ADMIN_HOSTS": "office.example"},
            "ADMIN_HOSTS names a host that is not in ALLOWED_HOSTS",
        ),
        ({"DATABASE_URL": "hello"}, "DATABASE_URL is not a URL that can be read: percent-encode"),
        ({"DATABASE_URL": "postgresql://u:p@db.example"}, "DATABASE_URL names no database"),
        (
            {"DATABASE_URL": "postgresql://db.example/shop"},
            "DATABASE_URL or DATABASE_USER names no",
        ),
        ({"DATABASE_URL": "postgresql://u:p@db.example/shop?ssl=1"}, "DATABASE_URL has an option"),
        (
            {"DATABASE_URL": "postgresql://u:p@db.example/shop?sslmode=loose"},
            "DATABASE_URL sets an sslmode that does not check whose certificate it is",
        ),
        *(
            (
                {"DATABASE_URL": f"postgresql://u:p@db.example/shop?sslmode={mode}"},
                "DATABASE_URL sets an sslmode that does not check whose certificate it is",
            )
            for mode in ("disable", "allow", "prefer", "require", "verify-ca")
        ),
        (
            {"DATABASE_URL": "postgresql://u:p@db.example/shop?connect_timeout=0"},
            "DATABASE_URL has an option",
        ),
        ({"DATABASE_CA_BUNDLE": "/nowhere.pem"}, "DATABASE_CA_BUNDLE is not a file"),
        ({"DATABASE_HOST": "db.example"}, "DATABASE_URL and DATABASE_HOST are both set"),
        (
            {"DATABASE_URL": "", "DATABASE_HOST": "postgresql://db.example"},
            "DATABASE_HOST is not a host name",
        ),
        (
            {"DATABASE_URL": "", "DATABASE_HOST": "db.example", "DATABASE_PORT": "x"},
            "DATABASE_PORT is not a whole number from 1 to 65535",
        ),
        *(
            ({"DATABASE_URL": f"postgresql://u:S3cr3tZz@db.example/shop?{option}"}, message)
            for option, message in (
                ("host=", "DATABASE_URL has an option"),
                ("host=elsewhere.example", "DATABASE_URL has an option"),
                ("hostaddr=192.0.2.1", "DATABASE_URL has an option"),
                ("application_name=%00", "DATABASE_URL has an option"),
                ("sslrootcert=/etc/passwd", "sslrootcert of DATABASE_URL is not a file of cert"),
            )
        ),
        *(
            ({"DATABASE_URL": f"postgresql://u:S3cr3tZz@{host}/shop"}, "DATABASE_URL is not a URL")
            for host in (
                "[2001:db8::1",
                "a,b",
                "db.example:0",
                "db.example:\u0665",
                "db.example:-1",
            )
        ),
        ({"DATABASE_CA_BUNDLE": "/etc/passwd"}, "DATABASE_CA_BUNDLE is not a file of certificates"),
        *(
            ({"SECRET_KEY": key}, "SECRET_KEY repeats itself, or is not for production")
            for key in (
                "password" * 8,
                "0123456789" * 6,
                "django-insecure-" + "abcdefghij" * 4 + "k",
                "only-for-development-" + "0" * 40,
            )
        ),
        *(
            ({name: value}, f"{name} {message}")
            for name in ("MIDTRANS_SERVER_KEY", "XENDIT_CALLBACK_TOKEN", "XENDIT_SECRET_KEY")
            for value, message in (
                ("a" * 40, "can be guessed"),
                ("abcdefgh" * 4, "can be guessed"),
                ("xendit-development-token", "can be guessed"),
                ("'S3cr3tZz-0123456789'", "has quotes or brackets"),
                ("<your-server-key-here>", "has quotes or brackets"),
                ("S3cr3tZz-\u00e9-0123456789", "is shorter than 16 characters, or has a blank"),
                ("S3cr3tZz 0123456789", "is shorter than 16 characters, or has a blank"),
                ("S3cr3tZz\n0123456789", "holds a line break"),
            )
        ),
        ({"XENDIT_SECRET_KEY": "xnd_public_production_ab"}, "XENDIT_SECRET_KEY is the gateway's"),
        ({"BUYER_TOKEN_SECRETS": "S3cr3tZz" * 4}, "BUYER_TOKEN_SECRETS has one of less than 32"),
        *(
            ({"CORS_ALLOWED_ORIGINS": origin}, "CORS_ALLOWED_ORIGINS: entry 1 is not an origin")
            for origin in (
                *("*", "null", "https://*.shop.example", "https://shop.example/"),
                *("http://shop.example", "https://shop.example:99999", "https://shop.example:0"),
                *("https://.", "https://-", "https://shop..example", "https://shop.example:\u0668"),
            )
        ),
        *(
            ({"SENTRY_DSN": dsn}, "SENTRY_DSN is not a")
            for dsn in (
                *("https://S3cr3tZz@[::1/1", "https://S3cr3tZz@sentry.example:99999/1"),
                *("https://S3cr3tZz@sentry.example:\u0668/1", "ftp://S3cr3tZz@sentry.example/1"),
            )
        ),
        *(
            ({"SHOP_URL": f"https://shop.example/{path}"}, "SHOP_URL is not the address of a")
            for path in ("a b", "../x", "%0d%0a", "<script>", "'", "#", "?")
        ),
        (
            {"ORDER_EVENTS_QUEUE_URL": QUEUE_URL.replace("https://", "https://AKIA:S3cr3tZz@")},
            "ORDER_EVENTS_QUEUE_URL holds a login",
        ),
        (
            {"SQS_ENDPOINT_URL": "https://u:S3cr3tZz@sqs.example"},
            "SQS_ENDPOINT_URL is not the URL of a server",
        ),
        ({"PAYMENT_PROVIDERS": "midtrans,midtrans"}, "PAYMENT_PROVIDERS names one twice"),
        (
            {"EMAIL_URL": "smtp+tls://u:S3cr3tZz@smtp.example?x=y"},
            "EMAIL_URL has a path or options",
        ),
        *(
            ({"DEFAULT_FROM_EMAIL": sender}, "DEFAULT_FROM_EMAIL is not one address")
            for sender in ("Group: a@shop.example;", f"{'a' * 65}@shop.example")
        ),
        *(
            ({"WORKER_CONCURRENCY": number}, "WORKER_CONCURRENCY is not a whole number")
            for number in ("-1", "1e3", "\u0665", "\u00b2", "9" * 400, "5_0", "NaN")
        ),
        ({"AWS_REGION": "jakarta"}, "AWS_REGION is not the name of an AWS region"),
        ({"ORDER_EVENTS_QUEUE_URL": "skincare"}, "ORDER_EVENTS_QUEUE_URL is not a URL"),
        ({"ORDER_EVENTS_QUEUE_URL": f"{QUEUE_URL}.fifo"}, "ORDER_EVENTS_QUEUE_URL is a FIFO queue"),
        (
            {"ORDER_EVENTS_QUEUE_URL": QUEUE_URL.replace("https", "http")},
            "ORDER_EVENTS_QUEUE_URL is not the URL of a queue at AWS",
        ),
        (
            {"ORDER_EVENTS_QUEUE_URL": QUEUE_URL.replace("amazonaws.com", "example")},
            "ORDER_EVENTS_QUEUE_URL is not the URL of a queue at AWS",
        ),
        (
            {"ORDER_EVENTS_QUEUE_URL": QUEUE_URL.replace("southeast-3", "southeast-1")},
            "ORDER_EVENTS_QUEUE_URL is in another region than AWS_REGION",
        ),
        ({"SQS_ENDPOINT_URL": "local"}, "SQS_ENDPOINT_URL is not a URL that can be read"),
        ({"MIDTRANS_SERVER_KEY": "k"}, "MIDTRANS_SERVER_KEY is shorter than 16 characters"),
        ({"XENDIT_CALLBACK_TOKEN": "k" * 15}, "XENDIT_CALLBACK_TOKEN is shorter than 16"),
        (
            {"XENDIT_CALLBACK_TOKEN": "tok\u00e9n-0123456789abcdef"},
            "XENDIT_CALLBACK_TOKEN is shorter than 16 characters, or has a blank or a letter that",
        ),
        ({"XENDIT_SECRET_KEY": ""}, "XENDIT_SECRET_KEY is empty: set it"),
        (
            {"XENDIT_SECRET_KEY": "xnd_development_0123456789"},
            "XENDIT_SECRET_KEY is a key of Xendit's test mode",
        ),
        ({"MIDTRANS_SERVER_KEY": "Mid-client-0123456789"}, "MIDTRANS_SERVER_KEY is the client key"),
        ({"MIDTRANS_ENVIRONMENT": "live"}, "MIDTRANS_ENVIRONMENT is 'live': set it to sandbox or"),
        (
            {"MIDTRANS_SERVER_KEY": "SB-Mid-server-0123456789"},
            "MIDTRANS_SERVER_KEY is a key of the sandbox",
        ),
        *(
            ({name: url}, f"{name} is not the gateway's own")
            for name, url in (
                ("MIDTRANS_SNAP_URL", "http://app.midtrans.com/snap/v1"),
                ("MIDTRANS_SNAP_URL", "https://app.sandbox.midtrans.com/snap/v1"),
                ("MIDTRANS_API_URL", "https://api.midtrans.com:8443"),
                ("MIDTRANS_API_URL", "https://api.midtrans.com.example"),
                ("XENDIT_API_URL", "http://127.0.0.1:8001/xendit"),
            )
        ),
        *(
            ({"XENDIT_API_URL": url}, "XENDIT_API_URL is not the address of a server")
            for url in (
                "api.xendit.co",
                "https://",
                "https://user@api.xendit.co",
                "ftp://x.example",
            )
        ),
        ({"SHOP_URL": ""}, "SHOP_URL is empty: set it"),
        ({"SHOP_URL": "http://shop.example"}, "SHOP_URL is not https"),
        ({"SHOP_URL": "https://shop.example/?a=b"}, "SHOP_URL is not the address of a server"),
        ({"PROVIDERS_ASKED": "midtrans,sandbox"}, "PROVIDERS_ASKED names sandbox"),
        ({"PAYMENT_PROVIDERS": ""}, "PAYMENT_PROVIDERS is empty, so nobody could pay"),
        ({"PAYMENT_PROVIDERS": " , "}, "PAYMENT_PROVIDERS is empty, so nobody could pay"),
        *(
            ({"EMAIL_URL": url}, "EMAIL_URL sends no emails, or sends them unencrypted")
            for url in (
                *("consolemail://", "filemail:///tmp/it", "memorymail://", "dummymail://"),
                *("smtp://user:password@smtp.example:587", "https://smtp.example"),
            )
        ),
        ({"EMAIL_URL": "smtp+tls://user@smtp.example"}, "EMAIL_URL has no host, or only one of"),
        ({"EMAIL_URL": "smtp+tls://"}, "EMAIL_URL has no host, or only one of"),
        ({"EMAIL_URL": "smtp+tls://u:p@mail.example/x"}, "EMAIL_URL has a path"),
        (
            {"EMAIL_URL": "", "EMAIL_HOST": "mail.example", "EMAIL_SECURITY": "none"},
            "EMAIL_URL sends no emails, or sends them unencrypted",
        ),
        (
            {"EMAIL_URL": "", "EMAIL_HOST": "mail.example", "EMAIL_SECURITY": "yes"},
            "EMAIL_SECURITY is 'yes': set it to starttls, tls or none",
        ),
        ({"DEFAULT_FROM_EMAIL": "Toko, Skincare <a@b.example>"}, "DEFAULT_FROM_EMAIL is not one"),
        ({"DEFAULT_FROM_EMAIL": "a@b.example, c@d.example"}, "DEFAULT_FROM_EMAIL is not one"),
        ({"DEFAULT_FROM_EMAIL": "Toko Skincare"}, "DEFAULT_FROM_EMAIL is not one address"),
        ({"DEFAULT_FROM_EMAIL": "Toko <a@localhost>"}, "DEFAULT_FROM_EMAIL is not one address"),
        ({"DEFAULT_FROM_EMAIL": "Toko <a@[127.0.0.1]>"}, "DEFAULT_FROM_EMAIL is not one address"),
        ({"DEFAULT_FROM_EMAIL": ""}, "DEFAULT_FROM_EMAIL is not one address"),
        ({"DEFAULT_FROM_EMAIL": "Toko\r\nBcc: x <a@b.example>"}, "DEFAULT_FROM_EMAIL holds a line"),
        ({"WORKER_CONCURRENCY": "five"}, "WORKER_CONCURRENCY is not a whole number from 1 to 64"),
        ({"WORKER_CONCURRENCY": "0"}, "WORKER_CONCURRENCY is not a whole number from 1 to 64"),
        ({"WORKER_CONCURRENCY": "\u0665"}, "WORKER_CONCURRENCY is not a whole number from 1 to 64"),
        ({"SENTRY_DSN": "abc"}, "SENTRY_DSN is not a DSN: copy it"),
        ({"SENTRY_DSN": "https://sentry.example/1"}, "SENTRY_DSN is not a DSN: copy it"),
        ({"DEBUG": "maybe"}, "DEBUG is neither true nor false"),
        ({"SQS_HEALTH_FILE": "/nowhere/health.json"}, "SQS_HEALTH_FILE is in a folder that is not"),
        ({"SQS_HEALTH_FILE": "health.json"}, "SQS_HEALTH_FILE is not a whole path"),
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
    assert "S3cr3tZz" not in str(refusal.value)


def test_the_admins_host_may_be_below_a_wildcard() -> None:
    hosts = {"ALLOWED_HOSTS": ".shop.example", "ADMIN_HOSTS": "Office.shop.example"}

    assert run_check({**PRODUCTION, **hosts}).returncode == 0


@pytest.mark.parametrize(
    "wildcard", [".shop.example", ".toko.co.id", ".shop.id", ".co.example", ".id.example"]
)
def test_a_wildcard_of_a_domain_of_ones_own_is_taken(wildcard: str) -> None:
    assert run_check({**PRODUCTION, "ALLOWED_HOSTS": wildcard}).returncode == 0


@pytest.mark.parametrize(
    ("program", "refused"), [("skincare.wsgi", True), ("skincare.celery", False)]
)
def test_what_proves_a_webhook_is_needed_where_webhooks_are_served(
    program: str, refused: bool
) -> None:
    environment = {**PRODUCTION, "XENDIT_CALLBACK_TOKEN": ""}

    started = run([sys.executable, "-c", f"import {program}"], environment)

    said = "XENDIT_CALLBACK_TOKEN is empty: set it" in started.stdout + started.stderr
    assert (started.returncode != 0, said) == (refused, refused), started.stderr
    assert run_check(environment, "check").returncode == 0


def test_what_a_web_process_has_loaded_is_not_searched_for_garbage() -> None:
    program = (
        "import gc, skincare.wsgi\nprint('frozen', gc.get_freeze_count() > len(gc.get_objects()))"
    )

    started = run([sys.executable, "-c", program], PRODUCTION)

    assert "frozen True" in started.stdout, started.stderr


def test_a_disabled_provider_needs_no_secret() -> None:
    environment = {**PRODUCTION, "PAYMENT_PROVIDERS": "midtrans"}
    environment |= dict.fromkeys(("XENDIT_CALLBACK_TOKEN", "XENDIT_SECRET_KEY"), "")

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
    return run([sys.executable, "manage.py", *command], environment)


def run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        command,
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
        elif function == "connections.database":
            names.update(["DATABASE_URL", *connections.DATABASE_PARTS])
        elif function == "connections.email":
            names.update(["EMAIL_URL", *connections.EMAIL_PARTS])
        elif function == "provider_secret":
            names.update(texts[1:2])
        elif function == "addresses.gateway_url":
            names.update(texts[:1])
        elif function == "addresses.shop_url":
            names.add("SHOP_URL")
    return names
