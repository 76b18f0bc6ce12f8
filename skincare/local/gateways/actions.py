"""What a buyer, a bank or an operator of the gateway does: one name each, for pages and tests.

Each raises the gateway's own refusal where its state does not allow it, KeyError for a name that
there is not.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from skincare.local.gateways.midtrans import Midtrans, Transaction, not_modifiable
from skincare.local.gateways.midtrans import Session as SnapSession
from skincare.local.gateways.xendit import ApiRefusal, Invoice, Session, Xendit

GOOD_CARD: Final = "4811111111111114"

Values = Mapping[str, str]

#: What can be done to a transaction of Midtrans, by the state that allows it.
MIDTRANS_BY_STATE: Final[Mapping[str, tuple[str, ...]]] = {
    "pending": ("pay", "decline", "expire"),
    "authorize": ("pay", "expire"),
    "capture": ("settle", "approve", "deny"),
    "settlement": ("reverse", "charge back", "charge back half"),
    "chargeback": ("win the dispute",),
    "partial_chargeback": ("win the dispute",),
    "expire": ("pay late",),
}


def act_on_snap(midtrans: Midtrans, session: SnapSession, action: str, values: Values) -> None:
    """Do one thing on the page of a Snap session, or to its newest transaction.

    "pick" takes `method` and, for a card, its number as `card`.
    """
    with midtrans.lock:
        if action == "pick":
            card = values.get("card", GOOD_CARD)
            midtrans.pick(session, values["method"], card=card)
            return
        if not session.transactions:
            raise not_modifiable()
        newest, act = session.transactions[-1], _MIDTRANS_ACTIONS[action]
        if action not in MIDTRANS_BY_STATE.get(newest.state, ()):
            raise not_modifiable()
        act(midtrans, newest)


_MIDTRANS_ACTIONS: Final[Mapping[str, Callable[[Midtrans, Transaction], Any]]] = {
    "pay": lambda midtrans, one: midtrans.become(one, "settlement"),
    "pay late": lambda midtrans, one: midtrans.become(one, "settlement"),
    "settle": lambda midtrans, one: midtrans.become(one, "settlement"),
    "decline": lambda midtrans, one: midtrans.become(one, "deny"),
    "expire": lambda midtrans, one: midtrans.expire(one),
    "approve": lambda midtrans, one: midtrans.review(one, approve=True),
    "deny": lambda midtrans, one: midtrans.review(one, approve=False),
    "reverse": lambda midtrans, one: midtrans.become(one, "deny"),
    "charge back": lambda midtrans, one: midtrans.charge_back(one),
    "win the dispute": lambda midtrans, one: midtrans.win_dispute(one),
    "charge back half": lambda midtrans, one: midtrans.charge_back(one, one.amount // 2),
}


def act_on_invoice(xendit: Xendit, invoice: Invoice, action: str, values: Values) -> None:
    """Do one thing to an invoice: "pay" and "pay late" take `channel`."""
    channel = values.get("channel", "QRIS")
    with xendit.lock:
        match action:
            case "pay" if invoice.status == "PENDING":
                xendit.pay_invoice(invoice, channel)
            case "pay late" if invoice.status == "EXPIRED":
                xendit.pay_invoice(invoice, channel)
            case "decline":  # no webhook of an invoice reports a failed try
                pass
            case "expire":
                xendit.expire_invoice(invoice)
            case "charge back" if invoice.payment:
                xendit.raise_dispute(invoice.payment, invoice.asked["external_id"])
            case "lose the dispute" if invoice.payment:
                xendit.end_dispute(invoice.payment, status="LOST")
            case "lose half of the dispute" if invoice.payment:
                half = int(invoice.payment.amount) // 2
                xendit.end_dispute(invoice.payment, status="LOST", rupiah=half)
            case "win the dispute" if invoice.payment:
                xendit.end_dispute(invoice.payment, status="WON")
            case _:
                raise ApiRefusal(400, "INELIGIBLE_TRANSACTION_STATUS", f"invoice {invoice.status}")


def act_on_session(xendit: Xendit, session: Session, action: str, values: Values) -> None:
    """Do one thing to a payment session: "pay", "pay late" and "decline" take `channel`."""
    channel = values.get("channel", "QRIS")
    with xendit.lock:
        match action:
            case "pay" | "decline" if session.status == "ACTIVE":
                xendit.pay_session(session, channel, fails=action == "decline")
            case "pay late" if session.status == "EXPIRED":
                xendit.pay_session(session, channel)
            case _:
                raise ApiRefusal(400, "INVALID_SESSION_STATUS", f"session {session.status}")
