"""The shop with an email provider that takes less than it is given, or nothing for a while."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orders import catalogue
from orders.checkout import Item, place_order
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.local.deadline import wait_until
from tests.acceptance.conftest import Shop, Stage
from tests.acceptance.processes import ProcessHandle
from tests.integration.orders.mail_server import MailServer, mail_server

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

pytestmark = pytest.mark.django_db(transaction=True)

SetUp = Callable[..., AbstractContextManager[Stage]]


@contextmanager
def shop_with(
    provider: MailServer, set_up: SetUp, client: "SQSClient", folder: Path
) -> Iterator[Shop]:
    """A shop whose worker and relay run, and send their emails to this provider."""
    catalogue.seed()
    with set_up(folder, 1, EMAIL_URL=f"smtp://127.0.0.1:{provider.port}") as stage:
        relay = ProcessHandle(
            [sys.executable, "manage.py", "relay_outbox"],
            name="relay",
            environment=stage.environment,
            folder=folder,
            ready_prompt="",
        )
        try:
            yield Shop(stage.app, client, stage.queues, stage.folder)
        finally:
            relay.teardown()


def buy(count: int) -> None:
    """Check out so many orders; each has one event and one email, its confirmation."""
    for number in range(count):
        place_order(
            items=[Item(sku="CLN-GEL-100", quantity=1)],
            email=f"buyer-{number}@mail.example",
            payment_method="midtrans",
            idempotency_key=f"order-{number}",
        )


def all_done(count: int) -> bool:
    return ProcessedEvent.objects.filter(status="done").count() == count


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("count", [8, pytest.param(200, marks=pytest.mark.slow)])
def test_a_provider_that_throttles_gets_every_email_once_and_nothing_is_a_dead_letter(
    count: int, set_up: SetUp, sqs_client: "SQSClient", tmp_path: Path
) -> None:
    with (
        mail_server(every=0.2) as provider,
        shop_with(provider, set_up, sqs_client, tmp_path) as shop,
    ):
        buy(count)

        # Who is refused several times, by chance, comes last: each refusal doubles its wait.
        wait_until(lambda: all_done(count), seconds=60 + 2 * count, what="all emails", every=0.2)

        shop.wait_for_empty_queue()
        # A row is marked as sent after its message is, which by then may be done.
        wait_until(
            lambda: not OutboxEvent.objects.filter(sent_at=None).exists(),
            seconds=30,
            what="no row to be sent",
        )
        assert shop.in_dlq() == []
        assert Counter(email["Message-ID"] for email in provider.taken).total() == count
        assert len({email["Message-ID"] for email in provider.taken}) == count
        assert provider.tries < 10 * count


@pytest.mark.slow
def test_a_provider_that_was_away_gets_every_email_when_it_is_back(
    set_up: SetUp, sqs_client: "SQSClient", tmp_path: Path
) -> None:
    away = "451 closed for maintenance"
    with (
        mail_server(answers=[away] * 60) as provider,
        shop_with(provider, set_up, sqs_client, tmp_path) as shop,
    ):
        buy(5)
        wait_until(
            lambda: ProcessedEvent.objects.filter(put_offs__gte=2).count() == 5,
            seconds=60,
            what="all emails to be put off, again and again",
        )
        assert shop.in_dlq() == []
        assert provider.taken == []

        provider.answers.clear()

        wait_until(lambda: all_done(5), seconds=60, what="all emails", every=0.1)
        assert len(provider.taken) == 5
        assert shop.in_dlq() == []
