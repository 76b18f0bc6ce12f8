"""A thousand dead letters on a page: grouped, searched, sorted, a page at a time."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from skincare.events.models import OutboxEvent
from skincare.events.schema import parse_event
from skincare.operations.dead_letter_actions import look_at_all
from skincare.operations.dead_letter_groups import groups_of
from tests.integration.events.event_documents import new_event
from tests.integration.operations.conftest import Letters, as_bare, done, failed
from tests.integration.operations.test_dlq_command import dlq
from tests.integration.payments.gateways import an_order, published

pytestmark = pytest.mark.django_db

PAGE = "operations:dead_letters"


@pytest.fixture
def operator() -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("ayu"))
    return client


def look(operator: Client, **asked: Any) -> Any:
    response = operator.get(reverse(PAGE), asked)
    assert response.status_code == 200
    return response.context


def three_kinds(letters: Letters) -> None:
    """Three time-outs of one kind, two refusals of another, and one that is no event."""
    for number in range(3):
        error = f"TimeoutError: order {number} of {new_event().event_id} after {number}.5 s"
        letters.put([as_bare(failed(new_event(), error))])
    for _ in range(2):
        letters.put([as_bare(failed(new_event(event_type="payment.failed"), "ValueError: no"))])
    letters.put(["poison"])


def test_letters_with_one_error_and_type_are_one_group(letters: Letters) -> None:
    three_kinds(letters)

    groups = groups_of(look_at_all(limit=100))

    assert [(one.count, one.event_type, one.error) for one in groups[:2]] == [
        (3, "payment.processed", "TimeoutError: order # of … after # s"),
        (2, "payment.failed", "ValueError: no"),
    ]
    assert (groups[2].count, groups[2].event_type) == (1, "raw")
    assert all(one.oldest <= one.newest for one in groups)


def test_a_group_is_opened_and_put_back_as_a_whole(letters: Letters, operator: Client) -> None:
    three_kinds(letters)
    [timeouts] = [one for one in look(operator)["groups"] if one.count == 3]

    opened = look(operator, group=timeouts.key)
    assert len(opened["dead_letters"]) == 3
    assert opened["group"].error == timeouts.error
    form = {"action": "redrive", "scope": "filter", "group": timeouts.key}
    planned = operator.post(reverse("operations:dead_letters_act"), form)
    assert ("group", timeouts.key) in planned.context["kept"]
    operator.post(reverse("operations:dead_letters_act"), {**form, "confirmed": "yes"})

    assert OutboxEvent.objects.count() == 3
    assert letters.visible() == 3


def test_a_page_holds_fifty_and_the_filter_is_kept_from_page_to_page(
    letters: Letters, operator: Client
) -> None:
    letters.put(["poison"] * 30 + [as_bare(new_event()) for _ in range(60)])

    first, second = look(operator), look(operator, page=2)
    assert [len(one["dead_letters"]) for one in (first, second)] == [50, 40]
    assert (first["matched"], first["looked_at"]) == (90, 90)
    filtered = operator.get(reverse(PAGE), {"state": "never-seen"})
    assert filtered.context["matched"] == 60
    assert "?state=never-seen&amp;page=2" in filtered.content.decode()


@pytest.mark.parametrize("order", ["sent", "tried", "tries", "type", "error", "nonsense"])
def test_the_list_is_sorted_both_ways(letters: Letters, operator: Client, order: str) -> None:
    three_kinds(letters)

    up = [one.message_id for one in look(operator, sort=order)["dead_letters"]]
    down = [one.message_id for one in look(operator, sort=f"-{order}")["dead_letters"]]

    assert sorted(up) == sorted(down)
    assert order == "tries" or up == down[::-1]


def test_a_letter_is_found_by_whatever_id_a_person_has(letters: Letters, operator: Client) -> None:
    order = an_order("sandbox")
    [row] = published(order)
    letters.put([as_bare(failed(parse_event(row.payload), "TimeoutError: mail")), "poison"])
    letters.put([as_bare(done(new_event()))])
    [letter] = look(operator, q="TimeoutError")["dead_letters"]

    number = letter.event.order_id and order.number
    for wanted in (
        number,
        number.lower(),
        f" {number} ",
        letter.order_id,
        letter.order_id[:8],
        letter.event_id,
        letter.message_id,
        letter.message_id[:8].upper(),
    ):
        found = look(operator, q=wanted)["dead_letters"]
        assert [one.message_id for one in found] == [letter.message_id], wanted
    assert look(operator, q="SKN-20200101-ZZZZZZ")["dead_letters"] == []
    assert look(operator)["numbers"] == {str(order.pk): number}


def test_the_commands_take_an_orders_number_too(letters: Letters) -> None:
    order = an_order("sandbox")
    [row] = published(order)
    letters.put([as_bare(failed(parse_event(row.payload), "TimeoutError: mail")), "poison"])

    code, printed = dlq("list", "--order", order.number)
    assert (code, len(printed.splitlines())) == (0, 1)
    assert dlq("list", "--order", "SKN-20200101-ZZZZZZ")[0] == 1
    code, printed = dlq("groups")
    assert code == 0
    assert len(printed.splitlines()) == 2
    assert "TimeoutError: mail" in printed
