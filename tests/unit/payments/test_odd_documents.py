"""Whatever a proven sender puts into a field, it is read or refused; nothing else happens."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments.exceptions import Malformed
from payments.providers.base import GatewayNotification
from payments.providers.document import is_storable, load_object
from payments.providers.midtrans import Midtrans
from payments.providers.xendit import Xendit
from tests.unit.payments import midtrans_notifications as midtrans
from tests.unit.payments import xendit_callbacks as xendit

DOCUMENTS: list[tuple[Callable[[dict[str, Any]], GatewayNotification | None], dict[str, Any]]] = [
    (Midtrans().parse, midtrans.bank_transfer("settlement")),
    (Midtrans().parse, midtrans.card("capture")),
    (Midtrans().parse, midtrans.refunded(("r1", "50000.00"), ("r2", "25000.00"))),
    (Xendit().parse, xendit.invoice()),
    (Xendit().parse, xendit.payment_v3()),
    (Xendit().parse, xendit.payment_v2()),
    (Xendit().parse, xendit.refund()),
]

plain = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=300)
    | st.sampled_from(["\x00", "\ud800", "", " ", "9" * 400, "1e400", "-1", "150000.00"])
)
odd = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in the document."""
    if isinstance(document, dict):
        inner = [place for key, value in document.items() for place in places(value, (*path, key))]
    elif isinstance(document, list):
        inner = [
            place for index, value in enumerate(document) for place in places(value, (*path, index))
        ]
    else:
        inner = []
    return [path, *inner] if path else inner


def changed(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    copy = json.loads(json.dumps(document))
    place = copy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return copy


@pytest.mark.parametrize(("parse", "document"), DOCUMENTS)
@settings(deadline=None)
@given(data=st.data())
def test_an_odd_value_anywhere_is_read_or_refused(
    parse: Callable[[dict[str, Any]], GatewayNotification | None],
    document: dict[str, Any],
    data: st.DataObject,
) -> None:
    path = data.draw(st.sampled_from(places(document)))
    body = json.dumps(changed(document, path, data.draw(odd))).encode()

    try:
        notification = parse(load_object(body))
    except Malformed:
        return

    if notification is not None:
        assert len(notification.identity) <= 255
        assert 1 <= len(notification.transaction_id) <= 128
        assert len(notification.order_reference) <= 255
        assert len(notification.channel) <= 64
        assert len(notification.currency) <= 8
        assert all(len(refund.key) <= 128 for refund in notification.refunds)
        assert is_storable(json.dumps(dict(notification.payload), ensure_ascii=False))
        assert is_storable(notification.identity)
