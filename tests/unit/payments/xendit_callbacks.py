"""Whole callbacks as Xendit sends them, with example values.

https://github.com/xendit/xendit-node/blob/master/docs/invoice/InvoiceCallback.md
https://docs.xendit.co/apidocs/payment-webhook-notification (Payments API v3)
https://archive.developers.xendit.co/api-reference/#payment-callback (Payments API v2)
https://docs.xendit.co/apidocs/refund-webhook-notification
"""

from typing import Any

ORDER_ID = "5c9f2f0e-2d61-4c9b-8f0a-2b7a52b6a111"


def invoice(
    status: str = "PAID",
    *,
    invoice_id: str = "62f00ac409accd62c85673c4",
    external_id: Any = ORDER_ID,
    amount: Any = 150000,
    **changes: Any,
) -> dict[str, Any]:
    """An invoice: PAID, SETTLED or EXPIRED."""
    document = {
        "id": invoice_id,
        "external_id": external_id,
        "user_id": "6279ce4495d10c9afc3171b8",
        "is_high": False,
        "status": status,
        "merchant_name": "Toko Skincare",
        "amount": amount,
        "payer_email": "sari@example.com",
        "description": "Order at Toko Skincare",
        "created": "2026-11-10T17:15:20.761Z",
        "updated": "2026-11-10T17:17:05.843Z",
        "currency": "IDR",
        "success_redirect_url": "https://skincare.example/thanks",
        "failure_redirect_url": "https://skincare.example/again",
    }
    if status in ("PAID", "SETTLED"):
        document |= {
            "paid_amount": amount,
            "paid_at": "2026-11-10T17:17:05.534Z",
            "payment_method": "BANK_TRANSFER",
            "payment_channel": "MANDIRI",
            "payment_destination": "8860861087714",
            "payment_id": "7a9e1f02-9d5e-4b6a-8a53-7f4d29f4b0c1",
            "bank_code": "MANDIRI",
        }
    return {**document, **changes}


def payment_v3(
    event: str = "payment.capture",
    status: str = "SUCCEEDED",
    *,
    payment_id: str = "py-1402feb0-bb79-47ae-9d1e-e69394d3949c",
    reference_id: str = ORDER_ID,
    amount: Any = 150000,
    **changes: Any,
) -> dict[str, Any]:
    """A payment of the Payments API v3."""
    captures = []
    if event == "payment.capture":
        captures = [
            {
                "capture_id": "cptr-589bd334-99d7-4a4a-8582-57ffd9a1f16b",
                "capture_amount": amount,
                "capture_timestamp": "2026-11-10T17:17:04.705Z",
            }
        ]
    data = {
        "payment_id": payment_id,
        "business_id": "6094fa76c2fd53701b8e079c",
        "status": status,
        "payment_request_id": "pr-1102feb0-bb79-47ae-9d1e-e69394d3949c",
        "request_amount": amount,
        "customer_id": "cust-b98d6f63-d240-44ec-9bd5-aa42954c4f48",
        "channel_code": "BRI_VIRTUAL_ACCOUNT",
        "country": "ID",
        "currency": "IDR",
        "reference_id": reference_id,
        "description": "Order at Toko Skincare",
        "capture_method": "AUTOMATIC",
        "captures": captures,
        "channel_properties": {
            "display_name": "Sari Contoh",
            "success_return_url": "https://skincare.example/thanks",
        },
        "payment_details": {"authorization_data": {"authorization_code": "831000"}},
        "type": "PAY",
        "created": "2026-11-10T17:15:20.566Z",
        "updated": "2026-11-10T17:17:05.566Z",
    }
    return {
        "event": event,
        "business_id": "6094fa76c2fd53701b8e079c",
        "created": "2026-11-10T17:17:06.566Z",
        "api_version": "v3",
        "data": {**data, **changes},
    }


def payment_v2(
    event: str = "payment.succeeded",
    status: str = "SUCCEEDED",
    *,
    payment_id: str = "ddpy-3cd658ae-25b9-4659-aa36-596ae41a809f",
    reference_id: str = ORDER_ID,
    amount: Any = 150000,
    **changes: Any,
) -> dict[str, Any]:
    """A payment of the Payments API v2."""
    data = {
        "id": payment_id,
        "amount": amount,
        "status": status,
        "country": "ID",
        "currency": "IDR",
        "created": "2026-11-10T17:15:20.000Z",
        "updated": "2026-11-10T17:17:05.000Z",
        "metadata": {"cart": "11-11"},
        "customer_id": "cust-b98d6f63-d240-44ec-9bd5-aa42954c4f48",
        "reference_id": reference_id,
        "payment_method": {
            "id": "pm-6f4a377d-a201-437f-9119-f8b00cbbe857",
            "type": "CARD",
            "reusability": "ONE_TIME_USE",
            "card": {
                "currency": "IDR",
                "card_information": {
                    "masked_card_number": "400000XXXXXX1091",
                    "cardholder_name": "Sari Contoh",
                },
            },
        },
        "channel_properties": None,
        "payment_request_id": "pr-3cd658ae-25b9-4659-aa36-596ae41a809f",
        "failure_code": None,
    }
    return {
        "event": event,
        "business_id": "5f27a14a9bf05c73dd040bc8",
        "created": "2026-11-10T17:17:06.001Z",
        "data": {**data, **changes},
    }


def refund(
    *,
    refund_id: str = "rfd-6f4a377d-a201-437f-9119-f8b00cbbe857",
    payment_id: Any = "py-1402feb0-bb79-47ae-9d1e-e69394d3949c",
    amount: Any = 50000,
    event: str = "refund.succeeded",
    status: str = "SUCCEEDED",
    **changes: Any,
) -> dict[str, Any]:
    """A refund. It names the payment, not the order."""
    data = {
        "id": refund_id,
        "payment_id": payment_id,
        "invoice_id": None,
        "amount": amount,
        "payment_method_type": "DIRECT_DEBIT",
        "channel_code": "BRI",
        "currency": "IDR",
        "status": status,
        "reason": "REQUESTED_BY_CUSTOMER",
        "reference_id": "b2756a1e-e6cd-4352-9a68-0483aa2b6a2",
        "failure_code": None,
        "refund_fee_amount": None,
        "created": "2026-11-12T09:12:33.001Z",
        "updated": "2026-11-12T09:12:35.001Z",
        "metadata": None,
    }
    return {
        "event": event,
        "business_id": "5f27a14a9bf05c73dd040bc8",
        "created": "2026-11-12T09:12:36.001Z",
        "data": {**data, **changes},
    }
