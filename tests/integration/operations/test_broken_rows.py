"""A row that broke the rule for moments, from before the rule or past it, takes no page away."""

from contextlib import suppress
from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connection, models
from django.test import Client
from django.urls import reverse

from orders.models import Order
from payments.models import Payment, PaymentNotification
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.events.schema import parse_event
from tests.integration.operations.conftest import Letters, as_bare, failed
from tests.integration.payments.gateways import (
    an_order,
    consume_all,
    midtrans_posts,
    published,
    xendit_posts,
)
from tests.integration.payments.test_shipping import ship
from tests.unit.payments import midtrans_notifications as midtrans
from tests.unit.payments import xendit_callbacks as xendit

pytestmark = pytest.mark.django_db

APPS = ("orders", "payments", "events")
BROKEN = (
    "0001-01-01 00:00:00+00",
    "9999-12-31 23:59:59+00",
    "infinity",
    "-infinity",
    "0044-03-15 12:00:00+00 BC",
    "20000-01-01 00:00:00+00",
)


def of_our_apps() -> list[type[models.Model]]:
    return [model for app in APPS for model in apps.get_app_config(app).get_models()]


def plant(moment: str) -> None:
    """Write the moment into every time of every row, past all rules of the database."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for model in of_our_apps():
            table = model._meta.db_table
            columns = [
                field.column
                for field in model._meta.concrete_fields
                if isinstance(field, models.DateTimeField)
            ]
            if not columns:
                continue
            cursor.execute(
                "SELECT conname FROM pg_constraint WHERE conrelid = %s::regclass"
                " AND contype IN ('c', 'u')",
                [table],
            )
            for (name,) in cursor.fetchall():
                cursor.execute(f'ALTER TABLE {table} DROP CONSTRAINT IF EXISTS "{name}" CASCADE')
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
            sets = ", ".join(f"{column} = '{moment}'" for column in columns)
            cursor.execute(f"UPDATE {table} SET {sets}")  # noqa: S608 names and values of our own


@pytest.fixture
def root() -> Any:
    return get_user_model().objects.create_superuser("root")


@pytest.fixture
def person(root: Any) -> Client:
    client = Client()
    client.force_login(root)
    return client


@pytest.fixture
def order(letters: Letters, root: Any) -> Order:
    """An order that has been through all: paid, shipped, charged back, held; a failed event."""
    order = an_order()
    ids = {"order_id": str(order.pk)}
    midtrans_posts(midtrans.card("settlement", **ids))
    ship(consume_all(order), root)
    midtrans_posts(midtrans.card("chargeback", **ids))
    midtrans_posts(midtrans.card("settlement", order_id="nobody's", transaction_id="t-2"))
    xendit_posts(xendit.invoice(amount="a lot"))
    consume_all(order)
    event = published(order)[0]
    ProcessedEvent.objects.filter(event_id=event.event_id).delete()
    parsed = failed(parse_event(event.payload))
    letters.put([as_bare(parsed), "no json"])
    order.refresh_from_db()
    return order


@pytest.mark.parametrize("moment", BROKEN)
def test_every_list_page_and_command_is_shown(
    moment: str, order: Order, person: Client, letters: Letters
) -> None:
    payment = Payment.objects.get(order=order)
    notification = PaymentNotification.objects.filter(outcome="unmatched").get()
    event_id = published(order)[0].event_id
    plant(moment)

    pages = [
        reverse("operations:overview"),
        reverse("operations:held"),
        reverse("operations:dead_letters"),
        reverse("operations:receive_goods"),
        reverse("operations:held_payment", args=[payment.pk]),
        reverse("operations:held_order", args=[order.pk]),
        reverse("operations:unmatched", args=[notification.pk]),
        reverse("operations:ship", args=[order.pk]),
        reverse("operations:event", args=[event_id]),
        f"/v1/orders/{order.pk}",
    ]
    for model in of_our_apps():
        if model not in admin.site._registry:
            continue
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        pages.append(reverse(f"{name}_changelist"))
        row = model._default_manager.order_by("pk").values_list("pk", flat=True).first()
        if row is not None:
            pages.append(reverse(f"{name}_change", args=[row]))
    answers = {}
    for page in pages:
        try:
            answers[page] = person.get(page).status_code
        except Exception as error:
            answers[page] = repr(error)[:200]
    bad = {page: what for page, what in answers.items() if what != 200}
    assert bad == {}
    assert len(answers) > 20
    for command in (["status"], ["dlq", "list"], ["event", "show", event_id], ["check_money"]):
        with suppress(SystemExit, CommandError):  # what it says of the rows is their fault
            call_command(*command, stdout=StringIO(), stderr=StringIO())


@pytest.mark.parametrize(
    "document",
    [f'{{"amount_rupiah": {"9" * 5_000}}}', f'{{"a": {"[" * 3_000}{"]" * 3_000}}}'],
    ids=["a number too long", "nesting too deep"],
)
@pytest.mark.parametrize("model", [OutboxEvent, ProcessedEvent])
def test_a_document_that_python_cannot_read_takes_no_page_away(
    model: type[models.Model], document: str, order: Order, person: Client
) -> None:
    table = model._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET payload = %s::jsonb", [document])  # noqa: S608 our own
    row = model._default_manager.latest("pk")

    name = f"admin:events_{model._meta.model_name}"
    for page in (
        reverse(f"{name}_changelist"),
        reverse(f"{name}_change", args=[row.pk]),
        reverse("operations:event", args=[row.event_id]),  # type: ignore[attr-defined]
    ):
        assert person.get(page).status_code == 200
