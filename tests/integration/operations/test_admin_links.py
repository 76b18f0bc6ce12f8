"""The plain admin leads to the operator's pages, and retries what its list selects."""

from typing import Any
from uuid import UUID

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from orders.models import Order
from payments.models import Acceptance, Payment
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.operations.groups import FINANCE, OPERATOR
from tests.integration.events.event_documents import new_event
from tests.integration.operations.conftest import claimed, done, failed

pytestmark = pytest.mark.django_db

EVENTS = "admin:events_processedevent_changelist"


def log_in(group: str, name: str = "sari") -> Client:
    user = get_user_model().objects.create_user(name, is_staff=True)
    user.groups.add(Group.objects.get(name=group))
    client = Client()
    client.force_login(user)
    return client


def retry(client: Client, *events: Any) -> Any:
    ids = ProcessedEvent.objects.filter(event_id__in=[event.event_id for event in events])
    chosen = {"action": "retry", "_selected_action": list(ids.values_list("pk", flat=True))}
    return client.post(reverse(EVENTS), chosen, follow=True)


def test_events_lead_to_their_page() -> None:
    event = failed(new_event())

    page = log_in(OPERATOR).get(reverse(EVENTS)).content.decode()

    assert reverse("operations:event", args=[event.event_id]) in page
    assert "ValueError: no such payment" in page


def test_retry_puts_failed_events_back_and_leaves_the_others() -> None:
    first, second = failed(new_event()), failed(new_event())
    finished, held = done(new_event()), new_event()
    claimed(held)

    page = retry(log_in(OPERATOR), first, second, finished, held).content.decode()

    resent = set(OutboxEvent.objects.values_list("event_id", flat=True))
    assert resent == {first.event_id, second.event_id}
    assert LogEntry.objects.filter(user__username="sari").count() == 2
    assert "Put back on the queue: 2." in page
    assert "Left alone: 2." in page
    assert f"{finished.event_id} is finished" in page
    assert f"a worker holds {held.event_id}" in page


def test_retry_needs_its_permission() -> None:
    event = failed(new_event())
    finance = log_in(FINANCE)

    assert "Retry the selected events" not in finance.get(reverse(EVENTS)).content.decode()
    retry(finance, event)

    assert OutboxEvent.objects.count() == 0
    assert LogEntry.objects.count() == 0


def test_the_admin_speaks_english_and_writes_seconds() -> None:
    failed(new_event())

    page = log_in(OPERATOR).get(reverse(EVENTS)).content.decode()

    claimed_at = ProcessedEvent.objects.get().claimed_at
    assert "Select processed event to view" in page
    assert f"{claimed_at:%M:%S}" in page


@pytest.fixture
def held_order() -> Order:
    return Order.objects.create(
        number="SKN-HELD",
        email="buyer@mail.example",
        payment_method="midtrans",
        total_rupiah=150_000,
        held_reason="paid after it had expired",
    )


@pytest.fixture
def held_payment(held_order: Order) -> Payment:
    return Payment.objects.create(
        order=held_order,
        provider="midtrans",
        transaction_id="t-1",
        amount_rupiah=150_000,
        held_reason="amount 1 rupiah instead of 150000",
    )


@pytest.mark.parametrize(
    ("changelist", "page"),
    [
        ("admin:orders_order_changelist", "operations:held_order"),
        ("admin:payments_payment_changelist", "operations:held_payment"),
    ],
)
def test_what_is_held_leads_to_its_decision(
    changelist: str, page: str, held_payment: Payment
) -> None:
    ids: dict[str, UUID] = {
        "operations:held_order": held_payment.order_id,
        "operations:held_payment": held_payment.pk,
    }

    shown = log_in(FINANCE).get(reverse(changelist)).content.decode()

    assert reverse(page, args=[ids[page]]) in shown


def test_acceptances_can_only_be_read(held_payment: Payment) -> None:
    finance = log_in(FINANCE, name="dewi")
    asked = Acceptance.objects.create(
        payment=held_payment,
        held_reason=held_payment.held_reason,
        reason="the bank rounds",
        requested_by=get_user_model().objects.get(username="dewi"),
    )
    page = reverse("admin:payments_acceptance_change", args=[asked.pk])

    assert "the bank rounds" in finance.get(page).content.decode()
    assert finance.post(page, {"reason": "another"}).status_code == 403
    asked.refresh_from_db()
    assert asked.reason == "the bank rounds"


def test_the_audit_log_can_only_be_read_and_only_with_permission() -> None:
    operator = log_in(OPERATOR)
    event = failed(new_event())
    retry(operator, event)
    entry = LogEntry.objects.get()

    page = operator.get(reverse("admin:admin_logentry_changelist")).content.decode()
    assert "put back on the queue" in page
    assert event.event_id in page
    assert operator.post(reverse("admin:admin_logentry_delete", args=[entry.pk])).status_code == 403
    staff = Client()
    staff.force_login(get_user_model().objects.create_user("joko", is_staff=True))
    assert staff.get(reverse("admin:admin_logentry_changelist")).status_code == 403
