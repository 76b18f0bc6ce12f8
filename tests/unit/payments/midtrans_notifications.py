"""Whole notifications as Midtrans sends them, with example values, signed like theirs.

https://docs.midtrans.com/docs/https-notification-webhooks (samples per payment method)
https://docs.midtrans.com/reference/refund-transactions-card (the refund notification)
"""

import hashlib
import json
from typing import Any

from django.conf import settings

ORDER_ID = "5c9f2f0e-2d61-4c9b-8f0a-2b7a52b6a111"
TRANSACTION_ID = "57d5293c-e65f-4a29-95e4-5959c3fa335b"


def body(document: dict[str, Any], *, server_key: str | None = None) -> bytes:
    """Return the request body: `document` with its signature_key."""
    key = settings.MIDTRANS_SERVER_KEY if server_key is None else server_key
    text = document["order_id"] + document["status_code"] + document["gross_amount"] + key
    signed = {**document, "signature_key": hashlib.sha512(text.encode()).hexdigest()}
    return json.dumps(signed).encode()


def bank_transfer(
    transaction_status: str = "settlement",
    *,
    order_id: str = ORDER_ID,
    transaction_id: str = TRANSACTION_ID,
    gross_amount: str = "150000.00",
    status_code: str | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """A virtual account at BCA: pending, settlement, expire, cancel, deny, failure or a refund."""
    document = {
        "va_numbers": [{"va_number": "333333333333", "bank": "bca"}],
        "transaction_time": "2026-11-11 00:15:20",
        "transaction_status": transaction_status,
        "transaction_id": transaction_id,
        "status_message": "midtrans payment notification",
        "status_code": status_code or _STATUS_CODES.get(transaction_status, "200"),
        "payment_type": "bank_transfer",
        "payment_amounts": [],
        "order_id": order_id,
        "merchant_id": "G141532850",
        "gross_amount": gross_amount,
        "fraud_status": "accept",
        "currency": "IDR",
        "expiry_time": "2026-11-12 00:15:20",
        "customer_details": {"full_name": "Sari Contoh", "email": "sari@example.com"},
    }
    if transaction_status == "settlement":
        document["settlement_time"] = "2026-11-11 00:17:05"
    return {**document, **changes}


def card(
    transaction_status: str = "capture",
    *,
    fraud_status: str = "accept",
    order_id: str = ORDER_ID,
    transaction_id: str = TRANSACTION_ID,
    gross_amount: str = "150000.00",
    status_code: str | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """A credit card: authorize, capture, settlement, deny, cancel, a refund or a chargeback."""
    challenged = fraud_status == "challenge"
    document = {
        "transaction_time": "2026-11-11 00:15:20",
        "transaction_status": transaction_status,
        "transaction_id": transaction_id,
        "three_ds_version": "2",
        "status_message": "midtrans payment notification",
        "status_code": status_code or ("201" if challenged else "200"),
        "payment_type": "credit_card",
        "order_id": order_id,
        "merchant_id": "G141532850",
        "masked_card": "48111111-1114",
        "gross_amount": gross_amount,
        "fraud_status": fraud_status,
        "expiry_time": "2026-11-19 00:15:20",
        "eci": "05",
        "currency": "IDR",
        "channel_response_message": "Approved",
        "channel_response_code": "00",
        "card_type": "credit",
        "bank": "bni",
        "approval_code": "1578569243927",
    }
    return {**document, **changes}


def refunded(
    *refunds: tuple[str, str], transaction_status: str = "partial_refund", **changes: Any
) -> dict[str, Any]:
    """A card after refunds, each given as (refund_key, refund_amount)."""
    total = sum(float(amount) for _, amount in refunds)
    return card(
        transaction_status,
        refund_amount=f"{total:.2f}",
        refunds=[
            {
                "refund_chargeback_id": number,
                "refund_chargeback_uuid": f"21a2b0a9-a2a2-4ab1-8758-ae047845{number:04d}",
                "refund_amount": amount,
                "created_at": f"2026-11-1{number + 1} 11:16:16",
                "reason": "the buyer asked for it",
                "refund_key": key,
                "refund_method": "online",
                "bank_confirmed_at": f"2026-11-1{number + 1} 12:00:00",
            }
            for number, (key, amount) in enumerate(refunds, start=1)
        ],
        **changes,
    )


#: https://docs.midtrans.com/reference/code-statuses
_STATUS_CODES = {"pending": "201", "deny": "202", "expire": "407"}
