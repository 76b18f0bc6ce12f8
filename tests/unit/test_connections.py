"""A password of any characters reaches the server as it is, and never a message."""

import string
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.core.exceptions import ImproperlyConfigured
from hypothesis import assume, given
from hypothesis import strategies as st

from skincare import connections
from skincare.environment import Environment

BUNDLE = Path(__file__).resolve().parents[2] / "docker" / "rds-ca-bundle.pem"
PASSWORDS = st.text(string.printable, min_size=1, max_size=60)
# One for each way to refuse: not a URL, a URL that ends before its host, not a line.
REFUSED = [".5[lO", "-@#IQ", "a\rb"]
USERS = st.text(string.ascii_letters + string.digits + "_-.@/#?%:+$", min_size=1, max_size=30)


def database(**variables: str) -> dict[str, Any]:
    return connections.database(
        Environment(variables), default_url="", ca_bundle=BUNDLE, in_production=True
    )


def email(**variables: str) -> dict[str, Any]:
    return connections.email(Environment(variables), default_url="", in_production=True)


@given(user=USERS, password=PASSWORDS)
def test_a_percent_encoded_login_is_taken_from_both_urls(user: str, password: str) -> None:
    login = f"{quote(user, safe='')}:{quote(password, safe='')}"

    stored = database(DATABASE_URL=f"postgresql://{login}@db.example:6432/shop")
    sending = email(EMAIL_URL=f"smtp+tls://{login}@smtp.example:2587")

    assert (stored["USER"], stored["PASSWORD"]) == (user, password)
    assert (stored["HOST"], stored["PORT"], stored["NAME"]) == ("db.example", 6432, "shop")
    assert (sending["EMAIL_HOST_USER"], sending["EMAIL_HOST_PASSWORD"]) == (user, password)
    assert (sending["EMAIL_HOST"], sending["EMAIL_PORT"]) == ("smtp.example", 2587)


@given(user=USERS, password=PASSWORDS)
def test_a_login_in_parts_is_taken_as_it_is(user: str, password: str) -> None:
    stored = database(
        DATABASE_HOST="db.example",
        DATABASE_NAME="shop",
        DATABASE_USER=user,
        DATABASE_PASSWORD=password,
    )
    sending = email(EMAIL_HOST="smtp.example", EMAIL_USER=user, EMAIL_PASSWORD=password)

    assert (stored["USER"], stored["PASSWORD"]) == (user, password)
    assert (sending["EMAIL_HOST_USER"], sending["EMAIL_HOST_PASSWORD"]) == (user, password)


@given(password=PASSWORDS)
def test_a_password_that_is_not_encoded_is_taken_whole_or_refused_without_being_told(
    password: str,
) -> None:
    # What cannot be told from an encoded one is read as one.
    assume("%" not in password)
    for read, variable, url, name in (
        (database, "DATABASE_URL", "postgresql://shop:{}@db.example/shop", "PASSWORD"),
        (email, "EMAIL_URL", "smtp+tls://shop:{}@smtp.example", "EMAIL_HOST_PASSWORD"),
    ):
        taken, refusal = tried(read, name, **{variable: url.format(password)})

        if refusal is None:
            assert taken == password
        else:
            # The same sentence as for another password, so that nothing of this one is in it.
            others = [tried(read, name, **{variable: url.format(other)}) for other in REFUSED]
            assert str(refusal) in [str(other) for _, other in others]
            assert variable in str(refusal)
            assert refusal.__suppress_context__ or refusal.__context__ is None


def tried(
    read: Callable[..., dict[str, Any]], name: str, **variables: str
) -> tuple[str, ImproperlyConfigured | None]:
    try:
        return read(**variables)[name], None
    except ImproperlyConfigured as refusal:
        return "", refusal


@pytest.mark.parametrize("character", "/#?")
def test_the_characters_that_end_a_host_are_refused_with_the_way_to_write_them(
    character: str,
) -> None:
    with pytest.raises(ImproperlyConfigured, match="percent-encode the special characters"):
        database(DATABASE_URL=f"postgresql://shop:BMzzz{character}7y@db.example/shop")
    with pytest.raises(ImproperlyConfigured, match="or set EMAIL_HOST, EMAIL_USER, EMAIL_PASSWORD"):
        email(EMAIL_URL=f"smtp+tls://shop:BMzzz{character}7y@smtp.example:587")


def test_the_databases_certificate_is_checked_against_amazons_authorities() -> None:
    options = database(DATABASE_URL="postgresql://shop:secret@db.example/shop")["OPTIONS"]

    assert options["sslmode"] == "verify-full"
    assert options["sslrootcert"] == str(BUNDLE)


def test_another_databases_certificate_is_checked_against_what_is_named(tmp_path: Path) -> None:
    own = tmp_path / "own.pem"
    own.write_text("-----BEGIN CERTIFICATE-----\n")
    url = "postgresql://shop:secret@db.example/shop"

    assert database(DATABASE_URL=url, DATABASE_CA_BUNDLE=str(own))["OPTIONS"]["sslrootcert"] == str(
        own
    )
    assert database(DATABASE_URL=f"{url}?sslrootcert=system")["OPTIONS"]["sslrootcert"] == "system"


@pytest.mark.parametrize(
    "url",
    ["postgresql://shop:x@127.0.0.1/shop", "postgresql://shop@/shop?host=%2Fvar%2Frun%2Fpgbouncer"],
)
def test_a_database_on_the_same_machine_needs_no_certificate(url: str) -> None:
    assert "sslmode" not in database(DATABASE_URL=url)["OPTIONS"]


def test_the_kinds_of_encryption_towards_the_email_provider_have_their_ports() -> None:
    starttls = email(EMAIL_URL="smtp+tls://u:p@smtp.example")
    tls = email(EMAIL_HOST="smtp.example", EMAIL_SECURITY="tls")

    assert (starttls["EMAIL_PORT"], starttls["EMAIL_USE_TLS"]) == (587, True)
    assert (tls["EMAIL_PORT"], tls["EMAIL_USE_SSL"]) == (465, True)


def test_an_email_login_that_smtp_cannot_carry_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="EMAIL_USER and EMAIL_PASSWORD"):
        email(EMAIL_HOST="smtp.example", EMAIL_USER="shop", EMAIL_PASSWORD="kata-sandi-\u00e9")


@pytest.mark.parametrize(
    "url",
    [
        "https://sqs.ap-southeast-3.amazonaws.com/000000000000/orders",
        "https://vpce-0a1b-2c3d.sqs.ap-southeast-3.vpce.amazonaws.com/000000000000/orders",
        "https://ap-southeast-3.queue.amazonaws.com/000000000000/orders",
        "https://sqs.ap-southeast-3.api.aws/000000000000/orders",
    ],
)
def test_every_form_of_a_queues_url_at_aws_is_taken(url: str) -> None:
    connections.check_queue_url("QUEUE", url, region="ap-southeast-3", at_aws=True)


@pytest.mark.parametrize(
    "sender",
    [
        "orders@shop.example",
        "Toko Skincare <orders@shop.example>",
        '"Toko, Skincare" <orders@shop.example>',
        "PT. Skincare <orders@shop.example>",
        "T\u00f6k\u014d <orders@shop.example>",
    ],
)
def test_a_sender_that_can_be_mailed_from_is_taken(sender: str) -> None:
    connections.check_sender("DEFAULT_FROM_EMAIL", sender)
