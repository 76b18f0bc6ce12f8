"""What the gateways send for the words of `gateway_truth`."""

from typing import Any

from tests.integration.payments import gateway_truth as truth
from tests.unit.payments import midtrans_notifications as midtrans
from tests.unit.payments import xendit_callbacks as xendit


def midtrans_document(word: str, order_id: object, transaction_id: str) -> dict[str, Any]:
    """The notification of Midtrans about this transaction of an order."""
    ids = {"order_id": str(order_id), "transaction_id": transaction_id}
    part, rest = ("part", f"{truth.PART}.00"), ("rest", f"{truth.TOTAL - truth.PART}.00")
    match word:
        case "capture_challenge":
            return midtrans.card("capture", fraud_status="challenge", **ids)
        case "capture_accept":
            return midtrans.card("capture", **ids)
        case "partial_refund":
            return midtrans.refunded(part, **ids)
        case "refund":
            return midtrans.refunded(part, rest, transaction_status="refund", **ids)
        case "authorize" | "chargeback" | "settlement":
            return midtrans.card(word, **ids)
        case _:
            return midtrans.bank_transfer(word, **ids)


def xendit_document(word: str, order_id: object, payment_id: str) -> dict[str, Any]:
    """The callback of Xendit about this payment of an order's first attempt."""
    if word in ("part_refund", "refund"):
        amount = truth.PART if word == "part_refund" else truth.TOTAL
        return xendit.refund(payment_id=payment_id, amount=amount, refund_id=f"{word}-{payment_id}")
    event, status = {
        "paid": ("payment.capture", "SUCCEEDED"),
        "authorized": ("payment.authorization", "AUTHORIZED"),
        "failed": ("payment.failure", "FAILED"),
        "expired": ("payment.expiry", "EXPIRED"),
    }[word]
    reference = f"{order_id}-1"
    return xendit.payment_v3(event, status, payment_id=payment_id, reference_id=reference)
