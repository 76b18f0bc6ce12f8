"""Strict reading of a gateway's JSON: what is odd is refused, never guessed.

Every refusal is `Malformed`, naming the field and the rule.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timezone
from decimal import Decimal
from typing import Any, Final, NoReturn

from payments.exceptions import Malformed, NotJSON
from payments.providers.base import MAX_AMOUNT
from skincare.events.exceptions import InvalidMoment
from skincare.events.moments import check_moment
from skincare.events.schema import is_storable

_DECIMAL_TEXT: Final = re.compile(r"\d{1,16}(\.\d{1,4})?\Z")
_MAX_DECIMAL_PLACES: Final = 4


#: Times that gateways write: RFC 3339 in all its spellings, a blank for the T, no offset.
_TIME: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(\.\d{1,9})?\s?(Z|[+-]\d{2}:?\d{2})?\Z", re.ASCII
)


def load_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in `body`; numbers with a point or an exponent become Decimal.

    Refuses duplicate keys, NaN and Infinity, and text that PostgreSQL cannot store.
    """
    document = load_json(body)
    if not isinstance(document, dict):
        raise Malformed("document", "must be a JSON object")
    return document


def load_json(body: bytes) -> Any:
    """Return the JSON in `body`, as strictly as `load_object`."""
    try:
        return json.loads(
            body.decode("utf-8-sig"),  # some senders begin with a byte order mark
            parse_float=Decimal,
            parse_constant=_no_constant,
            object_pairs_hook=_unique_keys,
        )
    except RecursionError:
        raise NotJSON("document", "is nested too deeply") from None
    except (ValueError, ArithmeticError):  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise NotJSON("document", "must be UTF-8 JSON") from None


def load_signed(body: bytes) -> dict[str, Any]:
    """Return the JSON object in `body` as lenient readers see it: of equal keys the last counts.

    For the proof only, where `load_object` refuses. Raises `Malformed`.
    """
    try:
        document = json.loads(body.decode("utf-8-sig"), parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError):
        raise NotJSON("document", "must be UTF-8 JSON") from None
    if not isinstance(document, dict):
        raise Malformed("document", "must be a JSON object")
    return document


def _no_constant(name: str) -> NoReturn:
    raise NotJSON("document", f"must not hold {name}")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        raise Malformed("document", "must not name a key twice")
    return unique


def readable_text(body: bytes) -> str:
    """Return a body as text that can be stored and shown, whatever its bytes are."""
    return body.decode("utf-8", "backslashreplace").replace("\x00", "\\x00")


def told(value: object, *, max_length: int = 200) -> str:
    """Return what a gateway says of a refusal, as text that can be stored, whatever it holds."""
    text = str(value).encode("utf-8", "backslashreplace").decode()
    return text.replace("\x00", "\\x00")[:max_length]


def child(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the object under `name`."""
    value = document.get(name)
    if not isinstance(value, dict):
        raise Malformed(name, "must be a JSON object")
    return value


def text(document: Mapping[str, Any], name: str, *, max_length: int = 255) -> str:
    """Return the text under `name`, 1 to `max_length` characters."""
    value = optional_text(document, name, max_length=max_length)
    if not value:
        raise Malformed(name, "is missing or empty")
    return value


def optional_text(document: Mapping[str, Any], name: str, *, max_length: int = 255) -> str:
    """Return the text under `name`; empty where it is missing or null."""
    value = document.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Malformed(name, "must be a JSON string")
    if len(value) > max_length:
        raise Malformed(name, f"must be at most {max_length} characters")
    if not is_storable(value):
        raise Malformed(name, "must not hold a NUL or a lone surrogate")
    return value


def amount_number(document: Mapping[str, Any], name: str) -> Decimal:
    """Return the JSON number under `name`, 0 or more, in rupiah."""
    value = document.get(name)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise Malformed(name, "must be a JSON number")
    return _amount(Decimal(value), name)


def amount_text(document: Mapping[str, Any], name: str) -> Decimal:
    """Return the decimal number that is written as a string under `name`, in rupiah."""
    value = text(document, name, max_length=32)
    if not _DECIMAL_TEXT.match(value) or not value.isascii():
        raise Malformed(name, 'must be a decimal number in a string, like "10000.00"')
    return _amount(Decimal(value), name)


def _amount(value: Decimal, name: str) -> Decimal:
    # Compared before anything is computed: an exponent of millions would take the memory with it.
    if not 0 <= value <= MAX_AMOUNT:
        raise Malformed(name, f"must be 0 to {MAX_AMOUNT:f}")
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or exponent < -_MAX_DECIMAL_PLACES:
        raise Malformed(name, f"must have at most {_MAX_DECIMAL_PLACES} decimal places")
    return value


def any_amount(document: Mapping[str, Any], name: str) -> Decimal:
    """Return the decimal number under `name`, written as a number or as a string, in rupiah."""
    is_text = isinstance(document.get(name), str)
    return amount_text(document, name) if is_text else amount_number(document, name)


def any_text(document: Mapping[str, Any], name: str, *, max_length: int = 255) -> str:
    """Return the text under `name`, also where the gateway writes a number; empty where it is
    missing or null.
    """
    value = document.get(name)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        value = str(value)
    return optional_text({name: value}, name, max_length=max_length)


def label(document: Mapping[str, Any], name: str) -> str:
    """Return what people read under `name`, up to 64 characters; empty where it cannot be shown.

    Nothing follows from it: a payment counts whatever its way to pay is called.
    """
    value = document.get(name)
    return value[:64] if isinstance(value, str) and is_storable(value) else ""


def any_moment(
    document: Mapping[str, Any], name: str, *, offset: timezone = UTC
) -> datetime | None:
    """Return the time under `name`, in any spelling; one without an offset is at `offset`.

    None where it is missing, or where it can be no time of a payment (before 2000, after 2100):
    what else the document says is worth more than its clock.
    """
    value = document.get(name)
    found = _TIME.match(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None
    day, clock, fraction, zone = found.groups()
    text = f"{day}T{clock}{(fraction or '')[:7]}{zone or ''}"
    try:
        parsed = datetime.fromisoformat(text)
        return check_moment(parsed if parsed.tzinfo else parsed.replace(tzinfo=offset))
    except (ValueError, OverflowError, InvalidMoment):
        return None


def kept_fields(document: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """Return the named plain fields of `document`, ready for a JSON column.

    Nested values and text that cannot be stored are left out: only what is known to be harmless is
    kept.
    """
    kept: dict[str, Any] = {}
    for name in sorted(names & document.keys()):
        value = document[name]
        if isinstance(value, Decimal):
            kept[name] = str(value)
        elif isinstance(value, str) and is_storable(value):
            kept[name] = value[:255]
        elif isinstance(value, bool | int) and abs(value) <= MAX_AMOUNT:
            kept[name] = value
    return kept
