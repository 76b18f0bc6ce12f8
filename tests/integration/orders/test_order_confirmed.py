"""The event `order.confirmed`, from the task to the buyer's inbox."""

from uuid import uuid4

import pytest
from celery import current_app
from django.core.mail import EmailMultiAlternatives

from orders.emails import message_id
from orders.models import OrderTransition
from orders.tasks import order_confirmed
from skincare.events.consumer import process
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.sqs.outcome import Terminal
from tests.integration.orders.shop import a_product, an_order, numbers

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_event_of_a_checkout_confirms_the_order_once(
    mailoutbox: list[EmailMultiAlternatives],
) -> None:
    serum = a_product(stocked=10)
    order = an_order((serum, 2))
    document = OutboxEvent.objects.get().payload

    for receive_count in (1, 2):
        process(document, receive_count=receive_count, worker="worker-1")

    (email,) = mailoutbox
    assert email.subject == f"Pesanan {order.number} kami terima"
    assert email.extra_headers["Message-ID"] == message_id(
        kind="order_confirmation", event_id=document["event_id"]
    )
    assert ProcessedEvent.objects.get().status == "done"
    order.refresh_from_db()
    assert order.status == "pending", "a confirmation is not a payment"
    assert numbers(serum) == (10, 2)
    assert not OrderTransition.objects.exists()


def test_an_event_of_an_order_that_we_do_not_have_is_terminal(
    mailoutbox: list[EmailMultiAlternatives],
) -> None:
    an_order((a_product(), 1))
    document = OutboxEvent.objects.get().payload | {
        "event_id": "foreign-1",
        "order_id": str(uuid4()),
    }

    with pytest.raises(Terminal):
        process(document, receive_count=1, worker="worker-1")

    assert mailoutbox == []
    claimed = ProcessedEvent.objects.get()
    assert claimed.status == "failed"
    assert claimed.last_error == f"OrderNotFound: there is no order {document['order_id']}"


def test_the_task_hands_its_event_to_the_consumer(
    mailoutbox: list[EmailMultiAlternatives],
) -> None:
    an_order((a_product(), 1))
    document = OutboxEvent.objects.get().payload
    assert current_app.tasks["orders.order_confirmed"].name == order_confirmed.name

    order_confirmed.push_request(hostname="worker@host", receive_count=3, resumes=None)
    try:
        order_confirmed.run(document)
    finally:
        order_confirmed.pop_request()

    claimed = ProcessedEvent.objects.get()
    assert (claimed.status, claimed.worker, claimed.receive_count) == ("done", "worker@host", 3)
    assert len(mailoutbox) == 1
