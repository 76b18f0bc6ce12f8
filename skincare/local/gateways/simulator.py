"""Both gateways in one process, on one port of 127.0.0.1: their APIs, pages, webhooks and clock."""

import threading
from typing import Final, Self

from skincare.local.gateways import midtrans_api, xendit_api
from skincare.local.gateways.clock import Agenda, Clock
from skincare.local.gateways.control import Control
from skincare.local.gateways.midtrans import Midtrans
from skincare.local.gateways.midtrans_api import MidtransApi
from skincare.local.gateways.pages import Pages
from skincare.local.gateways.web import Routes, serve
from skincare.local.gateways.webhooks import Webhooks
from skincare.local.gateways.xendit import Xendit
from skincare.local.gateways.xendit_api import XenditApi

_TICK: Final = 0.02  # seconds


class Simulator:
    """A context manager: it answers from its start to its end.

    `midtrans`, `xendit`, `webhooks` and `clock` are there for tests of the same process; others use
    the control API.
    """

    def __init__(
        self,
        *,
        midtrans_server_key: str,
        xendit_secret_key: str,
        xendit_callback_token: str,
        midtrans_webhook: str = "",
        xendit_webhook: str = "",
        host: str = "127.0.0.1",
        port: int = 0,
        public_url: str = "",
    ) -> None:
        """port: 0 for one that is free. A webhook without an address is lost.

        public_url: where a buyer's browser reaches it, if that is another address.
        """
        self.clock = Clock()
        self._agenda = Agenda(self.clock)
        self.webhooks = Webhooks(self.clock)
        self.midtrans = Midtrans(
            self.clock,
            self._agenda,
            self.webhooks,
            server_key=midtrans_server_key,
            webhook_url=midtrans_webhook,
        )
        self.xendit = Xendit(
            self.clock,
            self._agenda,
            self.webhooks,
            secret_key=xendit_secret_key,
            callback_token=xendit_callback_token,
            webhook_url=xendit_webhook,
        )
        self.midtrans_api = MidtransApi(self.midtrans, self.clock, lambda: self.url)
        self.xendit_api = XenditApi(self.xendit, self.clock, lambda: self.url)
        routes = Routes()
        self.midtrans_api.add_to(routes)
        self.xendit_api.add_to(routes)
        Pages(self.midtrans, self.xendit, self.webhooks).add_to(routes)
        Control(
            self.midtrans,
            self.xendit,
            self.webhooks,
            advance=self.advance,
            calls=lambda: {"midtrans": self.midtrans_api.calls, "xendit": self.xendit_api.calls},
        ).add_to(routes)
        self._server = serve(routes.answer, port, host=host)
        self.url = public_url or f"http://{host}:{self._server.server_address[1]}"
        self._turn = threading.Lock()
        self._stopped = threading.Event()

    @property
    def midtrans_snap_url(self) -> str:
        return f"{self.url}{midtrans_api.PREFIX}/snap/v1"

    @property
    def midtrans_api_url(self) -> str:
        return f"{self.url}{midtrans_api.PREFIX}"

    @property
    def xendit_api_url(self) -> str:
        return f"{self.url}{xendit_api.PREFIX}"

    def advance(self, seconds: float) -> None:
        """Move the clock, and do on the way all that is due, each at its moment."""
        with self._turn:
            self.clock.advance(seconds, next_due=self._next_due, run_due=self._run_due)

    def deliver(self) -> None:
        """Make all calls that are due now, and wait for their answers."""
        self.advance(0.0)

    def run(self) -> None:
        """Answer, and do what is due, until `stop`."""
        threading.Thread(target=self._server.serve_forever, args=(_TICK,), daemon=True).start()
        while not self._stopped.wait(_TICK):
            with self._turn:
                self._agenda.run_due()
                self.webhooks.start_due()

    def stop(self) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self.webhooks.close()

    def __enter__(self) -> Self:
        threading.Thread(target=self.run, name="gateways", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _next_due(self) -> float | None:
        moments = (self._agenda.next_due(), self.webhooks.next_due())
        return min((moment for moment in moments if moment is not None), default=None)

    def _run_due(self) -> None:
        self._agenda.run_due()
        self.webhooks.run_due()
