"""Midtrans's official Python client against one address: create, ask, cancel, expire, refund.

Run with the address of the simulators and the server key; prints what it saw as JSON.
"""

import json
import sys

import requests
from midtransclient import CoreApi, Snap
from midtransclient.config import ApiConfig
from midtransclient.error_midtrans import MidtransAPIError

base, server_key = sys.argv[1:]
ApiConfig.SNAP_SANDBOX_BASE_URL = f"{base}/midtrans/snap/v1"
ApiConfig.CORE_SANDBOX_BASE_URL = f"{base}/midtrans"
snap = Snap(is_production=False, server_key=server_key)
core = CoreApi(is_production=False, server_key=server_key)


def create(order_id: str) -> dict[str, str]:
    details = {"order_id": order_id, "gross_amount": 150000}
    return snap.create_transaction({"transaction_details": details})


def act(order_id: str, action: str, **values: str) -> None:
    asked = {"gateway": "midtrans", "reference": order_id, "action": action, **values}
    requests.post(f"{base}/control/act", json=asked, timeout=10).raise_for_status()


def refused(call: object, *arguments: object) -> int:
    try:
        call(*arguments)
    except MidtransAPIError as error:
        return int(error.api_response_dict.get("status_code", error.http_status_code))
    return 0


saw = {"created": sorted(create("a")), "before_a_method": refused(core.transactions.status, "a")}
act("a", "pick", method="bca_va")
saw["pending"] = core.transactions.status("a")["transaction_status"]
saw["duplicate"] = refused(create, "a")
saw["cancelled"] = core.transactions.cancel("a")["transaction_status"]
saw["cancelled_again"] = refused(core.transactions.cancel, "a")
create("b")
act("b", "pick", method="qris")
saw["expired"] = core.transactions.expire("b")["transaction_status"]
saw["expired_status"] = core.transactions.status("b")["transaction_status"]
create("c")
act("c", "pick", method="qris")
act("c", "pay")
saw["paid"] = core.transactions.status("c")["transaction_status"]
part = core.transactions.refund("c", {"refund_key": "k", "amount": 50000, "reason": "r"})
saw["refunded"] = [part["transaction_status"], part["refund_amount"]]
told = requests.get(f"{base}/control/state", timeout=10).json()["webhooks"][-1]["document"]
saw["notification"] = core.transactions.notification(told)["transaction_status"]
print(json.dumps(saw))
