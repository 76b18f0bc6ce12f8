"""The forms of the operator's pages: what may be in their fields at all.

What the words mean is decided by the services; here nothing is too long, and nothing holds a NUL,
which PostgreSQL does not take.
"""

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.http import QueryDict

#: Characters of a reason, which the audit log keeps.
LONGEST_REASON: Final = 1_000
#: Messages that one form names, as its page shows them.
MOST_MESSAGES: Final = 1_000


class FormRefused(Exception):
    """The form cannot be read. The message names its fields and what is wrong with each."""


def read(form: type[forms.Form], fields: QueryDict) -> Mapping[str, Any]:
    """Return the values of a form that was sent, "" for what is missing. Raises `FormRefused`."""
    filled = form(fields)
    if not filled.is_valid():
        wrong = (f"{name}: {' '.join(map(str, errors))}" for name, errors in filled.errors.items())
        raise FormRefused(" ".join(wrong))
    return filled.cleaned_data


def _text(longest: int) -> forms.CharField:
    return forms.CharField(required=False, max_length=longest)


class _Texts(forms.Field):
    """All values of a field that is there many times."""

    widget = forms.MultipleHiddenInput

    def clean(self, value: Any) -> list[str]:
        if len(value or ()) > MOST_MESSAGES:
            raise forms.ValidationError(f"At most {MOST_MESSAGES} can be named.")
        one = _text(128)
        return [one.clean(text) for text in value or ()]


class ActionForm(forms.Form):
    """Which of a page's buttons was pressed."""

    action = _text(16)


class EventForm(forms.Form):
    """Replay an event, or skip it."""

    force = _text(8)
    reason = _text(LONGEST_REASON)


class HoldForm(forms.Form):
    """Decide on a hold."""

    action = _text(16)
    hold = _text(64)
    decision = _text(16)
    reason = _text(LONGEST_REASON)


class NotificationForm(forms.Form):
    """Match a notification, read it again, or dismiss it."""

    action = _text(16)
    order = _text(64)
    reason = _text(LONGEST_REASON)


class ShippingForm(forms.Form):
    """Ship an order, or take its goods back."""

    action = _text(16)
    shipped_at = _text(40)
    tracking_number = _text(64)
    reason = _text(LONGEST_REASON)


class DeliveryForm(forms.Form):
    """Book goods that came in."""

    delivery = _text(64)
    sku = _text(40)
    pieces = _text(9)


class DeadLettersForm(forms.Form):
    """Which dead letters are meant, how they are shown, and what is to be done with them."""

    type = _text(64)
    state = _text(32)
    since = _text(8)
    group = _text(1_000)
    error = _text(1_000)
    q = _text(1_000)
    scope = _text(16)
    message = _Texts(required=False)
    sort = _text(16)
    page = _text(9)
    action = _text(16)
    confirmed = _text(8)
    force = _text(8)
    reason = _text(LONGEST_REASON)
