"""The Idempotency-Key of a checkout: one order for each key, and the same answer again.

Only checkouts that made an order are remembered. A refusal changed nothing, so the same key may be
used to try again.
"""

import hashlib
import json
import re
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from orders.exceptions import (
    IdempotencyKeyReused,
    InvalidIdempotencyKey,
    MissingIdempotencyKey,
)
from orders.models import GUEST, CheckoutRequest
from orders.sentences import Sentence
from skincare.events.statements import prepared_cursor

_VISIBLE_ASCII: Final = re.compile(r"[\x21-\x7e]+\Z")


def check_key(key: str | None) -> str:
    """Return the key. Raises `MissingIdempotencyKey` and `InvalidIdempotencyKey`."""
    if not key:
        raise MissingIdempotencyKey(
            Sentence(
                "must be sent: a value of your own, new for each order",
                "harus dikirim: nilai buatan sendiri, baru untuk tiap pesanan",
            )
        )
    longest: int = settings.IDEMPOTENCY_KEY_MAX_LENGTH
    if len(key) > longest or not _VISIBLE_ASCII.match(key):
        raise InvalidIdempotencyKey(
            Sentence(
                "must be 1 to {longest} visible ASCII characters",
                "harus 1 sampai {longest} karakter ASCII yang terlihat",
                longest=longest,
            )
        )
    return key


def body_hash(body: dict[str, Any]) -> str:
    """Return the hexadecimal SHA-256 of what was asked for; the order of keys does not count."""
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


#: Waits for a transaction that holds the key, and leaves ours usable. The order does not exist yet:
#: its foreign key is checked when the transaction commits.
_CLAIM: Final = """
INSERT INTO orders_checkoutrequest (scope, key, body_hash, order_id, response, created_at)
SELECT %(place)s, %(key)s::text, %(hash)s, %(order)s::uuid, %(response)s::jsonb, clock_timestamp()
WHERE NOT EXISTS (SELECT FROM orders_checkoutrequest WHERE scope = %(scope)s AND key = %(key)s)
ON CONFLICT (scope, key) DO NOTHING
"""


def scope_of(user_id: str, email: str) -> str:
    """Return whose keys they are: the buyer's, or those of all guests of one address.

    All guests together would get each other's answers, and refusals.
    """
    if user_id != GUEST:
        return user_id
    return f"{GUEST}:{hashlib.sha256(email.casefold().encode(errors='surrogatepass')).hexdigest()}"


def claim_key(
    *, scope: str, key: str, body: dict[str, Any], order_id: UUID, response: dict[str, Any]
) -> CheckoutRequest | None:
    """Take the key for the order that is about to be made, inside checkout's transaction.

    `response` is what a repeat will be answered. Returns the request that has the key already, or
    None. Where another transaction holds the key, waits for its end: the unique constraint lets one
    of two parallel requests through. Raises `IdempotencyKeyReused` where the key belongs to another
    body.
    """
    values = {
        "scope": scope,
        "key": key,
        "hash": body_hash(body),
        "order": str(order_id),
        "response": json.dumps(response),
    }
    known = None
    for place in _places(scope):
        with prepared_cursor() as cursor:
            cursor.execute(_CLAIM, {**values, "place": place})
            if cursor.rowcount == 1:  # Django's own way does not say whether it inserted
                return None
        known = _known(scope, key, values["hash"])
        if known is not None:
            break
    if known is None or known.body_hash != values["hash"]:
        raise IdempotencyKeyReused(
            Sentence(
                "was used before with another body: use a new one",
                "sudah dipakai dengan isi lain: pakai yang baru",
            )
        )
    return known


def _places(scope: str) -> list[str]:
    """Return where a key of this scope may be written, the first free one.

    A guest's goes where the release before looks for it: in one scope for all guests. Both releases
    run side by side while a deployment rolls, and a repeat may reach either. Where a stranger has
    the same key there, it goes to the guest's own.
    """
    return [GUEST, scope] if scope.startswith(f"{GUEST}:") else [scope]


def _known(scope: str, key: str, hashed: str) -> CheckoutRequest | None:
    """Return the request of this scope that has the key, wherever it was written."""
    requests = CheckoutRequest.objects.filter(key=key, scope__in=_places(scope))
    for request in requests.select_related("order"):
        its_scope = scope_of(request.order.user_id, request.order.email)
        if request.body_hash == hashed or scope in (request.scope, its_scope):
            return request
    return None
