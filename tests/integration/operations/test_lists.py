"""The admin's lists: what is held stands out, money reads alike, any id finds, and none is slow."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.filters import AllValuesFieldListFilter
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from orders.models import Order, OrderLine
from payments.models import Payment
from skincare.events.admin_base import BoundedPaginator, ReadOnlyAdmin
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.events.schema import parse_event
from skincare.operations.charts import events_plot, waits_plot
from skincare.operations.money_today import money_today
from skincare.operations.stats import Bucket
from tests.integration.operations.conftest import failed
from tests.integration.payments.gateways import an_order, published

pytestmark = pytest.mark.django_db

LISTS = [
    *("orders_order", "orders_orderline", "orders_ordertransition", "orders_stockmovement"),
    *("orders_checkoutrequest", "payments_payment", "payments_paymentnotification"),
    *("payments_paymentrefund", "events_outboxevent", "events_processedevent"),
]


@pytest.fixture
def operator() -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("ayu"))
    return client


def look(operator: Client, name: str, **query: Any) -> Any:
    return operator.get(reverse(f"admin:{name}_changelist"), query)


def test_what_is_held_stands_out_and_nothing_else_does(operator: Client) -> None:
    an_order("sandbox")
    held = an_order("sandbox")
    Order.objects.filter(pk=held.pk).update(held_reason="the amount does not fit")
    Payment.objects.filter(order=held).update(held_reason="the amount does not fit")

    for name in ("orders_order", "payments_payment"):
        page = look(operator, name).content.decode()
        assert page.count('<b class="ops-held">held</b>') == 1
        assert "icon-yes" not in page
        assert "icon-no" not in page


def test_money_reads_alike_everywhere(operator: Client) -> None:
    order = an_order("sandbox")
    Order.objects.filter(pk=order.pk).update(total_rupiah=150_000)
    OrderLine.objects.filter(order=order).update(unit_price_rupiah=150_000)
    Payment.objects.filter(order=order).update(amount_rupiah=150_000)

    for name in ("orders_order", "payments_payment", "orders_orderline"):
        page = look(operator, name).content.decode()
        assert '<span class="ops-money">Rp150.000</span>' in page, name
        assert ">150000<" not in page, name


@pytest.mark.parametrize("name", LISTS)
def test_every_list_takes_an_orders_number_and_any_text(operator: Client, name: str) -> None:
    order = an_order("sandbox")
    [row] = published(order)
    failed(parse_event(row.payload))

    empty = ("payments_paymentrefund", "orders_checkoutrequest", "orders_ordertransition")
    if name not in empty:
        for wanted in (order.number, order.number.lower(), f" {order.pk} "):
            found = look(operator, name, q=wanted).context["cl"].result_count
            assert found >= 1, (name, wanted)
    for text in ("nothing", "%", "é" * 300, "1" * 40):
        assert look(operator, name, q=text).context["cl"].result_count == 0, text


@pytest.mark.parametrize("name", LISTS)
def test_no_list_asks_a_table_for_all_its_values_or_for_upper_case(
    operator: Client, name: str
) -> None:
    order = an_order("sandbox")
    with CaptureQueriesContext(
        connection,
    ) as asked:
        look(operator, name)
        look(operator, name, q=order.number)
        look(operator, name, q="no-such-thing")

    for query in asked.captured_queries:
        assert "DISTINCT" not in query["sql"], query["sql"]
        assert "UPPER(" not in query["sql"], query["sql"]


def test_a_count_ends_where_nobody_turns_pages() -> None:
    for _ in range(3):
        an_order("sandbox")
    paginator = BoundedPaginator(Order.objects.order_by("-created_at"), 2)

    with CaptureQueriesContext(connection) as asked:
        assert paginator.count == 3

    assert f"LIMIT {BoundedPaginator.MOST}" in asked.captured_queries[0]["sql"]
    for model, of_model in admin.site._registry.items():
        if isinstance(of_model, ReadOnlyAdmin):
            assert of_model.paginator is BoundedPaginator, model
            assert of_model.show_full_result_count is False, model


def test_a_count_that_was_not_taken_to_its_end_says_so(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoundedPaginator, "MOST", 2)
    an_order("sandbox")
    assert "1 order" in seen(look(operator, "orders_order"))

    for _ in range(2):
        an_order("sandbox")

    # The search that any list offers counts too.
    for query in ({}, {"q": Order.objects.latest("created_at").number}):
        page = seen(look(operator, "orders_order", **query))
        assert ("2 or more" in page) is (not query), page


def seen(answer: Any) -> str:
    """The words of a page, without its tags and line breaks."""
    return " ".join(re.sub(r"<[^>]*>", " ", answer.content.decode()).split())


@pytest.mark.parametrize("term", ["put back", "SKN-20261111-7F3K2Q", "7", "a'b%\\"])
def test_every_list_can_be_searched_for_anything(operator: Client, term: str) -> None:
    for model, of_model in admin.site._registry.items():
        if of_model.search_fields:
            answer = look(operator, model._meta.label_lower.replace(".", "_"), q=term)
            assert answer.status_code == 200, model


def test_the_audit_log_is_searched_by_a_word_of_its_reason(operator: Client) -> None:
    [row] = published(an_order("sandbox"))
    event = failed(parse_event(row.payload))
    operator.post(reverse("operations:replay", args=[event.event_id]))

    assert event.event_id in seen(look(operator, "admin_logentry", q="put back"))
    assert event.event_id not in seen(look(operator, "admin_logentry", q="skipped"))


def test_an_id_is_short_with_the_whole_of_it_to_copy(operator: Client) -> None:
    order = an_order("sandbox")
    payment = order.payments.get()

    page = look(operator, "payments_payment").content.decode()

    assert f'data-text="{payment.pk}"' in page
    assert f'title="{payment.pk}">{str(payment.pk)[:9]}…</a>' in page


def test_the_next_try_of_what_waits_is_told(operator: Client) -> None:
    [row] = published(an_order("sandbox"))
    at = timezone.now() + timedelta(hours=3)
    OutboxEvent.objects.filter(pk=row.pk).update(next_attempt_at=at, sent_at=None)
    ProcessedEvent.objects.update(put_off_until=at, status="effects_done", finished_at=None)
    written = timezone.localtime(at).strftime("%H:%M")

    assert written in look(operator, "events_outboxevent").content.decode()


def test_the_timeline_has_milliseconds_and_words_instead_of_json(operator: Client) -> None:
    [row] = published(an_order("sandbox"))
    event = failed(parse_event(row.payload))
    replay = reverse("operations:replay", args=[event.event_id])
    operator.post(replay)
    assert LogEntry.objects.count() == 1

    page = operator.get(reverse("operations:event", args=[event.event_id])).content.decode()

    times = re.findall(r'<td class="ops-time">([^<]+)</td>', page)
    assert len(times) >= 4
    for time in times:
        assert re.fullmatch(r"\d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d\.\d{3}", time)
    assert "Jakarta time" in page
    assert "{&quot;by&quot;" not in page
    assert "by hand: ayu" in page


def test_the_plots_have_a_legend_and_whole_numbers() -> None:
    start = timezone.now()
    buckets = [Bucket(start, 60.0, done=1, failed=2, waited=7.25), Bucket(start, 1440.0, 1, 0)]

    drawn = events_plot(buckets, title="Events per minute") + waits_plot(buckets, title="Waits")

    for name in ("done", "failed", "longest wait for a worker"):
        assert f"</i>{name}</span>" in drawn
    assert re.findall(r'text-anchor="end">([\d.]+)</text>', drawn) == ["3", "0", "8", "0"]


def test_the_money_of_the_day_is_that_of_today_in_jakarta() -> None:
    today, yesterday, held = (an_order("sandbox") for _ in range(3))
    Payment.objects.filter(order=yesterday).update(paid_at=timezone.now() - timedelta(days=1))
    Payment.objects.filter(order=held).update(
        held_reason="x", paid_at=timezone.now() - timedelta(days=2)
    )

    money = money_today()

    assert (money.paid.count, money.paid.rupiah) == (1, today.total_rupiah)
    assert (money.held.count, money.held.rupiah) == (1, held.total_rupiah)
    assert (money.refunded.count, money.refunded.rupiah) == (0, 0)


def test_no_filter_reads_the_whole_table_for_its_choices() -> None:
    plain = ("BooleanField", "DateTimeField", "ManyToManyField")
    for model, of_model in admin.site._registry.items():
        if not isinstance(of_model, ReadOnlyAdmin):
            continue  # of libraries, and tables that stay small
        for one in of_model.list_filter:
            if isinstance(one, str):
                field = model._meta.get_field(one)
                assert field.choices or field.get_internal_type() in plain, (model, one)
            assert one is not AllValuesFieldListFilter
