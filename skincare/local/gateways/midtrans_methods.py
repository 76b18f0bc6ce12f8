"""The ways to pay on Midtrans's page, and what is special about each.

https://docs.midtrans.com/reference/get-transaction-status (the fields of each payment type)
https://docs.midtrans.com/docs/refund (what can be refunded, and whether in part)
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_DAY: Final = 24 * 60


def digits(length: int) -> str:
    return "".join(secrets.choice("0123456789") for _ in range(length))


@dataclass(frozen=True)
class Method:
    """One way to pay.

    minutes: how long the buyer has, from picking it.
    fields: what the status and the notifications hold beside the usual.
    can_refund, can_refund_in_part: through the API; otherwise only by a transfer of one's own.
    by_transaction: its status is found by the transaction's id only (BI-SNAP and DANA), and answers
    with that id as `order_id`.
    shouts: its status is answered in capitals, as the documentation's samples are.
    can_reverse: the bank can take a settlement back minutes later.
    """

    name: str
    label: str
    payment_type: str
    minutes: int
    fields: Callable[[], dict[str, object]]
    can_refund: bool = False
    can_refund_in_part: bool = False
    by_transaction: bool = False
    shouts: bool = False
    has_fraud_status: bool = True
    can_reverse: bool = False


def _va(bank: str) -> Callable[[], dict[str, object]]:
    return lambda: {"va_numbers": [{"bank": bank, "va_number": digits(12)}], "payment_amounts": []}


METHODS: Final = {
    method.name: method
    for method in (
        Method(
            "credit_card",
            "Card",
            "credit_card",
            10,
            lambda: {
                "bank": "bni",
                "masked_card": "48111111-1114",
                "card_type": "credit",
                "approval_code": digits(13),
                "channel_response_code": "00",
            },
            can_refund=True,
            can_refund_in_part=True,
        ),
        Method(
            "qris",
            "QRIS",
            "qris",
            15,
            lambda: {"issuer": "gopay", "acquirer": "gopay", "transaction_type": "on-us"},
            can_refund=True,
            can_refund_in_part=True,
        ),
        Method("gopay", "GoPay", "gopay", 15, dict, can_refund=True, can_refund_in_part=True),
        Method("shopeepay", "ShopeePay", "shopeepay", 15, dict, can_refund=True, shouts=True),
        Method(
            "dana",
            "DANA",
            "dana",
            15,
            dict,
            can_refund=True,
            can_refund_in_part=True,
            by_transaction=True,
            shouts=True,
        ),
        Method("ovo", "OVO", "ovo", 15, dict, can_refund=True),
        Method("bca_va", "BCA virtual account", "bank_transfer", _DAY, _va("bca")),
        Method(
            "permata_va",
            "Permata virtual account",
            "bank_transfer",
            _DAY,
            lambda: {"permata_va_number": digits(16)},
            can_reverse=True,
        ),
        Method(
            "danamon_va",
            "Danamon virtual account (BI-SNAP)",
            "bank_transfer",
            _DAY,
            _va("danamon"),
            by_transaction=True,
        ),
        Method(
            "echannel",
            "Mandiri bill",
            "echannel",
            _DAY,
            lambda: {"biller_code": "70012", "bill_key": digits(12)},
            can_reverse=True,
        ),
        Method(
            "indomaret",
            "Indomaret",
            "cstore",
            _DAY,
            lambda: {"payment_code": digits(14), "store": "indomaret"},
            has_fraud_status=False,
            can_reverse=True,
        ),
    )
}

#: The sandbox's cards and what their bank says. GUESS: the last one, which newer pages of the
#: documentation no longer name.
#: https://docs.midtrans.com/docs/testing-payment-on-sandbox
CARDS: Final = {
    "4811111111111114": "accept",
    "4911111111111113": "deny by the bank",
    "4611111111111116": "deny by the fraud check",
    "4511111111111117": "challenge",
}
