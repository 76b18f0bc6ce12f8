"""Whatever the numbers' checks accept works; what cannot work stops the process at boot."""

from collections.abc import Mapping
from typing import Any

import pytest
from django.conf import settings as project
from django.core.checks import run_checks
from django.core.mail import EmailMessage

import orders.ranges
import payments.ranges
import skincare.events.checks
from orders import delivery
from skincare.events.checks import Range

RANGES: Mapping[str, Range] = {
    **skincare.events.checks._RANGES,
    **orders.ranges._RANGES,
    **payments.ranges._RANGES,
}


@pytest.mark.parametrize("name", RANGES)
def test_a_number_outside_of_its_range_is_refused_by_name(name: str, settings: Any) -> None:
    allowed = RANGES[name]
    for wrong in (allowed.least - 1, allowed.most + 1, "5", None, True, float("nan")):
        setattr(settings, name, wrong)

        assert [e for e in run_checks() if e.msg.startswith(f"{name} (")] != [], wrong


def test_each_number_of_the_settings_has_a_range() -> None:
    numbers = {
        name
        for name in dir(project)
        if name.isupper()
        and isinstance(getattr(project, name), int | float)
        and not isinstance(getattr(project, name), bool)
        and not hasattr(django_defaults(), name)
        and not name.startswith("AXES_")  # django-axes checks its own
    }

    assert numbers - set(RANGES) == set()


def django_defaults() -> Any:
    from django.conf import global_settings

    return global_settings


@pytest.mark.parametrize("pair", [(0, 20.0), (2.0, 1.0), (0.5,), 5, (0.5, 301)])
def test_the_relays_two_waits_are_two_that_grow(pair: Any, settings: Any) -> None:
    settings.RELAY_BACKOFF_SECONDS = pair

    assert [e.id for e in run_checks()] == ["events.E007"]


@pytest.mark.parametrize(
    "wrong", [{"card": 4}, {"card": 1441}, {"card": "30"}, {"card": True}, {"cash": 30}, {"": None}]
)
def test_a_way_to_pay_without_a_window_that_works_is_refused(
    wrong: dict[str, Any], settings: Any
) -> None:
    settings.PAYMENT_WINDOW_MINUTES = settings.PAYMENT_WINDOW_MINUTES | wrong

    assert [e.id for e in run_checks()] == ["payments.E001"]


@pytest.mark.parametrize("waits", [(), (0,), (0, 0), (0.0, 0.01, 0.0), (0.01,) * 4])
def test_any_number_of_tries_that_the_checks_accept_is_made(
    waits: tuple[float, ...], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EMAIL_TRIES = len(waits) + 1
    settings.EMAIL_RETRY_WAIT_SECONDS = waits
    settings.EMAIL_TIMEOUT = 5
    tries: list[EmailMessage] = []

    def away(email: EmailMessage) -> int:
        tries.append(email)
        raise ConnectionRefusedError

    monkeypatch.setattr(EmailMessage, "send", away)

    assert run_checks() == []
    with pytest.raises(delivery.EmailDelayed):
        delivery.deliver(EmailMessage())
    assert len(tries) == settings.EMAIL_TRIES
