"""The payment pages: what a buyer sees, and below it what banks and the gateway can do.

Plain HTML without scripts. Each button posts back to its page.
"""

from collections.abc import Callable, Iterable
from html import escape
from typing import Final
from urllib.parse import urlencode

from skincare.local.gateways import midtrans_api, xendit_api
from skincare.local.gateways.actions import (
    MIDTRANS_BY_STATE,
    act_on_invoice,
    act_on_session,
    act_on_snap,
)
from skincare.local.gateways.midtrans import CoreRefusal, Midtrans
from skincare.local.gateways.midtrans import Session as SnapSession
from skincare.local.gateways.midtrans_methods import CARDS, METHODS
from skincare.local.gateways.web import Answer, Request, Routes
from skincare.local.gateways.webhooks import Trouble, Webhooks
from skincare.local.gateways.xendit import CHANNELS, ApiRefusal, Invoice, Session, Xendit

_STYLE: Final = """
body{font:16px/1.5 system-ui,sans-serif;max-width:30rem;margin:0 auto;padding:1rem;color:#222}
h1{font-size:1.2rem}h2{font-size:1rem;margin-top:2rem;color:#555}
.amount{font-size:1.6rem;font-weight:600}
form{display:inline}button,a.button{font:inherit;display:inline-block;margin:.2rem .3rem .2rem 0;
padding:.5rem .8rem;border:1px solid #888;border-radius:.4rem;background:#fff;color:#222;
text-decoration:none;cursor:pointer}
button.main,a.main{background:#0a6;border-color:#0a6;color:#fff}
.note{color:#555;font-size:.9rem}code{overflow-wrap:anywhere}
"""

#: Troubles of the next calls: the button's name → what it sets.
_TROUBLES: Final = {
    "lose the next": Trouble(lose=1),
    "lose all": Trouble(lose=-1),
    "double the next": Trouble(double=1),
    "delay by a minute": Trouble(delay=60.0),
    "hold back": Trouble(hold=True),
    "as usual": Trouble(),
}


class Pages:
    """The pages of both gateways."""

    def __init__(self, midtrans: Midtrans, xendit: Xendit, webhooks: Webhooks) -> None:
        self._midtrans = midtrans
        self._xendit = xendit
        self._webhooks = webhooks

    def add_to(self, routes: Routes) -> None:
        for path, page, act in (
            (f"{midtrans_api.PREFIX}/snap/v4/redirection/{{id}}", self.snap, self.snap_act),
            (f"{xendit_api.PREFIX}/web/invoices/{{id}}", self.invoice, self.invoice_act),
            (f"{xendit_api.PREFIX}/web/sessions/{{id}}", self.session, self.session_act),
        ):
            routes.add("GET", path, page)
            routes.add("POST", path, act)

    # -- Midtrans ------------------------------------------------------------------------------

    def snap(self, request: Request, id: str) -> Answer:  # noqa: A002 the path's name
        session = self._midtrans.sessions.get(id)
        if session is None:
            return _page("Midtrans (simulator)", "<p>There is no such payment page.</p>", 404)
        newest = session.transactions[-1] if session.transactions else None
        parts = [_amount(session.amount, session.order_id)]
        if newest is not None:
            parts.append(
                f'<p id="state">{escape(newest.method.label)}: <b>{escape(newest.state)}</b></p>'
            )
        if self._midtrans.page_is_open(session):
            parts.append("<p>Another card or way to pay:</p>" if newest else "<p>Pay by:</p>")
            parts += [
                _button("pick", f"Card {number} ({verdict})", method="credit_card", card=number)
                for number, verdict in CARDS.items()
            ]
            parts += [
                _button("pick", method.label, method=method.name)
                for method in METHODS.values()
                if method.name != "credit_card"
            ]
        elif newest is None:
            parts.append(f'<p id="state">This page is <b>{self._ended(session)}</b>.</p>')
        elif newest.state == "pending":
            parts.append(_button("pay", "Pay", main=True))
            parts.append(_button("decline", "Be declined"))
        parts.append(_back(_finish_url(session)))
        if newest is not None:
            front = ("pay", "decline")
            behind = [a for a in MIDTRANS_BY_STATE.get(newest.state, ()) if a not in front]
            parts.append("<h2>Behind the counter</h2>")
            parts += [_button(action, action.capitalize()) for action in behind]
        return _page("Midtrans (simulator)", "\n".join([*parts, *self._calls("midtrans")]))

    def snap_act(self, request: Request, id: str) -> Answer:  # noqa: A002 the path's name
        session = self._midtrans.sessions[id]
        return self._act(
            request,
            "midtrans",
            lambda action, values: act_on_snap(self._midtrans, session, action, values),
        )

    def _ended(self, session: SnapSession) -> str:
        return session.state if session.state != "open" else "expired"

    # -- Xendit --------------------------------------------------------------------------------

    def invoice(self, request: Request, id: str) -> Answer:  # noqa: A002 the path's name
        if id not in self._xendit.invoices:
            return _page("Xendit (simulator)", "<p>There is no such invoice.</p>", 404)
        invoice: Invoice = self._xendit.invoices[id]
        return self._xendit_page(
            invoice.amount,
            invoice.asked["external_id"],
            invoice.status,
            is_open=invoice.status == "PENDING",
            back=invoice.asked.get("success_redirect_url", ""),
            behind=["expire"]
            if invoice.status == "PENDING"
            else ["pay late", "charge back", "lose the dispute", "win the dispute"],
        )

    def invoice_act(self, request: Request, id: str) -> Answer:  # noqa: A002 the path's name
        invoice = self._xendit.invoices[id]
        return self._act(
            request,
            "xendit",
            lambda action, values: act_on_invoice(self._xendit, invoice, action, values),
        )

    def session(self, request: Request, id: str) -> Answer:  # noqa: A002 the path's name
        if id not in self._xendit.sessions:
            return _page("Xendit (simulator)", "<p>There is no such session.</p>", 404)
        session: Session = self._xendit.sessions[id]
        return self._xendit_page(
            session.asked["amount"],
            session.asked["reference_id"],
            session.status,
            is_open=session.status == "ACTIVE",
            back=session.asked.get("success_return_url", ""),
            behind=["pay late"] if session.status == "EXPIRED" else [],
        )

    def session_act(self, request: Request, id: str) -> Answer:  # noqa: A002 the path's name
        session = self._xendit.sessions[id]
        return self._act(
            request,
            "xendit",
            lambda action, values: act_on_session(self._xendit, session, action, values),
        )

    def _xendit_page(
        self,
        amount: float,
        reference: str,
        status: str,
        *,
        is_open: bool,
        back: str,
        behind: Iterable[str],
    ) -> Answer:
        parts = [_amount(amount, reference), f'<p id="state"><b>{escape(status)}</b></p>']
        if is_open:
            parts.append("<p>Pay by:</p>")
            parts += [
                _button("pay", channel, channel=channel, main=channel == "QRIS")
                for channel in CHANNELS
            ]
            parts.append(_button("decline", "Card that is declined", channel="CREDIT_CARD"))
        parts.append(_back(back))
        parts.append("<h2>Behind the counter</h2>")
        parts += [_button(action, action.capitalize()) for action in behind]
        return _page("Xendit (simulator)", "\n".join([*parts, *self._calls("xendit")]))

    # -- Both ----------------------------------------------------------------------------------

    def _act(
        self, request: Request, gateway: str, act: Callable[[str, dict[str, str]], None]
    ) -> Answer:
        values = request.form
        action = values.pop("action", "")
        if action in _TROUBLES:
            chosen = _TROUBLES[action]
            self._webhooks.trouble[gateway] = Trouble(**vars(chosen))
        elif action == "release in reverse":
            self._webhooks.release(gateway, reverse=True)
        elif action == "send again":
            self._webhooks.resend(int(values["number"]))
        else:
            try:
                act(action, values)
            except (CoreRefusal, ApiRefusal) as refusal:
                return _page("Not possible", f"<p>{escape(refusal.message)}</p>", 409)
            except KeyError:
                return _page("Not possible", "<p>There is no such action.</p>", 400)
        return Answer.see_other(request.path)

    def _calls(self, gateway: str) -> list[str]:
        """Return the part of a page about the webhooks."""
        parts = ["<h2>Calls to the shop</h2>"]
        parts += [_button(name, name.capitalize()) for name in (*_TROUBLES, "release in reverse")]
        for call in [c for c in self._webhooks.all if c.gateway == gateway][-5:]:
            answers = ", ".join(str(answer or "no answer") for answer in call.answers) or "not sent"
            name = call.document.get("transaction_status") or call.document.get("event")
            parts.append(
                f'<p class="note">{escape(str(name or call.document.get("status")))}: '
                f"{call.state} ({answers}) "
                f"{_button('send again', 'Send again', number=str(call.number))}</p>"
            )
        return parts


def _page(title: str, body: str, status: int = 200) -> Answer:
    return Answer.html(
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style><h1>{title}</h1>{body}</html>",
        status,
    )


def _amount(amount: float, reference: str) -> str:
    rupiah = f"{amount:,.0f}".replace(",", ".")
    return f'<p class="amount">Rp{rupiah}</p><p class="note"><code>{escape(reference)}</code></p>'


def _button(action: str, label: str, *, main: bool = False, **values: str) -> str:
    fields = "".join(
        f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'
        for name, value in {"action": action, **values}.items()
    )
    kind = ' class="main"' if main else ""
    return f'<form method="post">{fields}<button{kind}>{escape(label)}</button></form>'


def _back(url: str) -> str:
    return f'<p><a class="button main" href="{escape(url)}">Back to the shop</a></p>' if url else ""


def _finish_url(session: SnapSession) -> str:
    """Midtrans appends what became of the transaction; a shop must not believe it."""
    url = (session.asked.get("callbacks") or {}).get("finish", "")
    if not url or not session.transactions:
        return str(url)
    newest = session.transactions[-1]
    result = {
        "order_id": newest.order_id,
        "status_code": "200" if newest.is_paid else "201",
        "transaction_status": newest.state,
    }
    return f"{url}{'&' if '?' in url else '?'}{urlencode(result)}"
