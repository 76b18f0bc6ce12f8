"""The simulators, and a shop that only writes down what it is told."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests

from skincare.local.gateways.simulator import Simulator
from skincare.local.gateways.web import Answer, Request, serve

SERVER_KEY = "SB-Mid-server-tests"
SECRET_KEY = "xnd_development_tests"
CALLBACK_TOKEN = "callback-token-of-tests"


@dataclass
class Shop:
    """Its webhook answers 200, or what `answers` holds, the first first."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    heard: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def take(self, request: Request) -> Answer:
        self.heard.append(request.json())
        self.headers.append(dict(request.headers))
        status = self.answers.pop(0) if self.answers else 200
        location = {"Location": f"{self.url}moved"} if 300 <= status < 400 else {}
        return Answer(status, b"", location)


@pytest.fixture
def shop() -> Iterator[Shop]:
    shop = Shop()
    server = serve(shop.take, 0)
    shop.url = f"http://127.0.0.1:{server.server_address[1]}/"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield shop
    server.shutdown()
    server.server_close()


@pytest.fixture
def gateways(shop: Shop) -> Iterator[Simulator]:
    with Simulator(
        midtrans_server_key=SERVER_KEY,
        xendit_secret_key=SECRET_KEY,
        xendit_callback_token=CALLBACK_TOKEN,
        midtrans_webhook=shop.url,
        xendit_webhook=shop.url,
    ) as simulator:
        yield simulator


Call = Callable[..., requests.Response]


@pytest.fixture
def midtrans(gateways: Simulator) -> Call:
    """Call Midtrans: `midtrans("POST", "/v2/x/cancel", …)`; paths of Snap begin with /snap."""

    def call(method: str, path: str, *, key: str = SERVER_KEY, **options: Any) -> requests.Response:
        url = f"{gateways.midtrans_api_url}{path}"
        return requests.request(method, url, auth=(key, ""), timeout=10, **options)

    return call


@pytest.fixture
def xendit(gateways: Simulator) -> Call:
    """Call Xendit: `xendit("POST", "/v2/invoices", json={…})`."""

    def call(method: str, path: str, *, key: str = SECRET_KEY, **options: Any) -> requests.Response:
        url = f"{gateways.xendit_api_url}{path}"
        return requests.request(method, url, auth=(key, ""), timeout=10, **options)

    return call


@pytest.fixture
def act(gateways: Simulator) -> Callable[..., int]:
    """Do what a buyer or a bank does: `act("midtrans", "order-1", "pay")`; returns the status."""

    def do(gateway: str, reference: str, action: str, **values: str) -> int:
        asked = {"gateway": gateway, "reference": reference, "action": action, **values}
        answer = requests.post(f"{gateways.url}/control/act", json=asked, timeout=10)
        gateways.deliver()
        return answer.status_code

    return do
