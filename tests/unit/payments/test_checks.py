"""An enabled provider that could not prove its callers stops the process."""

from typing import Any

import pytest

from payments.checks import providers_can_verify


def test_the_projects_providers_can_verify() -> None:
    assert providers_can_verify() == []


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        (
            {"MIDTRANS_SERVER_KEY": ""},
            ["midtrans is in PAYMENT_PROVIDERS, but MIDTRANS_SERVER_KEY"],
        ),
        ({"XENDIT_CALLBACK_TOKEN": ""}, ["xendit is in PAYMENT_PROVIDERS, but XENDIT_CALLBACK"]),
        ({"MIDTRANS_SERVER_KEY": "", "PAYMENT_PROVIDERS": ["xendit"]}, []),
        (
            {"PAYMENT_PROVIDERS": ["paypal"]},
            ["paypal in PAYMENT_PROVIDERS is not a known provider"],
        ),
        ({"IN_PRODUCTION": True}, ["sandbox is in PAYMENT_PROVIDERS in production"]),
    ],
)
def test_what_is_refused(changes: dict[str, Any], sentences: list[str], settings: Any) -> None:
    for name, value in changes.items():
        setattr(settings, name, value)

    found = [problem.msg for problem in providers_can_verify()]

    assert len(found) == len(sentences)
    for message, sentence in zip(found, sentences, strict=True):
        assert message.startswith(sentence)
