"""Our providers against the simulators: what they create, ask, cancel and refund is understood."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from payments.exceptions import (
    CannotBeAsked,
    GatewayRefused,
    NotCancellable,
    NotRefundable,
    ReferenceInUse,
)
from payments.models import Payment
from payments.providers import provider
from payments.providers.base import Line, Page, Purchase
from payments.status import PaymentStatus
from skincare.local.gateways.simulator import Simulator
from tests.integration.gateways.conftest import SECRET_KEY, SERVER_KEY

Act = Callable[..., int]
JAKARTA = timezone(timedelta(hours=7))
TOTAL = 150_000


@pytest.fixture(autouse=True)
def gateways_of_the_settings(gateways: Simulator, settings: Any) -> None:
    settings.MIDTRANS_SERVER_KEY = SERVER_KEY
    settings.MIDTRANS_SNAP_URL = gateways.midtrans_snap_url
    settings.MIDTRANS_API_URL = gateways.midtrans_api_url
    settings.XENDIT_SECRET_KEY = SECRET_KEY
    settings.XENDIT_API_URL = gateways.xendit_api_url


def a_payment(name: str, *, number: int = 1) -> Payment:
    order_id = uuid4()
    return Payment(
        order_id=order_id,
        provider=name,
        reference=f"{order_id}-{number}",
        amount_rupiah=TOTAL,
    )


def purchase(**changes: Any) -> Purchase:
    values: dict[str, Any] = {
        "order_number": "SK-1",
        "lines": (Line("SERUM-1", "Serum | 30 ml " + "x" * 50, 2, 75_000),),
        "email": "ayu@buyer.example",
        "return_url": "https://shop.example/orders/1",
        "starts_at": datetime.now(JAKARTA),
        "minutes": 30,
    }
    return Purchase(**values | changes)


def opened(payment: Payment, **changes: Any) -> Page:
    page = provider(payment.provider).create(payment, purchase(**changes))
    assert page is not None
    payment.session_id = page.session_id
    return page


def status_of(payment: Payment, **options: Any) -> PaymentStatus | None:
    answer = provider(payment.provider).status(payment, **options)
    if answer is None:
        return None
    assert answer.order_reference == payment.reference
    assert answer.review_reason == ""
    assert answer.amount == TOTAL
    assert answer.currency == "IDR"
    return answer.status


both = pytest.mark.parametrize("name", ["midtrans", "xendit"])


@both
def test_a_page_is_opened_for_our_reference(name: str, gateways: Simulator) -> None:
    payment = a_payment(name)
    page = opened(payment)
    assert page.url.startswith(gateways.url)
    if name == "midtrans":
        asked = gateways.midtrans.sessions[page.session_id].asked
        assert asked["transaction_details"]["order_id"] == payment.reference
        assert len(asked["item_details"][0]["name"]) == 50
        assert asked["credit_card"]["secure"] is True
    else:
        asked = gateways.xendit.invoices[page.session_id].asked
        assert asked["external_id"] == payment.reference
        assert asked["success_redirect_url"] == "https://shop.example/orders/1"
        assert page.expires_at is not None
        left = page.expires_at - datetime.now(UTC)
        assert timedelta(minutes=25) < left <= timedelta(minutes=30)


@both
def test_no_item_is_named_where_they_do_not_add_up(name: str) -> None:
    opened(a_payment(name), lines=(Line("A", "A", 1, 1),))


@pytest.mark.parametrize("way", ["qris", "ewallet", "card", "virtual_account", "counter"])
@both
def test_a_page_can_be_for_one_way_to_pay(name: str, way: str, gateways: Simulator) -> None:
    page = opened(a_payment(name), way=way)
    if name == "midtrans":
        assert gateways.midtrans.sessions[page.session_id].asked["enabled_payments"]
    else:
        assert gateways.xendit.invoices[page.session_id].asked["payment_methods"]


def test_the_time_to_pay_at_midtrans_counts_from_the_attempt(gateways: Simulator, act: Act) -> None:
    payment = a_payment("midtrans")
    page = opened(payment, minutes=60)
    gateways.advance(50 * 60)
    act("midtrans", page.session_id, "pick", method="bca_va")
    gateways.advance(11 * 60)
    assert status_of(payment) is PaymentStatus.EXPIRED


def test_midtrans_gives_the_same_reference_another_page(gateways: Simulator, act: Act) -> None:
    payment = a_payment("midtrans")
    first = opened(payment)
    second = provider("midtrans").create(payment, purchase(), again=True)
    assert second is not None
    assert second.session_id != first.session_id
    assert act("midtrans", first.session_id, "pick", method="qris") == 409


@pytest.mark.parametrize("text", [0, 1, 2])
def test_midtrans_says_in_its_words_that_a_reference_is_in_use(
    text: int, gateways: Simulator, act: Act
) -> None:
    gateways.midtrans.options.duplicate_text = text
    payment = a_payment("midtrans")
    act("midtrans", opened(payment).session_id, "pick", method="qris")
    with pytest.raises(ReferenceInUse):
        provider("midtrans").create(payment, purchase(), again=True)


def test_an_invoice_whose_answer_was_lost_is_found_and_not_made_twice(gateways: Simulator) -> None:
    payment = a_payment("xendit")
    lost = provider("xendit").create(payment, purchase())
    found = provider("xendit").create(payment, purchase(), again=True)
    assert found == lost
    assert len(gateways.xendit.invoices) == 1


def test_an_invoice_that_was_never_made_is_made_when_asked_again(gateways: Simulator) -> None:
    assert provider("xendit").create(a_payment("xendit"), purchase(), again=True)
    assert len(gateways.xendit.invoices) == 1


@pytest.mark.parametrize("errors_as_200", [True, False])
def test_midtrans_knows_nothing_before_a_method_is_picked(
    errors_as_200: bool, gateways: Simulator
) -> None:
    gateways.midtrans.options.errors_as_200 = errors_as_200
    payment = a_payment("midtrans")
    opened(payment)
    assert status_of(payment) is None


STATES = [
    ("qris", [], PaymentStatus.PENDING),
    ("qris", ["pay"], PaymentStatus.SETTLED),
    ("qris", ["decline"], PaymentStatus.DENIED),
    ("bca_va", ["expire"], PaymentStatus.EXPIRED),
    ("bca_va", ["expire", "pay late"], PaymentStatus.SETTLED),
    ("permata_va", ["pay", "reverse"], PaymentStatus.DENIED),
    ("credit_card", [], PaymentStatus.CAPTURED),
    ("credit_card", ["settle"], PaymentStatus.SETTLED),
    ("credit_card", ["settle", "charge back"], PaymentStatus.REFUNDED),
    ("credit_card", ["settle", "charge back half"], PaymentStatus.PARTLY_REFUNDED),
    ("indomaret", ["pay"], PaymentStatus.SETTLED),
    ("shopeepay", [], PaymentStatus.PENDING),  # in capitals
]


@pytest.mark.parametrize(("method", "actions", "expected"), STATES)
def test_midtrans_says_what_became_of_a_transaction(
    method: str, actions: list[str], expected: PaymentStatus, act: Act
) -> None:
    payment = a_payment("midtrans")
    token = opened(payment).session_id
    assert act("midtrans", token, "pick", method=method) == 200
    for action in actions:
        assert act("midtrans", token, action) == 200
    assert status_of(payment) is expected


@pytest.mark.parametrize("method", ["dana", "danamon_va"])
def test_some_methods_are_asked_for_by_the_transaction_only(
    method: str, act: Act, gateways: Simulator
) -> None:
    payment = a_payment("midtrans")
    act("midtrans", opened(payment).session_id, "pick", method=method)
    assert status_of(payment) is None
    payment.transaction_id = gateways.midtrans.transactions[0].id
    assert status_of(payment) is PaymentStatus.PENDING


def test_the_newest_transaction_of_a_reference_is_the_card_that_was_accepted(
    act: Act, gateways: Simulator
) -> None:
    payment = a_payment("midtrans")
    token = opened(payment).session_id
    for card in ("4911111111111113", "4811111111111114"):
        act("midtrans", token, "pick", method="credit_card", card=card)
    payment.transaction_id = gateways.midtrans.transactions[0].id
    newest = provider("midtrans").newest(payment)
    assert status_of(payment) is PaymentStatus.DENIED
    assert newest is not None
    assert (newest.status, newest.transaction_id) == (
        PaymentStatus.CAPTURED,
        gateways.midtrans.transactions[1].id,
    )


@pytest.mark.parametrize("digits", [0, 3, 6, 9])
@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ([], PaymentStatus.PENDING),
        (["pay"], PaymentStatus.SETTLED),
        (["expire"], PaymentStatus.EXPIRED),
        (["expire", "pay late"], PaymentStatus.SETTLED),
    ],
)
def test_xendit_says_what_became_of_an_invoice(
    actions: list[str], expected: PaymentStatus, digits: int, act: Act, gateways: Simulator
) -> None:
    gateways.xendit.options.time_digits = digits
    payment = a_payment("xendit")
    invoice = opened(payment).session_id
    for action in actions:
        assert act("xendit", invoice, action) == 200
    assert status_of(payment) is expected


def test_paid_and_settled_are_the_same_to_us(act: Act, gateways: Simulator) -> None:
    payment = a_payment("xendit")
    act("xendit", opened(payment).session_id, "pay")
    gateways.advance(25 * 3600)
    assert status_of(payment) is PaymentStatus.SETTLED


def test_a_payment_of_the_payments_api_is_asked_for_by_its_request(
    gateways: Simulator,
) -> None:
    # given
    asked = {"reference_id": "order-1", "amount": TOTAL}
    paid = gateways.xendit.pay_session(gateways.xendit.create_session(asked), "DANA")
    payment = a_payment("xendit")
    payment.reference, payment.transaction_id = "order-1", paid.id
    # then
    assert status_of(payment, request_id=paid.request_id) is PaymentStatus.SETTLED
    with pytest.raises(CannotBeAsked):
        provider("xendit").status(payment)


@both
def test_what_the_gateway_never_heard_of_is_none(name: str) -> None:
    payment = a_payment(name)
    payment.transaction_id = "0" * 24
    assert provider(name).status(payment) is None


def test_midtrans_cancels_a_transaction_or_else_the_page(act: Act, gateways: Simulator) -> None:
    picked, unused = a_payment("midtrans"), a_payment("midtrans")
    act("midtrans", opened(picked).session_id, "pick", method="bca_va")
    token = opened(unused).session_id
    for payment in (picked, unused):
        provider("midtrans").cancel(payment)
    assert status_of(picked) is PaymentStatus.CANCELLED
    assert status_of(unused) is None
    assert act("midtrans", token, "pick", method="qris") == 409


@pytest.mark.parametrize("errors_as_200", [True, False])
@both
def test_what_is_paid_cannot_be_cancelled(
    name: str, errors_as_200: bool, act: Act, gateways: Simulator
) -> None:
    gateways.midtrans.options.errors_as_200 = errors_as_200
    payment = a_payment(name)
    session = opened(payment).session_id
    if name == "midtrans":
        act(name, session, "pick", method="qris")
    act(name, session, "pay")
    with pytest.raises(NotCancellable):
        provider(name).cancel(payment)
    assert status_of(payment) is PaymentStatus.SETTLED


def test_xendit_cancels_by_expiring(gateways: Simulator) -> None:
    payment = a_payment("xendit")
    opened(payment)
    provider("xendit").cancel(payment)
    assert status_of(payment) is PaymentStatus.EXPIRED


def paid(name: str, act: Act, **values: str) -> Payment:
    payment = a_payment(name)
    session = opened(payment).session_id
    if name == "midtrans":
        act(name, session, "pick", method=values.get("method", "qris"))
        act(name, session, "pay")
    else:
        act(name, session, "pay", channel=values.get("channel", "QRIS"))
    return payment


@both
def test_the_same_refund_key_is_the_same_refund(name: str, act: Act, gateways: Simulator) -> None:
    payment = paid(name, act)
    gateway = provider(name)
    refunds = [
        gateway.refund(payment, key="k-1", amount_rupiah=50_000, reason="returned")
        for _ in range(2)
    ]
    assert refunds[0] == refunds[1]
    assert refunds[0].amount == Decimal(50_000)
    assert refunds[0].status == ("succeeded" if name == "midtrans" else "pending")
    assert gateway.find_refund(payment, key="k-1") == refunds[0]
    assert gateway.find_refund(payment, key="k-2") is None


@both
def test_a_refund_is_in_the_gateways_word(name: str, act: Act, gateways: Simulator) -> None:
    payment = paid(name, act)
    made = provider(name).refund(payment, key="k", amount_rupiah=TOTAL, reason="returned")
    gateways.advance(61)
    answer = provider(name).status(payment, with_refunds=True)
    assert answer is not None
    assert [(r.key, r.amount) for r in answer.refunds] == [(made.key, TOTAL)]


def test_a_refund_that_fails_at_xendit_is_no_refund(act: Act, gateways: Simulator) -> None:
    gateways.xendit.options.refund_fails = "INSUFFICIENT_BALANCE"
    payment = paid("xendit", act)
    provider("xendit").refund(payment, key="k", amount_rupiah=TOTAL, reason="returned")
    gateways.advance(61)
    found = provider("xendit").find_refund(payment, key="k")
    assert found is not None
    assert (found.status, found.reason) == ("failed", "INSUFFICIENT_BALANCE")
    assert status_of(payment, with_refunds=True) is PaymentStatus.SETTLED


@pytest.mark.parametrize(
    ("name", "values"), [("midtrans", {"method": "bca_va"}), ("xendit", {"channel": "BCA"})]
)
def test_a_bank_transfer_has_to_be_given_back_by_hand(
    name: str, values: dict[str, str], act: Act
) -> None:
    payment = paid(name, act, **values)
    with pytest.raises(NotRefundable):
        provider(name).refund(payment, key="k", amount_rupiah=TOTAL, reason="returned")


@both
def test_too_much_is_not_refunded(name: str, act: Act) -> None:
    payment = paid(name, act)
    with pytest.raises(GatewayRefused):
        provider(name).refund(payment, key="k", amount_rupiah=TOTAL + 1, reason="returned")


@both
def test_a_wrong_key_is_a_refusal(name: str, settings: Any) -> None:
    settings.MIDTRANS_SERVER_KEY = settings.XENDIT_SECRET_KEY = "another key of somebody"
    payment = a_payment(name)
    for ask in (
        lambda: provider(name).create(payment, purchase()),
        lambda: provider(name).status(payment),
    ):
        payment.transaction_id = "0" * 24
        with pytest.raises(GatewayRefused):
            ask()


def test_the_sandbox_settles_and_has_nothing_to_cancel() -> None:
    payment = a_payment("sandbox")
    sandbox = provider("sandbox")
    assert sandbox.create(payment, purchase()) is None
    answer = sandbox.status(payment)
    assert answer is not None
    assert answer.status is PaymentStatus.SETTLED
    with pytest.raises(NotCancellable):
        sandbox.cancel(payment)
    with pytest.raises(NotRefundable):
        sandbox.refund(payment, key="k", amount_rupiah=1, reason="r")
