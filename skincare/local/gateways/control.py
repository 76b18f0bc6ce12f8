"""The simulators' own API, for tests and demonstrations: the clock, actions, what was seen.

POST /control/clock      {"advance": 3600}
POST /control/options    {"midtrans": {"errors_as_200": true}, "xendit": {…}}
POST /control/webhooks   {"gateway": "midtrans", "lose": -1}, "release": "reverse", …
POST /control/act        {"gateway": "midtrans", "reference": "…", "action": "pay", …}
POST /control/send       {"gateway": "xendit", "dashboard_test": "invoice"}, "older_shape": …
GET  /control/state
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from skincare.local.gateways.actions import act_on_invoice, act_on_session, act_on_snap
from skincare.local.gateways.midtrans import CoreRefusal, Midtrans
from skincare.local.gateways.web import Answer, Request, Routes
from skincare.local.gateways.webhooks import Trouble, Webhooks
from skincare.local.gateways.xendit import ApiRefusal, Xendit
from skincare.local.gateways.xendit_documents import DASHBOARD_TESTS, OLDER_SHAPES


class Control:
    """Everything that no real gateway offers."""

    def __init__(
        self,
        midtrans: Midtrans,
        xendit: Xendit,
        webhooks: Webhooks,
        *,
        advance: Callable[[float], None],
        calls: Callable[[], dict[str, list[str]]],
    ) -> None:
        self._midtrans = midtrans
        self._xendit = xendit
        self._webhooks = webhooks
        self._advance = advance
        self._calls = calls

    def add_to(self, routes: Routes) -> None:
        for name in ("clock", "options", "webhooks", "act", "send"):
            routes.add("POST", f"/control/{name}", getattr(self, name))
        routes.add("GET", "/control/state", self.state)

    def clock(self, request: Request) -> Answer:
        self._advance(float(request.json()["advance"]))
        return Answer.json({})

    def options(self, request: Request) -> Answer:
        for gateway, values in request.json().items():
            options = self._midtrans.options if gateway == "midtrans" else self._xendit.options
            for name, value in values.items():
                if not hasattr(options, name):
                    return Answer.json({"message": f"{gateway} has no option {name}"}, 400)
                setattr(options, name, value)
        return Answer.json({})

    def webhooks(self, request: Request) -> Answer:
        asked = request.json()
        gateway, release = asked.pop("gateway"), asked.pop("release", None)
        url = asked.pop("url", None)
        if url is not None:
            (self._midtrans if gateway == "midtrans" else self._xendit).webhook_url = url
        if release:
            self._webhooks.release(gateway, reverse=release == "reverse")
        else:
            self._webhooks.trouble[gateway] = Trouble(**asked)
        return Answer.json({})

    def act(self, request: Request) -> Answer:
        asked = request.json()
        gateway, reference = asked.pop("gateway"), asked.pop("reference")
        action = asked.pop("action")
        try:
            if gateway == "midtrans":
                act_on_snap(self._midtrans, self._snap(reference), action, asked)
            else:
                self._act_on_xendit(reference, action, asked)
        except (CoreRefusal, ApiRefusal) as refusal:
            return Answer.json({"message": refusal.message}, 409)
        except LookupError:
            return Answer.json({"message": f"no {reference} or no {action}"}, 404)
        return Answer.json({})

    def _snap(self, reference: str) -> Any:
        """Return the newest session of an order id, or the one of a token."""
        found = [s for s in self._midtrans.sessions.values() if reference in (s.order_id, s.token)]
        return found[-1]

    def _act_on_xendit(self, reference: str, action: str, values: dict[str, str]) -> None:
        invoices = [
            invoice
            for invoice in self._xendit.invoices.values()
            if reference in (invoice.id, invoice.asked["external_id"])
        ]
        if invoices:
            act_on_invoice(self._xendit, invoices[-1], action, values)
            return
        sessions = [
            session
            for session in self._xendit.sessions.values()
            if reference in (session.id, session.asked["reference_id"])
        ]
        act_on_session(self._xendit, sessions[-1], action, values)

    def send(self, request: Request) -> Answer:
        asked = request.json()
        if asked["gateway"] == "midtrans":
            self._midtrans.send_dashboard_test()
        elif test := asked.get("dashboard_test"):
            self._xendit.send(DASHBOARD_TESTS[test], token=asked.get("token"))
        else:
            shape = OLDER_SHAPES[asked["older_shape"]]
            document = shape(asked["reference"], asked["amount"], asked["now"])
            self._xendit.send(document, token=asked.get("token"))
        return Answer.json({})

    def state(self, request: Request) -> Answer:
        return Answer.json(
            {
                "charges": {
                    "midtrans": dict(Counter(self._midtrans.charges)),
                    "xendit": dict(Counter(self._xendit.charges)),
                },
                "transactions": [
                    self._midtrans.status(transaction)
                    for transaction in self._midtrans.transactions
                ],
                "invoices": [
                    {
                        "id": invoice.id,
                        "external_id": invoice.asked["external_id"],
                        "status": invoice.status,
                    }
                    for invoice in self._xendit.invoices.values()
                ],
                "calls": {name: dict(Counter(calls)) for name, calls in self._calls().items()},
                "webhooks": [call.summary() for call in self._webhooks.all],
            }
        )
