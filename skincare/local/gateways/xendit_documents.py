"""What Xendit sends beside its present events: the dashboard's tests, older shapes.

The tests' ids are the same for all merchants; the older shapes are those that were seen in use.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import uuid4

from skincare.local.gateways.xendit import BUSINESS_ID, hex_id

DASHBOARD_TESTS: Final[Mapping[str, dict[str, Any]]] = {
    "invoice": {
        "id": "579c8d61f23fa4ca35e52da4",
        "external_id": "invoice_123124123",
        "user_id": "5781d19b2e2385880609791c",
        "is_high": True,
        "payment_method": "BANK_TRANSFER",
        "status": "PAID",
        "merchant_name": "Xendit",
        "amount": 50000,
        "paid_amount": 50000,
        "bank_code": "PERMATA",
        "paid_at": "2016-10-12T08:15:03.404Z",
        "payer_email": "wildan@xendit.example",
        "description": "This is a description",
        "adjusted_received_amount": 47500,
        "fees_paid_amount": 0,
        "updated": "2016-10-10T08:15:03.404Z",
        "created": "2016-10-10T08:15:03.404Z",
    },
    "virtual_account": {
        "id": "58a435201b6ce2a355f46070",
        "payment_id": "1487156512722",
        "callback_virtual_account_id": "58a434ba39cc9e4a230d5a2b",
        "owner_id": "5824128aa6f9f9b648be9d76",
        "external_id": "fixed-va-1487156410",
        "account_number": "1001470126",
        "bank_code": "MANDIRI",
        "merchant_code": "88464",
        "amount": 80000,
        "transaction_timestamp": "2017-02-15T11:01:52.722Z",
        "created": "2017-02-15T11:01:52.896Z",
        "updated": "2017-02-15T11:01:52.896Z",
    },
    "ewallet": {
        "event": "ewallet.capture",
        "business_id": BUSINESS_ID,
        "created": "2020-04-20T16:25:52Z",
        "data": {
            "id": "ewc_532as23lew2321id",
            "reference_id": "test-payload",
            "status": "SUCCEEDED",
            "currency": "IDR",
            "charge_amount": 1000,
            "capture_amount": 1000,
            "channel_code": "ID_SHOPEEPAY",
            "created": "2020-04-20T16:25:52Z",
            "updated": "2020-04-20T16:25:52Z",
        },
    },
    "qr": {
        "event": "qr.payment",
        "id": "qrpy_8182837te-87st-49ing-8696-1239bd4d759c",
        "amount": 1500,
        "created": "2020-01-08T18:18:18.857Z",
        "qr_code": {"id": "qr_8182837te", "external_id": "testing_id_123", "type": "DYNAMIC"},
        "status": "COMPLETED",
    },
}


def ewallet_capture(reference: str, amount: int, now: str) -> dict[str, Any]:
    return {
        "event": "ewallet.capture",
        "business_id": BUSINESS_ID,
        "created": now,
        "data": {
            "id": f"ewc_{uuid4()}",
            "reference_id": reference,
            "status": "SUCCEEDED",
            "currency": "IDR",
            "charge_amount": amount,
            "capture_amount": amount,
            "refunded_amount": None,
            "channel_code": "ID_OVO",
            "created": now,
            "updated": now,
        },
    }


def qr_payment_v1(reference: str, amount: int, now: str) -> dict[str, Any]:
    return {
        "event": "qr.payment",
        "id": f"qrpy_{uuid4()}",
        "amount": amount,
        "created": now,
        "qr_code": {"id": f"qr_{uuid4()}", "external_id": reference, "type": "DYNAMIC"},
        "status": "COMPLETED",
    }


def qr_payment_2022(reference: str, amount: int, now: str) -> dict[str, Any]:
    return {
        "event": "qr.payment",
        "api_version": "2022-07-31",
        "business_id": BUSINESS_ID,
        "created": now,
        "data": {
            "id": f"qrpy_{uuid4()}",
            "qr_id": f"qr_{uuid4()}",
            "reference_id": reference,
            "amount": amount,
            "currency": "IDR",
            "status": "SUCCEEDED",
            "channel_code": "ID_DANA",
            "created": now,
        },
    }


def virtual_account_paid(reference: str, amount: int, now: str) -> dict[str, Any]:
    """Flat, with neither event nor status nor currency."""
    return {
        "id": hex_id(),
        "payment_id": str(uuid4()),
        "callback_virtual_account_id": hex_id(),
        "owner_id": BUSINESS_ID,
        "external_id": reference,
        "account_number": "9999000001",
        "bank_code": "BNI",
        "merchant_code": "8808",
        "amount": amount,
        "transaction_timestamp": now,
    }


OLDER_SHAPES: Final[Mapping[str, Callable[[str, int, str], dict[str, Any]]]] = {
    "ewallet.capture": ewallet_capture,
    "qr.payment v1": qr_payment_v1,
    "qr.payment 2022-07-31": qr_payment_2022,
    "virtual account": virtual_account_paid,
}
