"""Strict reading of a gateway's JSON."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments.exceptions import Malformed
from payments.providers.base import MAX_AMOUNT
from payments.providers.document import amount_number, amount_text, kept_fields, load_object


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (b"", "must be UTF-8 JSON"),
        (b"{", "must be UTF-8 JSON"),
        (b"\xff{}", "must be UTF-8 JSON"),
        (b"[]", "must be a JSON object"),
        (b'"text"', "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b'{"amount": NaN}', "must not hold NaN"),
        (b'{"amount": -Infinity}', "must not hold -Infinity"),
        (b'{"amount": 1, "amount": 2}', "must not name a key twice"),
        (b'{"data": {"a": 1, "a": 1}}', "must not name a key twice"),
        (b'{"a": ' * 30_000, "is nested too deeply"),
        (b'{"amount": ' + b"9" * 5000 + b"}", "must be UTF-8 JSON"),
        (b'{"amount": 1e99999999999999999999}', "must be UTF-8 JSON"),
    ],
)
def test_what_is_not_a_document(body: bytes, rule: str) -> None:
    with pytest.raises(Malformed) as refusal:
        load_object(body)

    assert str(refusal.value) == f"document: {rule}"


def test_numbers_with_a_point_keep_every_digit() -> None:
    assert load_object(b'{"amount": 10000.10}') == {"amount": Decimal("10000.10")}


@pytest.mark.parametrize(
    ("body", "amount"),
    [
        (b'{"amount": 150000}', "150000"),
        (b'{"amount": 150000.00}', "150000.00"),
        (b'{"amount": 1.5e5}', "150000"),
        (b'{"amount": 0}', "0"),
        (b'{"amount": 10000.25}', "10000.25"),
    ],
)
def test_amounts_in_json_numbers(body: bytes, amount: str) -> None:
    assert amount_number(load_object(body), "amount") == Decimal(amount)


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (b"{}", "must be a JSON number"),
        (b'{"amount": null}', "must be a JSON number"),
        (b'{"amount": true}', "must be a JSON number"),
        (b'{"amount": "150000"}', "must be a JSON number"),
        (b'{"amount": -1}', f"must be 0 to {MAX_AMOUNT:f}"),
        (b'{"amount": 1e999999}', f"must be 0 to {MAX_AMOUNT:f}"),
        (b'{"amount": 1000000000000001}', f"must be 0 to {MAX_AMOUNT:f}"),
        (b'{"amount": 1e-999999}', "must have at most 4 decimal places"),
        (b'{"amount": 0.00001}', "must have at most 4 decimal places"),
    ],
)
def test_what_is_no_amount_in_a_number(body: bytes, rule: str) -> None:
    with pytest.raises(Malformed) as refusal:
        amount_number(load_object(body), "amount")

    assert str(refusal.value) == f"amount: {rule}"


@pytest.mark.parametrize("amount", ["150000", "150000.00", "150000.5", "0.00"])
def test_amounts_in_strings(amount: str) -> None:
    assert amount_text({"gross_amount": amount}, "gross_amount") == Decimal(amount)


@pytest.mark.parametrize(
    "amount",
    [
        "150,000",
        "-1",
        "+1",
        "1e5",
        " 1",
        "1 ",
        "1\n",
        "1_000",
        "NaN",
        ".5",
        "5.",
        "\u0661\u0665\u0660",
        "9" * 17,
    ],
)
def test_what_is_no_amount_in_a_string(amount: str) -> None:
    with pytest.raises(Malformed):
        amount_text({"gross_amount": amount}, "gross_amount")


@settings(deadline=None)
@given(st.decimals(min_value=0, max_value=MAX_AMOUNT, places=2))
def test_every_amount_of_a_gateway_is_read_exactly(amount: Decimal) -> None:
    assert amount_text({"gross_amount": f"{amount:f}"}, "gross_amount") == amount


def test_only_plain_storable_fields_are_kept() -> None:
    document = {
        "status": "PAID",
        "amount": Decimal("1.50"),
        "count": 3,
        "is_high": False,
        "nested": {"card": "4811"},
        "nothing": None,
        "nul": "a\x00b",
        "surrogate": "\ud800",
        "huge": 10**400,
        "long": "x" * 300,
        "secret": "not named",
    }
    names = frozenset(document) - {"secret"}

    assert kept_fields(document, names) == {
        "status": "PAID",
        "amount": "1.50",
        "count": 3,
        "is_high": False,
        "long": "x" * 255,
    }
