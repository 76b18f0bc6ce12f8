"""Xendit's official Python client against one address: create, ask, list, expire, refund, read.

Run with the address of the simulators and the secret key; prints what it saw as JSON.
"""

import json
import sys
from urllib.request import Request, urlopen

import xendit
from xendit.apis import InvoiceApi, RefundApi
from xendit.exceptions import XenditSdkException
from xendit.invoice.model.create_invoice_request import CreateInvoiceRequest
from xendit.invoice.model.invoice_callback import InvoiceCallback
from xendit.model_utils import validate_and_convert_types
from xendit.refund.model.create_refund import CreateRefund
from xendit.refund.model.refund_callback import RefundCallback

base, secret_key = sys.argv[1:]
client = xendit.ApiClient(xendit.Configuration(host=f"{base}/xendit", api_key=secret_key))
invoices, refunds = InvoiceApi(client), RefundApi(client)


def create(external_id: str) -> object:
    return invoices.create_invoice(
        CreateInvoiceRequest(
            external_id=external_id,
            amount=150000.0,
            invoice_duration=900.0,
            success_redirect_url="https://shop.example/orders/1",
        )
    )


def control(name: str, **asked: object) -> None:
    document = json.dumps(asked).encode()
    urlopen(Request(f"{base}/control/{name}", data=document, method="POST"), timeout=10).close()  # noqa: S310


def refused(call: object, *arguments: object) -> list[object]:
    try:
        call(*arguments)
    except XenditSdkException as error:
        return [int(error.status), error.errorCode]
    return []


def read(document: dict[str, object], model: type) -> object:
    """Read a webhook's body as the client's own model of it does, types and all."""
    return validate_and_convert_types(
        document, (model,), ["received"], False, True, client.configuration
    )


def told(which: int = -1) -> dict[str, object]:
    with urlopen(f"{base}/control/state", timeout=10) as answer:  # noqa: S310
        return json.load(answer)["webhooks"][which]["document"]


a, b, c = create("a"), create("b"), create("c")
saw = {"created": str(a.status), "url": a.invoice_url.startswith(base)}
saw["asked"] = str(invoices.get_invoice_by_id(a.id).status)
create("a")
saw["listed"] = len(invoices.get_invoices(external_id="a"))
saw["unknown"] = refused(invoices.get_invoice_by_id, "0" * 24)
saw["expired"] = str(invoices.expire_invoice(b.id).status)
saw["expired_told"] = read(told(), InvoiceCallback).status
control("act", gateway="xendit", reference=c.id, action="pay", channel="OVO")
callback = read(told(), InvoiceCallback)
saw["paid_told"] = [callback.status, callback.paid_amount, callback.payment_channel]
saw["paid"] = str(invoices.get_invoice_by_id(c.id).status)
saw["paid_cannot_expire"] = refused(invoices.expire_invoice, c.id)
part = CreateRefund(invoice_id=c.id, amount=50000.0, reason="REQUESTED_BY_CUSTOMER")
refund = refunds.create_refund(create_refund=part, idempotency_key="k")
saw["refund"] = refund.amount
control("clock", advance=61)
saw["refund_told"] = [read(told(), RefundCallback).event, read(told(), RefundCallback).data.status]
saw["refund_asked"] = refunds.get_refund(refund.id).amount
saw["refunds"] = len(refunds.get_all_refunds(invoice_id=c.id).data)
print(json.dumps(saw))
