// What a shop's own pages do with the API: show products, keep a cart, check out, open the payment
// page, and look at the order until it is paid. The address says which: / or /orders/<id>.
"use strict";

const API = `${document.documentElement.dataset.api}/v1`;
const LOOK_MS = 1500; // between two looks at an order
const IN_WORDS = {
  pending: "Waiting for your payment",
  paid: "Paid. Thank you!",
  partly_refunded: "Part of your money went back",
  refunded: "Your money went back",
  cancelled: "Cancelled",
  expired: "Not paid in time",
};

const element = (id) => document.getElementById(id);
const rupiah = (amount) => `Rp${amount.toLocaleString("id-ID")}`;

function made(tag, properties = {}, ...children) {
  const one = Object.assign(document.createElement(tag), properties);
  one.append(...children);
  return one;
}

// -- The API -----------------------------------------------------------------------------------

class Problem extends Error {}

// Answers a refusal as a Problem, which says what the problem document says.
async function call(url, body, idempotencyKey) {
  const options = { headers: { "Accept-Language": "en" } };
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
    options.headers["Idempotency-Key"] = idempotencyKey;
  }
  let answer;
  try {
    answer = await fetch(url, options);
  } catch {
    throw new Problem("The shop does not answer. Try again in a moment.");
  }
  const document = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    const fields = (document.errors ?? []).map((one) => `${one.field}: ${one.rule}`);
    const parts = [document.title ?? `HTTP ${answer.status}`, document.detail, ...fields];
    throw new Problem(parts.filter(Boolean).join(" · "));
  }
  return document;
}

// What a look says goes away with the next look that is good; what a button says stays.
function show(problem, source = "button") {
  const box = element("problem");
  box.hidden = !problem;
  box.textContent = problem ? problem.message : "";
  box.dataset.source = source;
}

// Does what a button asks for. The button waits meanwhile, so that nothing is asked for twice.
async function during(button, work) {
  button.disabled = true;
  show(null);
  try {
    await work();
  } catch (problem) {
    show(problem);
  } finally {
    button.disabled = false;
  }
}

// One key for each thing that is wanted: asked again, it gets the same answer and does nothing more.
function keyFor(thing) {
  const name = `key:${thing}`;
  if (!sessionStorage.getItem(name)) {
    sessionStorage.setItem(name, crypto.randomUUID());
  }
  return sessionStorage.getItem(name);
}

// -- Products, cart, checkout --------------------------------------------------------------------

const cart = new Map(JSON.parse(sessionStorage.getItem("cart") ?? "[]")); // sku → pieces
const products = new Map(); // sku → product

async function openShop() {
  element("shop").hidden = false;
  const [found, methods] = await Promise.all([
    call(`${API}/products?limit=100`),
    call(`${API}/payment-methods`),
  ]);
  for (const product of found.items) {
    products.set(product.sku, product);
  }
  element("products").replaceChildren(...found.items.map(shownProduct));
  element("method").replaceChildren(
    ...methods.items.map((one) => made("option", { value: one.name, textContent: one.label })),
  );
  element("checkout").addEventListener("submit", (event) => {
    event.preventDefault();
    during(element("order"), checkOut);
  });
  showCart();
}

function shownProduct(product) {
  const add = made("button", { textContent: "Add", disabled: !product.available });
  add.setAttribute("aria-label", `Add ${product.name}`);
  add.dataset.sku = product.sku;
  add.addEventListener("click", () => change(product.sku, +1));
  const left = product.available ? `${product.available} left` : "sold out";
  return made(
    "li",
    {},
    ...(product.picture_url ? [made("img", { src: product.picture_url, alt: "", loading: "lazy" })] : []),
    made("span", { className: "name", textContent: product.name }),
    made("span", { textContent: rupiah(product.price_rupiah) }),
    made("span", { className: "quiet", textContent: left }),
    add,
  );
}

function change(sku, by) {
  const pieces = (cart.get(sku) ?? 0) + by;
  if (pieces > 0) {
    cart.set(sku, pieces);
  } else {
    cart.delete(sku);
  }
  sessionStorage.setItem("cart", JSON.stringify([...cart]));
  showCart();
}

function showCart() {
  const known = [...cart].filter(([sku]) => products.has(sku));
  element("cart").replaceChildren(...known.map(([sku, pieces]) => shownLine(products.get(sku), pieces)));
  element("cart-empty").hidden = known.length > 0;
  element("checkout").hidden = known.length === 0;
  element("total").textContent = rupiah(
    known.reduce((sum, [sku, pieces]) => sum + pieces * products.get(sku).price_rupiah, 0),
  );
}

function shownLine(product, pieces) {
  const less = made("button", { textContent: "−" });
  less.setAttribute("aria-label", `One ${product.name} less`);
  less.addEventListener("click", () => change(product.sku, -1));
  return made(
    "li",
    {},
    made("span", { className: "name", textContent: `${pieces} x ${product.name}` }),
    made("span", { textContent: rupiah(pieces * product.price_rupiah) }),
    less,
  );
}

async function checkOut() {
  const wanted = {
    items: [...cart].map(([sku, quantity]) => ({ sku, quantity })),
    email: element("email").value,
    language: element("language").value,
    payment_method: element("method").value,
  };
  const name = JSON.stringify(wanted);
  const order = await call(`${API}/checkout`, wanted, keyFor(name));
  sessionStorage.removeItem(`key:${name}`); // the same cart again is another order
  sessionStorage.removeItem("cart");
  history.pushState(null, "", `/orders/${order.order_id}`); // where "back" leads from the gateway
  try {
    await pay(order.order_id);
  } catch {
    location.reload(); // the order's page says how it stands, and lets one try again
  }
}

async function pay(orderId) {
  const name = `pay ${orderId}`;
  const page = await call(`${API}/orders/${orderId}/payments`, {}, keyFor(name));
  sessionStorage.removeItem(`key:${name}`);
  location.assign(page.redirect_url);
}

// -- The order -----------------------------------------------------------------------------------

async function openOrder(orderId) {
  element("order-page").hidden = false;
  element("pay").addEventListener("click", () => during(element("pay"), () => pay(orderId)));
  for (;;) {
    if (!document.hidden) {
      try {
        const order = await call(`${API}/orders/${orderId}`);
        showOrder(order);
        showEmails((await call(`/emails?order=${encodeURIComponent(order.number)}`)).items);
        if (element("problem").dataset.source === "look") {
          show(null);
        }
      } catch (problem) {
        show(problem, "look");
      }
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

function showOrder(order) {
  element("number").textContent = order.number;
  const held = order.is_held ? " A person looks at it before it is sent." : "";
  const status = element("status");
  const words = (IN_WORDS[order.status] ?? order.status) + held;
  status.dataset.status = order.status;
  if (status.textContent !== words) {
    status.textContent = words; // read out once, not with every look
  }
  const isOpen = order.status === "pending" && order.payment_method !== "sandbox";
  element("pay").hidden = !isOpen;
  element("until").hidden = !order.pay_until;
  element("until").textContent = order.pay_until
    ? `Until ${new Date(order.pay_until).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })}`
    : "";
  element("lines").replaceChildren(
    ...order.lines.map((line) =>
      made(
        "tr",
        {},
        made("td", { textContent: line.name }),
        made("td", { textContent: line.quantity }),
        made("td", { textContent: rupiah(line.amount_rupiah) }),
      ),
    ),
  );
  element("order-total").textContent = rupiah(order.total_rupiah);
  element("attempts").replaceChildren(...order.payments.map(shownAttempt));
}

function shownAttempt(attempt) {
  const at = new Date(attempt.created_at).toLocaleTimeString("en-GB");
  return made(
    "li",
    {},
    made("span", { className: "name", textContent: `${attempt.provider}, ${at}` }),
    made("strong", { textContent: attempt.status }),
  );
}

function showEmails(emails) {
  const list = element("emails");
  if (list.dataset.newest !== emails[0]?.id) {
    list.dataset.newest = emails[0]?.id ?? "";
    list.replaceChildren(...emails.map(shownSubject));
    openEmail(emails[0]?.id ?? "");
  }
  if (emails.length === 0) {
    list.replaceChildren(made("li", { className: "quiet", textContent: "Nothing yet." }));
  }
}

function shownSubject(email) {
  const button = made("button", { textContent: email.subject });
  button.dataset.email = email.id;
  button.addEventListener("click", () => openEmail(email.id));
  return made("li", {}, button);
}

function openEmail(id) {
  for (const button of element("emails").querySelectorAll("button")) {
    button.setAttribute("aria-current", button.dataset.email === id);
  }
  element("email-shown").hidden = !id;
  if (id) {
    element("email-shown").src = `/emails/${encodeURIComponent(id)}`;
  }
}

// -- Which ---------------------------------------------------------------------------------------

const [, orderId] = location.pathname.match(/^\/orders\/([^/]+)/) ?? [];
(orderId ? openOrder(orderId) : openShop()).catch(show);
// A page that the browser kept while the buyer was at the gateway starts anew.
addEventListener("pageshow", (event) => event.persisted && location.reload());
