"""The event contract: one small JSON document, checked strictly at every edge.

Other languages produce it too, so each refusal names the field and the rule. Unknown extra keys are
kept and ignored.
"""

import hashlib
import json
import math
import re
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from skincare.events.exceptions import InvalidEvent, InvalidMoment
from skincare.events.moments import parse_moment

ORDER_CONFIRMED: Final = "order.confirmed"
ORDER_EXPIRED: Final = "order.expired"
PAYMENT_PROCESSED: Final = "payment.processed"
PAYMENT_FAILED: Final = "payment.failed"
PAYMENT_REFUNDED: Final = "payment.refunded"
PAYMENT_REPORTED: Final = "payment.reported"
EVENT_TYPES: Final = (
    ORDER_CONFIRMED,
    ORDER_EXPIRED,
    PAYMENT_PROCESSED,
    PAYMENT_FAILED,
    PAYMENT_REFUNDED,
    PAYMENT_REPORTED,
)

#: Namespace of the ids made by `new_event_id`; it must never change, or repeats get new ids.
_EVENT_ID_NAMESPACE: Final = uuid.UUID("6f0d6f0e-5f0b-5d0c-9b52-6d2a3c6f1f21")
_EVENT_ID: Final = re.compile(r"(?=[._:-]*[A-Za-z0-9])[A-Za-z0-9._:-]{1,128}\Z")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
#: The fields that make two documents the same event. Nothing is ever added: the hashes of all
#: events that are stored or on their way cover exactly these.
IDENTITY_FIELDS: Final = (
    "event_id",
    "event_type",
    "order_id",
    "payment_id",
    "user_id",
    "amount_rupiah",
    "created_at",
)
_UNSTORABLE: Final = re.compile(r"[\x00\ud800-\udfff]")
_MAX_AMOUNT: Final = 2**63 - 1
_MAX_DEPTH: Final = 32  # levels of lists and objects within one extra key


def _event_id(value: str) -> str:
    if not _EVENT_ID.match(value):
        if value and set(value) <= set("._:-"):
            raise ValueError("must have at least one letter or digit")
        raise ValueError("must be 1 to 128 characters out of A-Z a-z 0-9 . _ : -")
    return value


def _order_id(value: str) -> str:
    if not _UUID.match(value):
        raise ValueError("must be the UUID of an order, as 8-4-4-4-12 hexadecimal digits")
    return value.lower()


def _created_at(value: str) -> str:
    parse_moment(value)
    return value


class Event(BaseModel):
    """One event of the contract. Frozen; strings and integers are taken as they are, never coerced.

    `amount_rupiah` is whole rupiah; `created_at` is the producer's RFC 3339 text.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="allow")

    event_id: Annotated[str, AfterValidator(_event_id)]
    event_type: Annotated[str, Field(min_length=1, max_length=64)]
    order_id: Annotated[str, AfterValidator(_order_id)]
    payment_id: Annotated[str, Field(max_length=128)]
    user_id: Annotated[str, Field(min_length=1, max_length=128)]
    amount_rupiah: Annotated[int, Field(ge=0, le=_MAX_AMOUNT)]
    created_at: Annotated[str, AfterValidator(_created_at)]

    @property
    def created(self) -> datetime:
        """The moment at which the producer made the event, with its offset."""
        return parse_moment(self.created_at)

    @property
    def is_known(self) -> bool:
        """Whether the contract names this event type; others are recorded as skipped."""
        return self.event_type in EVENT_TYPES

    def document(self) -> dict[str, Any]:
        """Return the JSON-ready document, extra keys included."""
        return self.model_dump(mode="json")


def parse_event(document: Mapping[str, Any] | str | bytes) -> Event:
    """Return the event in `document` (a JSON object, or its UTF-8 text).

    Raises `InvalidEvent`, naming the first field that breaks a rule.
    """
    if isinstance(document, str | bytes):
        document = _json_object(document)
    for field, value in document.items():
        _refuse_unstorable(field, value)
    try:
        event = Event.model_validate(dict(document))
    except ValidationError as error:
        raise _first_refusal(error) from None
    if event.payment_id == "" and event.event_type.startswith("payment."):
        raise InvalidEvent("payment_id", f"must name the payment of a {event.event_type} event")
    return event


def _json_object(text: str | bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except RecursionError:
        raise InvalidEvent("document", "is nested too deeply") from None
    except ValueError:
        raise InvalidEvent("document", "must be UTF-8 JSON") from None
    if not isinstance(document, dict):
        raise InvalidEvent("document", "must be a JSON object")
    return document


def _refuse_unstorable(field: str, value: object) -> None:
    """Raise `InvalidEvent` for what PostgreSQL's jsonb cannot hold, in extra keys too."""
    todo = [(field, 0), (value, 0)]
    while todo:
        part, depth = todo.pop()
        if depth > _MAX_DEPTH:
            raise InvalidEvent(field, f"must not be nested more than {_MAX_DEPTH} levels deep")
        if isinstance(part, str) and not is_storable(part):
            raise InvalidEvent(_printable(field), "must not hold a NUL or a lone surrogate")
        if isinstance(part, float) and not math.isfinite(part) and field != "amount_rupiah":
            raise InvalidEvent(field, "must not hold NaN or Infinity")
        if isinstance(part, Mapping):
            todo += [(inner, depth + 1) for pair in part.items() for inner in pair]
        elif isinstance(part, list | tuple):
            todo += [(inner, depth + 1) for inner in part]


def is_storable(text: str) -> bool:
    """Whether PostgreSQL can store the text: it has neither NUL nor a lone surrogate."""
    return _UNSTORABLE.search(text) is None


def _printable(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()


#: What each pydantic error means in the contract's words; the rest keep pydantic's sentence.
_RULES: Final = {
    "missing": "is missing",
    "string_type": "must be a JSON string",
    "int_type": "must be a JSON integer, not text, a decimal, an exponent or a boolean",
    "greater_than_equal": f"must be 0 to {_MAX_AMOUNT} rupiah",
    "less_than_equal": f"must be 0 to {_MAX_AMOUNT} rupiah",
    "string_too_short": "must not be empty",
}


def _first_refusal(error: ValidationError) -> InvalidEvent:
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(map(str, first["loc"])) or "document"
    if first["type"] == "value_error":
        return InvalidEvent(field, str(first["ctx"]["error"]))
    if first["type"] == "string_too_long":
        return InvalidEvent(field, f"must be at most {first['ctx']['max_length']} characters")
    return InvalidEvent(field, _RULES.get(first["type"], first["msg"]))


def payload_hash(event: Event) -> str:
    """Return the hexadecimal SHA-256 of the identity fields, as the document spells them.

    Events with the same hash are the same; whether others are, `is_same_event` says.
    """
    fields = {name: getattr(event, name) for name in IDENTITY_FIELDS}
    canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def is_same_event(event: Event, stored: Mapping[str, Any]) -> bool:
    """Whether a stored document is of this event: its identity fields mean the same.

    Extra keys do not count, nor does how `created_at` spells its instant. A stored document may
    break rules that are younger than it.
    """
    spelled_alike = all(
        stored.get(name) == getattr(event, name) for name in IDENTITY_FIELDS if name != "created_at"
    )
    return spelled_alike and _is_at(event, stored.get("created_at"))


def _is_at(event: Event, created_at: object) -> bool:
    if created_at == event.created_at:
        return True
    try:
        return parse_moment(str(created_at)) == event.created
    except InvalidMoment:
        return False


def new_event_id(*parts: str) -> str:
    """Return the event id that belongs to a cause: the same parts always give the same id.

    Give everything that distinguishes one cause from another: provider, transaction id, new state,
    and the refund key of a refund.
    """
    return str(uuid.uuid5(_EVENT_ID_NAMESPACE, json.dumps(parts, separators=(",", ":"))))
