"""Every rule of the event contract, with the text of its refusal."""

import json
import string
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skincare.events.exceptions import InvalidEvent
from skincare.events.moments import EARLIEST, LATEST
from skincare.events.schema import (
    IDENTITY_FIELDS,
    Event,
    is_same_event,
    new_event_id,
    parse_event,
    payload_hash,
)

VALID = {
    "event_id": "9b1d6a56-5d0b-5a3b-8d86-0a54cf4fda10",
    "event_type": "payment.processed",
    "order_id": "0c9d7be5-6f2d-4f39-93e5-9a0e6a2b9a11",
    "payment_id": "5a7b7f0e-6b0f-4f1c-9a55-8a2f1a0f8c3d",
    "user_id": "guest",
    "amount_rupiah": 150000,
    "created_at": "2026-11-11T00:00:00+07:00",
}
MISSING = object()
NESTED: list[object] = []
for _ in range(20_000):
    NESTED = [NESTED]
UUID_RULE = "must be the UUID of an order, as 8-4-4-4-12 hexadecimal digits"
TIME_RULE = "must be an RFC 3339 time with an offset, like 2026-11-11T00:00:00+07:00"
ID_RULE = "must be 1 to 128 characters out of A-Z a-z 0-9 . _ : -"
LETTER_RULE = "must have at least one letter or digit"
OFFSET_RULE = "must have an offset of at most 15:59"
YEAR_RULE = "must be between the years 2000 and 2100"
INTEGER_RULE = "must be a JSON integer, not text, a decimal, an exponent or a boolean"
RANGE_RULE = "must be 0 to 9223372036854775807 rupiah"
STRING_RULE = "must be a JSON string"
TEXT_RULE = "must not hold a NUL or a lone surrogate"


def with_field(field: str, value: object) -> dict[str, object]:
    document: dict[str, object] = {**VALID, field: value}
    if value is MISSING:
        del document[field]
    return document


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        *[(field, MISSING, "is missing") for field in VALID],
        *[(field, None, STRING_RULE) for field in VALID if field != "amount_rupiah"],
        *[(field, 7, STRING_RULE) for field in VALID if field != "amount_rupiah"],
        ("event_id", "", ID_RULE),
        ("event_id", "a" * 129, ID_RULE),
        ("event_id", "has space", ID_RULE),
        ("event_id", "line\n", ID_RULE),
        ("event_id", "é", ID_RULE),
        *[("event_id", text, LETTER_RULE) for text in (".", "..", "-", "_:-.", "." * 128)],
        ("event_type", "", "must not be empty"),
        ("event_type", "a" * 65, "must be at most 64 characters"),
        ("event_type", "pay\x00ment", TEXT_RULE),
        ("order_id", "", UUID_RULE),
        ("order_id", "0c9d7be56f2d4f3993e59a0e6a2b9a11", UUID_RULE),
        ("order_id", VALID["order_id"] + "\n", UUID_RULE),
        ("payment_id", "", "must name the payment of a payment.processed event"),
        ("payment_id", "a" * 129, "must be at most 128 characters"),
        ("payment_id", "\ud800", TEXT_RULE),
        ("user_id", "", "must not be empty"),
        ("amount_rupiah", None, INTEGER_RULE),
        ("amount_rupiah", "100000", INTEGER_RULE),
        ("amount_rupiah", 100000.0, INTEGER_RULE),
        ("amount_rupiah", True, INTEGER_RULE),
        ("amount_rupiah", -1, RANGE_RULE),
        ("amount_rupiah", 2**63, RANGE_RULE),
        ("created_at", "2026-11-11T00:00:00", TIME_RULE),
        ("created_at", "2026-11-11", TIME_RULE),
        ("created_at", "2026-13-11T00:00:00Z", TIME_RULE),
        ("created_at", "2026-W46-3T00:00:00Z", TIME_RULE),
        ("created_at", "20261111T000000Z", TIME_RULE),
        ("created_at", "1794416400", TIME_RULE),
        ("created_at", "2026-11-11T00:00:00+07:0\u0660", TIME_RULE),
        ("created_at", "2026-02-30T00:00:00Z", TIME_RULE),
        ("created_at", "2026-11-11T00:00:60Z", TIME_RULE),
        ("created_at", "2026-11-11T00:00:00+24:00", TIME_RULE),
        ("created_at", "2026-11-11T00:00:00+23:59", OFFSET_RULE),
        ("created_at", "2026-11-11T00:00:00-16:00", OFFSET_RULE),
        ("created_at", "0001-01-01T00:00:00+14:00", YEAR_RULE),
        ("created_at", "1999-12-31T23:59:59.999999Z", YEAR_RULE),
        ("created_at", "2000-01-01T00:00:00+00:01", YEAR_RULE),
        ("created_at", "2100-01-01T00:00:01Z", YEAR_RULE),
        ("created_at", "2099-12-31T23:59:59-14:00", YEAR_RULE),
        ("created_at", "9999-12-31T23:59:59-14:00", YEAR_RULE),
        ("extra", "\x00", TEXT_RULE),
        ("extra", {"deep": ["\udfff"]}, TEXT_RULE),
        ("extra", {"\x00": 1}, TEXT_RULE),
        ("extra", [float("inf")], "must not hold NaN or Infinity"),
        ("extra", NESTED, "must not be nested more than 32 levels deep"),
    ],
)
def test_a_broken_rule_names_its_field(field: str, value: object, rule: str) -> None:
    with pytest.raises(InvalidEvent) as refusal:
        parse_event(with_field(field, value))

    assert (refusal.value.field, refusal.value.rule) == (field, rule)
    assert str(refusal.value) == f"{field}: {rule}"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "must be UTF-8 JSON"),
        ("{", "must be UTF-8 JSON"),
        (b"\xff", "must be UTF-8 JSON"),
        ("[]", "must be a JSON object"),
        ("null", "must be a JSON object"),
        ("[" * 20_000, "is nested too deeply"),
    ],
)
def test_what_is_no_json_object_is_refused(text: str | bytes, rule: str) -> None:
    with pytest.raises(InvalidEvent) as refusal:
        parse_event(text)

    assert str(refusal.value) == f"document: {rule}"


@pytest.mark.parametrize("text", ["1e5", "100000.0", '"100000"', "true", "NaN", "Infinity"])
def test_an_amount_must_be_written_as_a_json_integer(text: str) -> None:
    document = json.dumps(VALID).replace("150000", text)

    with pytest.raises(InvalidEvent, match=r"^amount_rupiah: must be a JSON integer"):
        parse_event(document)


@pytest.mark.parametrize("event_type", ["order.confirmed", "order.shipped", "stock.counted"])
def test_only_payment_events_need_a_payment(event_type: str) -> None:
    event = parse_event({**VALID, "event_type": event_type, "payment_id": ""})

    assert event.payment_id == ""


@pytest.mark.parametrize("event_type", ["payment.failed", "payment.challenged"])
def test_every_payment_event_names_its_payment(event_type: str) -> None:
    with pytest.raises(InvalidEvent, match=f"payment_id: must name the payment of a {event_type}"):
        parse_event({**VALID, "event_type": event_type, "payment_id": ""})


def test_an_unknown_type_is_an_event_all_the_same() -> None:
    event = parse_event({**VALID, "event_type": "stock.counted", "payment_id": ""})

    assert not event.is_known


@pytest.mark.parametrize(
    "created_at",
    [
        "2026-11-11T00:00:00Z",
        "2026-11-10t17:00:00.123456z",
        VALID["created_at"],
        "2026-11-11T00:00:00+15:59",
        "2026-11-11T00:00:00-15:59",
        "2000-01-01T00:00:00Z",
        "2100-01-01T00:00:00Z",
    ],
)
def test_the_time_is_read_with_its_offset(created_at: str) -> None:
    event = parse_event({**VALID, "created_at": created_at})

    assert event.created_at == created_at
    assert event.created.utcoffset() is not None


def test_unknown_keys_are_kept_and_change_no_hash() -> None:
    event = parse_event({**VALID, "request_id": "abc", "nested": {"a": [1]}})

    assert event.document() == {**VALID, "request_id": "abc", "nested": {"a": [1]}}
    assert payload_hash(event) == payload_hash(parse_event(VALID))


def test_the_hash_of_an_event_never_changes() -> None:
    assert payload_hash(parse_event(VALID)) == (
        "e993e547dc4e8ec2bd54c4f7606a4f400377ce1623701387efbf9912d14c7c7c"
    )


def test_a_field_that_the_contract_gains_changes_no_hash() -> None:
    class Grown(Event):
        channel: str = "web"

    grown = Grown(**VALID, channel="app")

    assert payload_hash(grown) == payload_hash(parse_event(VALID))
    assert is_same_event(grown, VALID)
    assert is_same_event(parse_event(VALID), grown.document())


SPELLINGS = [
    "2026-11-10T17:00:00Z",
    "2026-11-10t17:00:00z",
    "2026-11-10T17:00:00+00:00",
    "2026-11-10T17:00:00-00:00",
    "2026-11-11T00:00:00.000+07:00",
    "2026-11-10T10:00:00-07:00",
]


@pytest.mark.parametrize("created_at", SPELLINGS)
def test_two_spellings_of_one_instant_are_the_same_event(created_at: str) -> None:
    assert is_same_event(parse_event(VALID), {**VALID, "created_at": created_at})
    assert is_same_event(parse_event({**VALID, "created_at": created_at}), VALID)


@pytest.mark.parametrize("created_at", ["2026-11-10T17:00:01Z", "0001-01-01T00:00:00Z", "", None])
def test_another_instant_is_another_event(created_at: object) -> None:
    assert not is_same_event(parse_event(VALID), {**VALID, "created_at": created_at})


@pytest.mark.parametrize("field", IDENTITY_FIELDS)
def test_an_event_that_differs_in_one_field_is_another(field: str) -> None:
    stored = {name: value for name, value in VALID.items() if name != field}

    assert not is_same_event(parse_event(VALID), stored)


@pytest.mark.parametrize("field", [name for name in VALID if name != "event_type"])
def test_every_field_of_the_contract_changes_the_hash(field: str) -> None:
    other = {
        "amount_rupiah": 150001,
        "order_id": "1c9d7be5-6f2d-4f39-93e5-9a0e6a2b9a11",
        "created_at": "2026-11-11T00:00:01+07:00",
    }.get(field, "other")

    assert payload_hash(parse_event(with_field(field, other))) != payload_hash(parse_event(VALID))


events = st.builds(
    dict,
    event_id=st.from_regex(r"[._:-]{0,9}[A-Za-z0-9][A-Za-z0-9._:-]{0,118}", fullmatch=True),
    event_type=st.sampled_from(["order.confirmed", "payment.processed", "x.y"]),
    order_id=st.uuids().map(str),
    payment_id=st.text(string.ascii_letters, min_size=1, max_size=128),
    user_id=st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\x00"),
        min_size=1,
        max_size=128,
    ),
    amount_rupiah=st.integers(0, 2**63 - 1),
    created_at=st.timedeltas(timedelta(), LATEST - EARLIEST).map(
        lambda since: (EARLIEST + since).isoformat()
    ),
)


@given(events)
def test_a_valid_event_survives_the_way_through_json(document: dict[str, object]) -> None:
    event = parse_event(json.dumps(document))

    assert event.document() == document
    assert parse_event(json.dumps(event.document()).encode()) == event


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*VALID, "other"]), json_values))
def test_any_json_object_is_an_event_or_refused_by_name(changes: dict[str, object]) -> None:
    refused_field = None
    try:
        parse_event({**VALID, **changes})
    except InvalidEvent as refusal:
        refused_field = refusal.field

    assert refused_field in (None, *VALID, "other")


def test_an_event_id_is_deterministic_and_keeps_parts_apart() -> None:
    assert new_event_id("midtrans", "t-1", "settlement") == new_event_id(
        "midtrans", "t-1", "settlement"
    )
    assert new_event_id("ab", "c") != new_event_id("a", "bc")
    assert new_event_id("midtrans", "t-1", "settlement") == "3d24dc3c-afbd-58ee-a3fb-1c0df0997863"
