"""How amounts, order numbers and refusals read."""

import re
from datetime import UTC, datetime

import pytest
from django.test import RequestFactory

from orders import exceptions
from orders.money import rupiah
from orders.order_numbers import ALPHABET, new_order_number
from orders.problems import CONTENT_TYPE, Problem, problem_response


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "Rp0"),
        (999, "Rp999"),
        (1_000, "Rp1.000"),
        (150_000, "Rp150.000"),
        (12_345_678, "Rp12.345.678"),
        (-2_500, "-Rp2.500"),
    ],
)
def test_rupiah(amount: int, text: str) -> None:
    assert rupiah(amount) == text


def test_an_order_number_has_the_day_in_jakarta() -> None:
    evening_in_london = datetime(2026, 11, 11, 17, 30, tzinfo=UTC)

    assert new_order_number(evening_in_london).startswith("SKN-20261112-")


def test_an_order_number_has_no_character_that_is_misread() -> None:
    assert not set("0O1ILUV") & set(ALPHABET)
    for _ in range(200):
        number = new_order_number(datetime.now(UTC))
        assert re.fullmatch(rf"SKN-\d{{8}}-[{ALPHABET}]{{6}}", number)


def all_refusals() -> list[type[exceptions.CheckoutRefused]]:
    return exceptions.CheckoutRefused.__subclasses__()


@pytest.mark.parametrize("refusal", all_refusals())
def test_a_refusal_is_one_sentence(refusal: type[exceptions.CheckoutRefused]) -> None:
    assert refusal.__doc__
    assert re.fullmatch(r"[A-Z][^\n]+\.", refusal.__doc__)


def test_a_problem_is_a_problem_document() -> None:
    problem = Problem(
        status=409,
        type="not-enough-stock",
        title="There is not enough stock.",
        detail="items[0].quantity: must be at most 2, that is all we have",
        errors=[{"field": "items[0].quantity", "rule": "must be at most 2, that is all we have"}],
    )

    assert problem.document() == {
        "type": "urn:problem-type:skincare:not-enough-stock",
        "title": "There is not enough stock.",
        "status": 409,
        "detail": "items[0].quantity: must be at most 2, that is all we have",
        "errors": [
            {"field": "items[0].quantity", "rule": "must be at most 2, that is all we have"}
        ],
    }


def test_a_problem_leaves_out_what_it_does_not_have() -> None:
    problem = Problem(status=404, type="about:blank", title="Not Found")

    assert problem.document() == {"type": "about:blank", "title": "Not Found", "status": 404}


def test_a_problem_is_answered_with_its_status_and_media_type(rf: RequestFactory) -> None:
    request = rf.get("/")
    response = problem_response(request, Problem(status=409, type="busy", title="Busy."))

    assert response.status_code == 409
    assert response["Content-Type"] == CONTENT_TYPE == "application/problem+json"
