"""What the OpenAPI document shows of each request, answer and problem, along one purchase.

Tests send the requests and hold the answers to what the shop really gives.
"""

from typing import Any, Final

from orders.problem_types import PROBLEM_TYPES, rows
from orders.problems import TYPE_PREFIX

ORDER_ID: Final = "0c9d7be5-6f2d-4f39-93e5-9a0e6a2b9a11"
NUMBER: Final = "SKN-20261111-7F3K2Q"

_PRODUCT: Final[dict[str, Any]] = {
    "sku": "SRM-VITC-30",
    "name": "Serum Vitamin C 10% 30 ml",
    "description": "Serum vitamin C yang membantu meratakan warna kulit dan menyamarkan noda.",
    "category": "serum",
    "picture_url": "https://shop.example/static/orders/products/serum.png",
    "price_rupiah": 159_000,
    "currency": "IDR",
    "available": 76,
}
_CHECKED_OUT: Final[dict[str, Any]] = {
    "order_id": ORDER_ID,
    "number": NUMBER,
    "status": "pending",
    "payment_method": "midtrans",
    "total_rupiah": 318_000,
    "currency": "IDR",
}

#: By parameter, wherever it is.
PARAMETERS: Final[dict[str, Any]] = {
    "Idempotency-Key": "4f0c2f7e-9f0b-4c57-9d0e-0d5b1f1c7a52",
    "order_id": ORDER_ID,
    "sku": "SRM-VITC-30",
    "q": "serum vitamin",
    "category": "serum",
    "limit": 20,
    "offset": 0,
    "x-callback-token": "the callback verification token of the Xendit dashboard",
}

#: By operation.
REQUESTS: Final[dict[str, Any]] = {
    "POST /checkout": {
        "items": [{"sku": "SRM-VITC-30", "quantity": 2}],
        "email": "sari@example.com",
        "payment_method": "midtrans",
        "language": "id",
    },
    "POST /orders/{order_id}/payments": {"payment_method": "qris"},
    "POST /webhooks/midtrans": {
        "transaction_time": "2026-11-11 10:20:05",
        "transaction_status": "settlement",
        "transaction_id": "57d5293c-e65f-4a29-95e4-5959c3fa335b",
        "status_message": "midtrans payment notification",
        "status_code": "200",
        "signature_key": "sha512(order_id + status_code + gross_amount + server key), in hex",
        "payment_type": "bank_transfer",
        "order_id": ORDER_ID,
        "merchant_id": "G141532850",
        "gross_amount": "318000.00",
        "fraud_status": "accept",
        "currency": "IDR",
    },
    "POST /webhooks/xendit": {
        "event": "payment.capture",
        "business_id": "5f27a14a9bf05c73dd040bc8",
        "created": "2026-11-11T10:20:05+07:00",
        "data": {
            "payment_id": "py-1402feb0-bb79-47ae-9d1e-e69394d3949c",
            "payment_request_id": "pr-1102feb0-bb79-47ae-9d1e-e69394d3949c",
            "reference_id": ORDER_ID,
            "status": "SUCCEEDED",
            "type": "PAY",
            "country": "ID",
            "currency": "IDR",
            "request_amount": 318_000,
            "channel_code": "DANA",
            "captures": [
                {
                    "capture_id": "cap-1502feb0-bb79-47ae-9d1e-e69394d3949c",
                    "capture_amount": 318_000,
                    "capture_timestamp": "2026-11-11T10:20:05+07:00",
                }
            ],
            "created": "2026-11-11T10:19:00+07:00",
            "updated": "2026-11-11T10:20:05+07:00",
        },
    },
}

_ORDER: Final[dict[str, Any]] = {
    **_CHECKED_OUT,
    "status": "paid",
    "is_held": False,
    "refunded_rupiah": 0,
    "lines": [
        {
            "sku": "SRM-VITC-30",
            "name": "Serum Vitamin C 10% 30 ml",
            "quantity": 2,
            "unit_price_rupiah": 159_000,
            "amount_rupiah": 318_000,
        }
    ],
    "payments": [
        {
            "payment_id": "4f0f1c52-7f0b-4a52-9a36-0d1c5b8f7b11",
            "provider": "midtrans",
            "status": "settled",
            "redirect_url": "",
            "expires_at": "2026-11-11T10:33:31.402Z",
            "created_at": "2026-11-11T10:18:31.402Z",
        }
    ],
    "pay_until": None,
    "created_at": "2026-11-11T10:18:31.402Z",
    "paid_at": "2026-11-11T10:20:06.118Z",
    "shipped_at": None,
}

ANSWERS: Final[dict[str, Any]] = {
    "POST /checkout": _CHECKED_OUT,
    "GET /orders/{order_id}": _ORDER,
    "POST /orders/{order_id}/cancel": {
        **_ORDER,
        "status": "cancelled",
        "payments": [],
        "paid_at": None,
        "shipped_at": None,
    },
    "POST /orders/{order_id}/payments": {
        "payment_id": "4f0f1c52-7f0b-4a52-9a36-0d1c5b8f7b11",
        "provider": "midtrans",
        "redirect_url": "https://app.midtrans.com/snap/v4/redirection/66e4fa55-fdac-4ef9-91b5-733b97d1b862",
        "token": "66e4fa55-fdac-4ef9-91b5-733b97d1b862",
        "expires_at": "2026-11-11T10:33:31.402Z",
        "status": "pending",
    },
    "GET /products": {"items": [_PRODUCT], "total": 1, "limit": 20, "offset": 0},
    "GET /products/{sku}": _PRODUCT,
    "GET /categories": {
        "items": [
            {"name": "cleanser", "label": "Pembersih", "products": 3},
            {"name": "serum", "label": "Serum", "products": 5},
        ]
    },
    "GET /payment-methods": {
        "items": [
            {
                "name": "midtrans",
                "label": "QRIS, dompet digital, transfer bank, atau kartu, lewat Midtrans",
            }
        ]
    },
    "GET /problems": {"items": rows({"not-enough-stock": PROBLEM_TYPES["not-enough-stock"]})},
    "POST /webhooks/midtrans": {"status": "ok"},
    "POST /webhooks/xendit": {"status": "ok"},
}

#: The fields that a problem names, where it names any.
_ERRORS: Final[dict[str, tuple[str, str]]] = {
    "invalid-request": ("items[0].quantity", "Input should be a valid integer"),
    "missing-idempotency-key": (
        "Idempotency-Key",
        "must be sent: a value of your own, new for each order",
    ),
    "invalid-idempotency-key": ("Idempotency-Key", "must be 1 to 255 visible ASCII characters"),
    "idempotency-key-reused": (
        "Idempotency-Key",
        "was used before with another body: use a new one",
    ),
    "empty-cart": ("items", "must have at least one item"),
    "too-many-lines": ("items", "must have at most 50 items"),
    "quantity-out-of-range": ("items[0].quantity", "must be 1 to 99"),
    "duplicate-sku": (
        "items[1].sku",
        "is in items[0] too: put all pieces of a product into one item",
    ),
    "unknown-sku": ("items[0].sku", "is not a product that we sell"),
    "not-enough-stock": ("items[0].quantity", "must be at most 3, that is all we have"),
    "invalid-email": ("email", "must be an email address"),
    "unknown-payment-method": ("payment_method", "must be one of: midtrans, xendit"),
}
_DETAILS: Final[dict[str, str]] = {
    "invalid-token": "Signature has expired",
    "order-not-found": f"No order has the id {ORDER_ID}.",
}


def problem_example(name: str) -> dict[str, Any]:
    """Return the problem document of this kind as a caller would get it."""
    kind = PROBLEM_TYPES[name]
    document: dict[str, Any] = {
        "type": f"{TYPE_PREFIX}{name}",
        "title": str(kind.title),
        "status": kind.status,
    }
    if name in _ERRORS:
        field, rule = _ERRORS[name]
        if name != "invalid-request":
            document["detail"] = f"{field}: {rule}"
        document["errors"] = [{"field": field, "rule": rule}]
    elif name in _DETAILS:
        document["detail"] = _DETAILS[name]
    return document
