"""Someone is called at night: find what is stuck, read why, put it right, and know that it is."""

import pytest
from django.contrib.admin.models import LogEntry
from django.db import transaction
from django.urls import reverse
from pytest_celery import CeleryTestSetup

from orders.models import Order, StockMovement
from orders.status import OrderStatus
from skincare.local.deadline import wait_until
from skincare.operations.groups import OPERATOR
from skincare.sqs.queues import depth
from tests.acceptance.browser.conftest import SignIn
from tests.acceptance.browser.person import Person
from tests.acceptance.conftest import PaidOrder, Shop

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(240),
]


def dead_payment(shop: Shop) -> PaidOrder:
    """Given: a payment whose event was given up after five receives. The API has sent it."""
    with transaction.atomic():  # the relay sees the event only when its failures are planned
        paid = shop.paid_order()
        shop.plan(paid.event, "effects", *["raise"] * 9)
    wait_until(
        lambda: depth(shop.client, shop.queues.dlq_url).visible == 1,
        seconds=60,
        what="the event to be given up",
        every=0.2,
    )
    return paid


def fix_the_cause(shop: Shop) -> None:
    for plan in (shop.folder / "faults").iterdir():
        plan.unlink()


def wait_until_page_says(person: Person, path: str, text: str) -> str:
    """Open the page again and again until it says so; return what it says."""

    def says_so() -> bool:
        person.open(path)
        return text in person.page()

    wait_until(says_so, seconds=60, what=f"{path} to say {text!r}", every=0.2)
    return person.page()


def test_an_operator_finds_reads_redrives_and_sees_it_done(
    celery_setup: CeleryTestSetup, shop: Shop, sign_in: SignIn
) -> None:
    paid = dead_payment(shop)
    event_id = paid.event["event_id"]
    sari = sign_in("sari", OPERATOR)

    sari.follow("OPERATIONS")
    overview = sari.page()
    assert "1 message in acceptance-" in overview
    assert "1 event failed at the last try." in overview
    assert "InjectedError: effects" in overview

    sari.follow(event_id)
    history = sari.page()
    assert "failed after 5 tries" in history
    assert "InjectedError: effects" in history

    fix_the_cause(shop)
    sari.follow("DEAD LETTERS")
    sari.type("q", "injectederror")
    sari.press("Filter")
    assert "failed 5 times: InjectedError: effects" in sari.page()
    sari.tick("message")
    sari.press("Put back …")
    assert "1 dead letter matches. Nothing is done yet" in sari.page()
    assert LogEntry.objects.count() == 0
    sari.press("Put back")
    assert "1 redriven. It is in the audit log." in sari.page()
    assert "No dead letter." in sari.page()

    done = wait_until_page_says(sari, reverse("operations:event", args=[event_id]), "Status\ndone")
    assert "by hand: sari put back on the queue" in done
    assert "effects done" in done
    assert Order.objects.get(pk=paid.placed.order_id).status == OrderStatus.PAID
    assert StockMovement.objects.filter(event_id=event_id).count() == 1
    assert len(shop.emails()) == 2  # the order's confirmation and the receipt
    sari.open(reverse("operations:overview"))
    assert "Nothing is stuck." in sari.page()

    sari.open(f"{reverse('admin:admin_logentry_changelist')}?q=put+back")
    audit = sari.page()
    assert "put back on the queue" in audit
    assert f"payment.processed {event_id}" in audit
    assert [entry.user.get_username() for entry in LogEntry.objects.all()] == ["sari"]


def test_a_failed_event_is_retried_from_the_list_of_events(
    celery_setup: CeleryTestSetup, shop: Shop, sign_in: SignIn
) -> None:
    paid = dead_payment(shop)
    event_id = paid.event["event_id"]
    fix_the_cause(shop)
    sari = sign_in("sari", OPERATOR)

    sari.open(f"{reverse('admin:events_processedevent_changelist')}?status__exact=failed")
    sari.tick("_selected_action")
    sari.choose("action", "Retry the selected events")
    sari.press("Go")

    assert "Put back on the queue: 1." in sari.page()
    wait_until_page_says(sari, reverse("operations:event", args=[event_id]), "Status\ndone")
    assert [entry.user.get_username() for entry in LogEntry.objects.all()] == ["sari"]
    assert len(shop.emails()) == 2  # the order's confirmation and the receipt


def test_a_user_without_permission_sees_none_of_it(
    celery_setup: CeleryTestSetup, shop: Shop, sign_in: SignIn
) -> None:
    paid = dead_payment(shop)
    event_id = paid.event["event_id"]
    nobody = sign_in("joko")

    assert not [link for link in nobody.links() if "/operations/" in link]
    for path in (
        reverse("operations:overview"),
        reverse("operations:dead_letters"),
        reverse("operations:event", args=[event_id]),
        reverse("operations:held"),
        reverse("admin:events_processedevent_changelist"),
        reverse("admin:admin_logentry_changelist"),
    ):
        nobody.open(path)
        assert "403 Forbidden" in nobody.page(), path
        assert event_id not in nobody.page()
        assert "InjectedError" not in nobody.page()
