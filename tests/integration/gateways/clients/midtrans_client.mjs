// Midtrans's official Node client against one address: create, ask, cancel, expire, refund.
// Run with the address of the simulators and the server key; prints what it saw as JSON.
import { createRequire } from "node:module";

const require = createRequire(`${process.cwd()}/`);
const { CoreApi, Snap } = require("midtrans-client");
const ApiConfig = require("midtrans-client/lib/apiConfig");

const [base, serverKey] = process.argv.slice(2);
ApiConfig.SNAP_SANDBOX_BASE_URL = `${base}/midtrans/snap/v1`;
ApiConfig.CORE_SANDBOX_BASE_URL = `${base}/midtrans`;
const snap = new Snap({ isProduction: false, serverKey });
const core = new CoreApi({ isProduction: false, serverKey });

const create = (order_id) =>
  snap.createTransaction({ transaction_details: { order_id, gross_amount: 150000 } });

async function act(reference, action, values = {}) {
  const answer = await fetch(`${base}/control/act`, {
    method: "POST",
    body: JSON.stringify({ gateway: "midtrans", reference, action, ...values }),
  });
  if (!answer.ok) throw new Error(await answer.text());
}

const refused = (promise) =>
  promise.then(() => 0, (error) => Number(error.ApiResponse?.status_code ?? error.httpStatusCode));

const saw = { created: Object.keys(await create("a")).sort() };
saw.before_a_method = await refused(core.transaction.status("a"));
await act("a", "pick", { method: "bca_va" });
saw.pending = (await core.transaction.status("a")).transaction_status;
saw.duplicate = await refused(create("a"));
saw.cancelled = (await core.transaction.cancel("a")).transaction_status;
saw.cancelled_again = await refused(core.transaction.cancel("a"));
await create("b");
await act("b", "pick", { method: "qris" });
saw.expired = (await core.transaction.expire("b")).transaction_status;
saw.expired_status = (await core.transaction.status("b")).transaction_status;
await create("c");
await act("c", "pick", { method: "qris" });
await act("c", "pay");
saw.paid = (await core.transaction.status("c")).transaction_status;
const part = await core.transaction.refund("c", { refund_key: "k", amount: 50000, reason: "r" });
saw.refunded = [part.transaction_status, part.refund_amount];
const { webhooks } = await (await fetch(`${base}/control/state`)).json();
saw.notification = (await core.transaction.notification(webhooks.at(-1).document)).transaction_status;
console.log(JSON.stringify(saw));
