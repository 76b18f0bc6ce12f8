"""The last guard: whatever a line or a report was given, no secret and no personal data is in it.

Our own lines name nothing private in the first place. This is for the texts of others: errors of
the database, of an email provider, of a library.
"""

import re
import socket
from collections.abc import Iterable, Mapping
from typing import Any, Final

#: Fields whose values must not be shown, whoever sets them.
PRIVATE_FIELDS: Final = frozenset(
    (
        *("address", "card", "email", "masked_card", "phone", "to"),
        *("args", "body", "document", "kwargs", "params", "payload", "sql"),
        *("authorization", "cookie", "headers", "password", "secret", "signature_key", "token"),
    )
)
REDACTED: Final = "[redacted]"

_SHORTEST_SECRET: Final = 12  # characters; a shorter one may be part of an ordinary word
_USER_INFO: Final = re.compile(r"(?<=://)[^/\s@]+@")
_ADDRESS: Final = re.compile(r"[\w.+%-]+@([\w-]+(?:\.[\w-]+)+)")
#: What PostgreSQL quotes from the row that broke a rule.
_DETAIL: Final = re.compile(r"^(DETAIL|CONTEXT): .*$", re.MULTILINE)
#: 13 to 19 digits, ISO/IEC 7812, in groups or not, that are no part of an id.
_CARD: Final = re.compile(r"(?<![\w.-])[2-6]\d(?:[ -]?\d){11,17}(?![\w-])")
_BEARER: Final = re.compile(r"\b(Bearer|Basic) [\w.~+/=-]+")
#: Names of Celery's workers look like addresses.
_HOST: Final = socket.gethostname()

_secrets: tuple[str, ...] = ()


def keep_secret(values: Iterable[str]) -> None:
    """Let no text that is redacted from now on hold one of `values`."""
    global _secrets
    _secrets = tuple({value for value in values if len(value) >= _SHORTEST_SECRET})


def redact(text: str) -> str:
    """Return `text` without email addresses, card numbers, credentials and quoted rows."""
    if "@" in text:
        text = _ADDRESS.sub(_address, _USER_INFO.sub(f"{REDACTED}@", text))
    if "DETAIL: " in text or "CONTEXT: " in text:
        text = _DETAIL.sub(rf"\1: {REDACTED}", text)
    if len(text) >= 13:
        text = _CARD.sub(_card, text)
        if "Bearer " in text or "Basic " in text:
            text = _BEARER.sub(rf"\1 {REDACTED}", text)
    for secret in _secrets:
        if secret in text:
            text = text.replace(secret, REDACTED)
    return text


def redact_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return `fields` with all texts redacted, and without the values of private fields."""
    return {name: redact_field(name, value) for name, value in fields.items()}


def redact_field(name: str, value: Any) -> Any:
    """Return `value` as a line may show it under `name`."""
    if name in PRIVATE_FIELDS:
        return REDACTED
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return redact_fields(value)
    if isinstance(value, list | tuple):
        return [redact_field("", item) for item in value]
    return value


def _address(match: re.Match[str]) -> str:
    return match.group() if match.group(1) == _HOST else REDACTED


def _card(match: re.Match[str]) -> str:
    digits = [int(digit) for digit in match.group() if digit.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    is_card = (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
    return REDACTED if is_card else match.group()
