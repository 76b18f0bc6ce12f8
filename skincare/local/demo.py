"""`make demo`: start the shop, buy and pay in it as outsiders do, and show what happened.

Exit status 0 only if all happened as it had to.
"""

import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from skincare.local.deadline import wait_until
from skincare.local.loopback import go_past_proxies
from skincare.local.mailbox import Mailbox
from skincare.local.outsiders import Buyer, Clerk, GatewaysBehind, Midtrans
from skincare.local.report import Row, table
from skincare.local.stack import PROJECT, Stack
from skincare.local.supervised import ProgramError
from skincare.sqs.queues import depth

FOLDER = PROJECT / "var" / "demo"
DEADLINE = 60.0  # seconds for each thing that is waited for
QUANTITY = 2  # pieces in each order
PURCHASES = (("ayu", "midtrans"), ("budi", "xendit"), ("citra", "midtrans"))

EVENTS, EMAILS = 31, 16  # in all
GOOD_CARD, DECLINED_CARD = "4811111111111114", "4911111111111113"

Order = dict[str, Any]


class Demonstration:
    """The cases in their order; each adds its row to `rows`."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.buyer = Buyer(stack.web_url)
        self.gateways = GatewaysBehind(stack.gateways.url)
        self.mailbox = Mailbox(stack.emails)
        self.poison = f"this is not an event ({uuid4()})"
        self.rows: list[Row] = []
        self.seconds_to_paid: dict[str, float] = {}
        self.dead_before = depth(stack.sqs, stack.dlq_url).visible

    def run(self) -> None:
        self.stack.sqs.send_message(QueueUrl=self.stack.queue_url, MessageBody=self.poison)
        first, second, third = self.three_checkouts()
        page = self.page_left_to_expire(first)
        self.told_three_times(first)
        self.xendit_captures(second)
        self.forged_settlement(third)
        self.declined_card(third)
        self.paid_with_another_card(third)
        self.paid_twice(first, page)
        self.reversal(third)
        self.event_of_another_producer(first)
        self.poison_in_the_dlq()
        self.paid_through_the_page()
        self.webhook_lost_and_found()
        self.forged_status()
        self.refund_by_two_persons(first)
        self.nothing_is_left()

    def three_checkouts(self) -> list[Order]:
        products = [p for p in self.buyer.products() if p["available"] >= QUANTITY]
        orders, answers = [], []
        for (name, method), product in zip(PURCHASES, products, strict=False):
            email = f"{name}@buyer.example"
            stock = self.stock(product["sku"])
            answer = self.buyer.check_out(
                product["sku"], quantity=QUANTITY, method=method, email=email
            )
            answers.append(f"{answer.status_code} {answer.json().get('status')}")
            orders.append(answer.json() | {"sku": product["sku"], "email": email, "stock": stock})
        self.wait(lambda: self.mailbox.count(kind="order_confirmation") == 3)
        self.add(
            "three checkouts",
            "3 x 201 pending; 3 confirmations",
            f"{' '.join(f'{n} x {answer}' for answer, n in Counter(answers).items())}; "
            f"{self.mailbox.count(kind='order_confirmation')} confirmations",
        )
        return orders

    def page_left_to_expire(self, order: Order) -> str:
        """The buyer picks QRIS, and lets the time run out; returns the page's address."""
        page: str = self.buyer.open_page(order["order_id"]).json()["redirect_url"]
        self.buyer.press(page, "pick", method="qris")
        self.buyer.press(page, "expire")
        self.wait(lambda: self.attempts(order) == ["expired"])
        # That an attempt failed is told only while the order waits.
        self.wait(lambda: self.mailbox.count(to=order["email"], kind="payment_failed") == 1)
        return page

    def told_three_times(self, order: Order) -> None:
        """The buyer pays on a new page; Midtrans calls twice at the same time, and once more."""
        page = self.buyer.open_page(order["order_id"]).json()["redirect_url"]
        self.buyer.press(page, "pick", method="qris")
        self.wait(lambda: self.gateways.answers(order, "pending")[-1:] == [200])
        self.buyer.press(page, "double the next")
        self.pay("Midtrans settles, told 3 times", order, page, "pay", told="settlement", times=3)

    def xendit_captures(self, order: Order) -> None:
        page = self.buyer.open_page(order["order_id"]).json()["redirect_url"]
        self.pay("Xendit captures", order, page, "pay", told="PAID", channel="DANA")

    def pay(
        self,
        case: str,
        order: Order,
        page: str,
        action: str,
        *,
        told: str,
        times: int = 1,
        **values: str,
    ) -> None:
        """Press `action` on the page, and wait until the order is paid and told `times` times."""
        started = time.monotonic()
        self.buyer.press(page, action, **values)
        self.wait(lambda: self.status(order) == "paid")
        self.seconds_to_paid[case] = time.monotonic() - started
        if times > 1:
            number = self.gateways.calls(order, told)[0]["number"]
            self.buyer.press(page, "send again", number=str(number))
        self.wait(lambda: len(self.gateways.answers(order, told)) == times)
        self.wait(lambda: self.mailbox.count(to=order["email"], kind="receipt") == 1)
        stock, reserved = self.stock(order["sku"])
        answers = self.gateways.answers(order, told)
        self.add(
            case,
            f"{' '.join(['200'] * times)}, paid; 2 sold, 0 reserved; 1 receipt",
            f"{' '.join(map(str, answers))}, {self.status(order)}; "
            f"{order['stock'][0] - stock} sold, {reserved - order['stock'][1]} reserved; "
            f"{self.mailbox.count(to=order['email'], kind='receipt')} receipt",
        )

    def forged_settlement(self, order: Order) -> None:
        forger = Midtrans(self.stack.web_url, server_key="a guess")
        answer = forger.send(forger.notification(order, "settlement", "200"))
        kept = self.ask(
            "SELECT count(*) FROM payments_paymentnotification WHERE order_reference = %s",
            order["order_id"],
        )
        self.add(
            "a forged settlement",
            "403, still pending; 0 notifications kept",
            f"{answer}, still {self.status(order)}; {kept[0]} notifications kept",
        )

    def declined_card(self, order: Order) -> None:
        self.page = self.buyer.open_page(order["order_id"]).json()["redirect_url"]
        self.buyer.press(self.page, "pick", method="credit_card", card=DECLINED_CARD)
        self.add(
            "a declined card",
            "200, pending; 2 still reserved; 1 email",
            self.after_failure(order, emails=1),
        )

    def paid_with_another_card(self, order: Order) -> None:
        """On the same page: a card that is declined leaves it open."""
        self.pay(
            "paid with another card",
            order,
            self.page,
            "pick",
            told="capture",
            method="credit_card",
            card=GOOD_CARD,
        )

    def paid_twice(self, order: Order, page: str) -> None:
        """The money of the page that had expired comes in after all."""
        self.buyer.press(page, "pay late")
        self.wait(lambda: self.buyer.order(order["order_id"])["is_held"])
        receipts = self.mailbox.count(to=order["email"], kind="receipt")
        self.add(
            "paid a second time, late",
            "paid; 1 payment held; still 1 receipt",
            f"{self.status(order)}; {self.holds(order, 'surplus')} payment held; "
            f"still {receipts} receipt",
        )

    def reversal(self, order: Order) -> None:
        """The bank takes back what was settled."""
        self.buyer.press(self.page, "settle")
        self.wait(lambda: "settled" in self.attempts(order))
        self.buyer.press(self.page, "reverse")
        self.add(
            "a reversal after settlement",
            "200, pending; 2 still reserved; 2 emails",
            self.after_failure(order, emails=2),
        )

    def after_failure(self, order: Order, *, emails: int) -> str:
        """Wait for this many emails of failed attempts; return where the order is then."""
        failed = {"to": order["email"], "kind": "payment_failed"}
        self.wait(lambda: self.mailbox.count(**failed) == emails)
        self.wait(lambda: len(self.gateways.answers(order, "deny")) == emails)
        reserved = self.stock(order["sku"])[1] - order["stock"][1]
        sent = self.mailbox.count(**failed)
        answer = self.gateways.answers(order, "deny")[-1:]
        return (
            f"{' '.join(map(str, answer))}, {self.status(order)}; {reserved} still reserved; "
            f"{sent} {'email' if sent == 1 else 'emails'}"
        )

    def event_of_another_producer(self, order: Order) -> None:
        event = {
            "event_id": f"warehouse:{uuid4()}",
            "event_type": "order.confirmed",
            "order_id": order["order_id"],
            "payment_id": "",
            "user_id": "guest",
            "amount_rupiah": order["total_rupiah"],
            "created_at": datetime.now(UTC).isoformat(),
        }
        self.stack.sqs.send_message(QueueUrl=self.stack.queue_url, MessageBody=json.dumps(event))
        query = (
            "SELECT count(*) FILTER (WHERE status = 'done'), max(receive_count)"
            " FROM events_processedevent WHERE event_id = %s"
        )
        self.wait(lambda: self.ask(query, event["event_id"])[0] == 1)
        done, receives = self.ask(query, event["event_id"])
        confirmations = self.mailbox.count(to=order["email"], kind="order_confirmation")
        self.add(
            "a bare JSON event on the queue",
            "done, 1 receive; 1 more confirmation",
            f"{'done' if done else 'not done'}, {receives} receive; "
            f"{confirmations - 1} more confirmation",
        )

    def poison_in_the_dlq(self) -> None:
        dlq = self.stack.dlq_url
        self.wait(lambda: depth(self.stack.sqs, dlq).visible > self.dead_before)
        dead = self.stack.sqs.receive_message(
            QueueUrl=dlq,
            MaxNumberOfMessages=10,
            VisibilityTimeout=0,
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        )
        found = [m for m in dead.get("Messages", []) if m["Body"] == self.poison]
        # The count goes on in the DLQ: the receive that shows it is one too many.
        receives = [int(m["Attributes"]["ApproximateReceiveCount"]) - 1 for m in found]
        self.add(
            "a poison message",
            "1 in the DLQ after 5 receives",
            f"{len(found)} in the DLQ after {' and '.join(map(str, receives)) or 'no'} receives",
        )

    def nothing_is_left(self) -> None:
        self.wait(lambda: self.mailbox.count() >= EMAILS)
        # The gateway's own call about the refund may come after all that the refund does here.
        self.wait(lambda: self.done_and_repeated()[0] >= EVENTS)
        self.wait(lambda: sum(depth(self.stack.sqs, self.stack.queue_url)) == 0)
        left = sum(depth(self.stack.sqs, self.stack.queue_url))
        done, repeated = self.done_and_repeated()
        self.add("all the money, checked", "0 disagreements", self.disagreements())
        self.add(
            "in the end",
            f"{EVENTS} done, 0 repeated; {EMAILS} emails; queue empty; worker up",
            f"{done} done, {repeated} repeated; {self.mailbox.count()} emails; "
            f"queue {f'holds {left}' if left else 'empty'}; "
            f"worker {'up' if self.stack.worker.running else 'down'}",
        )

    def done_and_repeated(self) -> tuple[int, int]:
        """How many events are done, and how many were tried more than once."""
        done, repeated = self.ask(
            "SELECT count(*) FILTER (WHERE status = 'done'), count(*) FILTER (WHERE attempts > 1)"
            " FROM events_processedevent WHERE order_id IN (SELECT id::text FROM orders_order)"
        )
        return done, repeated

    def paid_through_the_page(self) -> None:
        """Buy, go to Midtrans's page, and pay there."""
        order, opened = self.order_with_page("midtrans", name="eka")
        page = opened.json().get("redirect_url", "")
        self.buyer.press(page, "pick", method="gopay")
        self.buyer.press(page, "pay")
        self.wait(lambda: self.status(order) == "paid")
        self.add(
            "paid through the page",
            "201; paid by its webhook",
            f"{opened.status_code}; {self.status(order)} by its webhook",
        )

    def webhook_lost_and_found(self) -> None:
        """Pay at Xendit while all its calls are lost; the shop finds it by asking."""
        order, opened = self.order_with_page("xendit", name="fajar")
        page = opened.json().get("redirect_url", "")
        self.buyer.press(page, "lose all")
        self.buyer.press(page, "pay", channel="QRIS")
        before = self.status(order)
        self.stack.manage("reconcile", "--order", order["number"])
        self.wait(lambda: self.status(order) == "paid")
        self.buyer.press(page, "as usual")
        self.add(
            "webhook lost, found by asking",
            "201; pending, then paid",
            f"{opened.status_code}; {before}, then {self.status(order)}",
        )

    def forged_status(self) -> None:
        """Somebody saw Midtrans's signed "pending", and says "settlement" under its signature."""
        order, opened = self.order_with_page("midtrans", name="gita")
        self.buyer.press(opened.json()["redirect_url"], "pick", method="bca_va")
        self.wait(lambda: self.gateways.answers(order, "pending") == [200])
        seen = self.gateways.calls(order, "pending")[0]["document"]
        answer = self.gateways.forge(
            self.stack.web_url, {**seen, "transaction_status": "settlement"}
        )
        self.wait(lambda: self.buyer.order(order["order_id"])["is_held"])
        receipts = self.mailbox.count(to=order["email"], kind="receipt")
        self.add(
            "a forged status, well signed",
            "200, still pending, held; 0 receipts",
            f"{answer}, still {self.status(order)}, "
            f"{'held' if self.buyer.order(order['order_id'])['is_held'] else 'not held'}; "
            f"{receipts} receipts",
        )

    def refund_by_two_persons(self, order: Order) -> None:
        """The money that came twice goes back: one person of finance asks, another accepts."""
        query = "SELECT payment_id::text FROM payments_hold WHERE order_id = %s AND code = %s"
        (payment,) = self.ask(query, order["order_id"], "surplus")
        made = (self.person_of_finance(name) for name in ("dewi", "putu"))
        dewi, putu = (Clerk(self.stack.web_url, *login) for login in made)
        page = f"/admin/operations/held/payments/{payment}/"
        dewi.decide(page, action="request", decision="refund", reason="it was paid twice")
        alone = dewi.decide(page, action="accept")
        both = putu.decide(page, action="accept")
        self.wait(lambda: self.holds(order, "surplus") == 0)
        refunds = self.gateways.refunds(order)
        self.add(
            "a refund by two persons",
            "not by one alone; paid; 1 refund, 0 held",
            f"{'by one alone' if alone else 'not by one alone'}"
            f"{'' if both else ', not by two'}; {self.status(order)}; "
            f"{refunds} refund, {self.holds(order, 'surplus')} held",
        )

    def person_of_finance(self, name: str) -> tuple[str, str]:
        """Make a login; returns the name and the password."""
        password = self.stack.kept.secret(f"{name}'s password")
        self.stack.manage(
            *("shell", "--no-imports", "--command"),
            "import os; from django.contrib.auth.models import Group, User;"
            f" user = User.objects.create_user({name!r}, password=os.environ['PASSWORD'],"
            " is_staff=True); user.groups.add(Group.objects.get(name='finance'))",
            PASSWORD=password,
        )
        return name, password

    def order_with_page(self, method: str, *, name: str) -> tuple[Order, Any]:
        """An order of one piece, and the answer with its payment page."""
        product = next(p for p in self.buyer.products() if p["available"] >= QUANTITY)
        email = f"{name}@buyer.example"
        placed = self.buyer.check_out(product["sku"], quantity=1, method=method, email=email)
        order: Order = placed.json() | {"email": email}
        return order, self.buyer.open_page(order["order_id"])

    def attempts(self, order: Order) -> list[str]:
        """How each attempt to pay it stands, the newest first."""
        return [one["status"] for one in self.buyer.order(order["order_id"])["payments"]]

    def holds(self, order: Order, code: str) -> int:
        """For how much of this kind it waits for a person."""
        return self.ask(
            "SELECT count(*) FROM payments_hold"
            " WHERE order_id = %s AND code = %s AND closed_at IS NULL",
            order["order_id"],
            code,
        )[0]

    def disagreements(self) -> str:
        """Let the shop recompute every order, payment, hold and stock."""
        try:
            said = self.stack.manage("check_money")
        except ProgramError as error:
            said = str(error)
        return next((line for line in said.splitlines() if line.endswith("disagreements")), said)

    def add(self, case: str, had_to: str, happened: str) -> None:
        self.rows.append(Row(case, had_to, happened))

    def wait(self, condition: Callable[[], bool]) -> None:
        """Wait for the end state; where it does not come, the row shows what is there instead."""
        try:
            wait_until(condition, seconds=DEADLINE, what="the end state")
        except TimeoutError as error:
            print(error, file=sys.stderr)

    def status(self, order: Order) -> str:
        status: str = self.buyer.order(order["order_id"])["status"]
        return status

    def stock(self, sku: str) -> tuple[int, int]:
        """Pieces in the warehouse, and how many of them are reserved for unpaid orders."""
        stock, reserved = self.ask("SELECT stock, reserved FROM orders_product WHERE sku = %s", sku)
        return stock, reserved

    def ask(self, query: str, *values: Any) -> tuple[Any, ...]:
        """Look into the database, past the shop."""
        with self.stack.connect() as connection:
            return connection.execute(query, values).fetchone() or ()

    def summary(self) -> str:
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(self.mailbox.kinds().items()))
        paid = ", ".join(
            f"{gateway} {s * 1000:.0f} ms" for gateway, s in self.seconds_to_paid.items()
        )
        queue, dlq = (depth(self.stack.sqs, u) for u in (self.stack.queue_url, self.stack.dlq_url))
        wrong = sum(not row.is_right for row in self.rows)
        return (
            f"from webhook to paid  {paid}\n"
            f"queue                 {queue.visible} visible, {queue.in_flight} in flight\n"
            f"dead-letter queue     {dlq.visible} visible\n"
            f"emails                {kinds}, in {self.stack.emails.relative_to(PROJECT)}\n"
            f"logs                  {self.stack.folder.relative_to(PROJECT)}/*.log\n\n"
            + (f"{wrong} of {len(self.rows)} WRONG" if wrong else "All as it had to be.")
        )


def main() -> int:
    go_past_proxies()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    print("Starting PostgreSQL, SQS, a mail server, the API and a worker …", flush=True)
    started = time.monotonic()
    try:
        with Stack(FOLDER) as stack:
            print(f"… up after {time.monotonic() - started:.0f} s. Buying and paying …", flush=True)
            demonstration = Demonstration(stack)
            demonstration.run()
            print(f"\n{table(demonstration.rows)}\n\n{demonstration.summary()}")
    except ProgramError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0 if all(row.is_right for row in demonstration.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
