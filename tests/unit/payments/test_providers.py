"""A new payment provider is one module and one line; what it still lacks is named here."""

import ast
from pathlib import Path

import pytest
from django.conf import settings
from django.urls import reverse

from payments.exceptions import GatewayUnavailable, UnknownProvider
from payments.methods import method
from payments.providers import PROVIDERS, Provider, choosable, gateways, provider
from payments.providers.base import page_of
from payments.providers.document import told

ROOT = Path(__file__).resolve().parents[3]
FILES_THAT_ARE_NO_PROVIDER = {
    *("__init__", "base", "document", "http"),
    *("midtrans_calls", "midtrans_documents", "xendit_calls", "xendit_documents"),
}

every_provider = pytest.mark.parametrize("one", PROVIDERS.values(), ids=list(PROVIDERS))


def test_every_module_of_a_provider_is_registered() -> None:
    modules = {path.stem for path in (ROOT / "payments" / "providers").glob("*.py")}

    assert {type(one).__module__.rpartition(".")[2] for one in PROVIDERS.values()} == (
        modules - FILES_THAT_ARE_NO_PROVIDER
    )


@every_provider
def test_its_secrets_are_settings_that_are_required_where_it_is_offered(one: Provider) -> None:
    tree = ast.parse((ROOT / "skincare" / "settings.py").read_text())
    required = {
        tuple(a.value for a in node.args if isinstance(a, ast.Constant))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "provider_secret"
    }

    for secret in one.secrets:
        assert (one.name, secret.setting) in required, f"settings.py lacks {secret.setting}"
        if secret.proves_sender:
            assert getattr(settings, f"{secret.setting}_PREVIOUS") == ""


@every_provider
def test_its_secrets_are_never_logged(one: Provider) -> None:
    source = (ROOT / "skincare" / "settings.py").read_text()
    kept = source.partition("keep_secret(")[2]

    for secret in one.secrets:
        assert f" {secret.setting}," in kept
        if secret.proves_sender:
            assert f" {secret.setting}_PREVIOUS," in kept


@every_provider
def test_its_variables_are_documented(one: Provider) -> None:
    documented = (ROOT / ".env.example").read_text()

    for secret in one.secrets:
        assert f"\n{secret.setting}=" in documented
        if secret.proves_sender:
            assert f"\n{secret.setting}_PREVIOUS=" in documented


@every_provider
def test_checkout_can_open_its_payment(one: Provider) -> None:
    assert method(one.name).name == one.name


def test_every_gateway_has_its_webhook() -> None:
    assert [reverse(f"v1:{one.name}") for one in gateways()] == [
        f"/v1/webhooks/{one.name}" for one in gateways()
    ]


def test_the_sandbox_is_for_trying_only_and_the_free_one_cannot_be_chosen() -> None:
    assert choosable(in_production=True) == ["midtrans", "xendit"]
    assert choosable(in_production=False) == ["midtrans", "xendit", "sandbox"]


def test_an_unknown_provider_is_refused() -> None:
    with pytest.raises(UnknownProvider, match="paypal"):
        provider("paypal")


@pytest.mark.parametrize(
    ("id_", "url"),
    [
        (None, "https://pay.example/1"),
        ("", "https://pay.example/1"),
        ("t" * 129, "https://pay.example/1"),
        ("t\x00", "https://pay.example/1"),
        ("t", None),
        ("t", ["https://pay.example/1"]),
        ("t", "javascript:alert(1)"),
        ("t", "/relative"),
        ("t", "https://pay.example/" + "x" * 2048),
        ("t", "https://pay.example/\ud800"),
    ],
)
def test_a_page_that_cannot_be_kept_or_opened_is_no_answer(id_: object, url: object) -> None:
    with pytest.raises(GatewayUnavailable):
        page_of("midtrans", id_, url)


def test_what_a_gateway_says_of_a_refusal_can_be_stored() -> None:
    assert told("no\x00\ud800") == "no\\x00\\ud800"
    assert told({"a": 1}) == "{'a': 1}"
    assert len(told("x" * 5000)) == 200
