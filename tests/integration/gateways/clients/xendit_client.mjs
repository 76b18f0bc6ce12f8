// Xendit's official Node client against one address: create, ask, list, expire, refund, read.
// Run with the address of the simulators and the secret key; prints what it saw as JSON.
import { createRequire } from "node:module";

const require = createRequire(`${process.cwd()}/`);
const { Xendit } = require("xendit-node");
const { InvoiceCallbackFromJSON } = require("xendit-node/invoice/models");
const { RefundCallbackFromJSON } = require("xendit-node/refund/models");

const [base, secretKey] = process.argv.slice(2);
console.warn = () => {}; // it warns of a test key
const { Invoice, Refund } = new Xendit({ secretKey, xenditURL: `${base}/xendit` });

const create = (externalId) =>
  Invoice.createInvoice({
    data: {
      externalId,
      amount: 150000,
      invoiceDuration: 900,
      successRedirectUrl: "https://shop.example/orders/1",
    },
  });

async function control(name, asked) {
  const body = JSON.stringify(asked);
  const answer = await fetch(`${base}/control/${name}`, { method: "POST", body });
  if (!answer.ok) throw new Error(await answer.text());
}

const refused = (promise) =>
  promise.then(() => [], (error) => [error.status, error.errorCode]);

async function told() {
  return (await (await fetch(`${base}/control/state`)).json()).webhooks.at(-1).document;
}

const [a, b, c] = [await create("a"), await create("b"), await create("c")];
const saw = { created: a.status, url: a.invoiceUrl.startsWith(base) };
saw.asked = (await Invoice.getInvoiceById({ invoiceId: a.id })).status;
await create("a");
saw.listed = (await Invoice.getInvoices({ externalId: "a" })).length;
saw.unknown = await refused(Invoice.getInvoiceById({ invoiceId: "0".repeat(24) }));
saw.expired = (await Invoice.expireInvoice({ invoiceId: b.id })).status;
saw.expired_told = InvoiceCallbackFromJSON(await told()).status;
await control("act", { gateway: "xendit", reference: c.id, action: "pay", channel: "OVO" });
const callback = InvoiceCallbackFromJSON(await told());
saw.paid_told = [callback.status, callback.paidAmount, callback.paymentChannel];
saw.paid = (await Invoice.getInvoiceById({ invoiceId: c.id })).status;
saw.paid_cannot_expire = await refused(Invoice.expireInvoice({ invoiceId: c.id }));
const part = { invoiceId: c.id, amount: 50000, reason: "REQUESTED_BY_CUSTOMER" };
const refund = await Refund.createRefund({ data: part, idempotencyKey: "k" });
saw.refund = refund.amount;
await control("clock", { advance: 61 });
const refundTold = RefundCallbackFromJSON(await told());
saw.refund_told = [refundTold.event, refundTold.data.status];
saw.refund_asked = (await Refund.getRefund({ refundID: refund.id })).amount;
saw.refunds = (await Refund.getAllRefunds({ invoiceId: c.id })).data.length;
console.log(JSON.stringify(saw));
