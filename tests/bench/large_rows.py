"""Fills the shop's tables with what has happened in half a year.

By SQL, not by the shop: that would take a day.
"""

from psycopg import sql

from tests.bench.bench import say
from tests.bench.shop import Connection

Columns = dict[str, str]
"""What a row's columns hold, as SQL over `n`, the number of the row's order or event.

`{at}` is when it was written, `{old}` whether it is one of the oldest twentieth. Those have what
nothing has had since: whoever looks for it from the newest row on walks the table to its end, and
the planner thinks that one in twenty has it.
"""
HELD = 20
"""So many orders and payments wait for a person, however large the tables are."""

_ORDER: Columns = {
    "id": "md5('order' || n)::uuid",
    "number": "'SKN-BENCH-' || n",
    "email": "'pembeli' || n % 50000 || '@skincare.example'",
    "user_id": "CASE WHEN n % 3 = 0 THEN (n % 20000)::text ELSE 'guest' END",
    "payment_method": "CASE WHEN n % 2 = 0 THEN 'midtrans' ELSE 'xendit' END",
    "language": "'id'",
    "status": "CASE WHEN n % 20 = 0 THEN 'expired' WHEN n % 20 = 1 THEN 'cancelled'"
    " WHEN {old} THEN 'refunded' ELSE 'paid' END",
    "total_rupiah": "125000",
    "refunded_rupiah": "0",
    "held_reason": f"CASE WHEN n <= {HELD} THEN 'out of stock' ELSE '' END",
    "created_at": "{at}",
    "updated_at": "{at}",
    "paid_at": "CASE WHEN n % 20 > 1 THEN {at} END",
}
_LINE: Columns = {
    "order_id": "md5('order' || n)::uuid",
    "product_id": "(SELECT min(id) FROM orders_product) + n % 20",
    "sku": "'SKU-' || n % 20",
    "name": "'Serum'",
    "quantity": "1",
    "unit_price_rupiah": "125000",
}
_TRANSITION: Columns = {
    "event_id": "md5('paid' || n)::uuid::text",
    "order_id": "md5('order' || n)::uuid",
    "from_status": "'pending'",
    "to_status": "CASE WHEN {old} THEN (ARRAY['expired', 'refunded'])[n % 2 + 1] ELSE 'paid' END",
    "reason": "''",
    "created_at": "{at}",
}
_MOVEMENT: Columns = {
    "event_id": "md5(CASE WHEN n % 2 = 0 THEN 'placed' ELSE 'paid' END || n / 2)::uuid::text",
    "product_id": "(SELECT min(id) FROM orders_product) + n / 2 % 20",
    "order_id": "md5('order' || n / 2)::uuid",
    "kind": "CASE WHEN {old} THEN (ARRAY['release', 'return', 'retake', 'unsell'])[n % 4 + 1]"
    " WHEN n % 2 = 0 THEN 'reserve' ELSE 'sell' END",
    "stock_delta": "CASE WHEN n % 2 = 0 THEN 0 ELSE -1 END",
    "reserved_delta": "CASE WHEN n % 2 = 0 THEN 1 ELSE -1 END",
    "created_at": "{at}",
}
_CHECKOUT_REQUEST: Columns = {
    "scope": "'guest'",
    "key": "md5('key' || n)",
    "body_hash": "md5('body' || n) || md5('hash' || n)",
    "response": "'{{}}'::jsonb",
    "order_id": "md5('order' || n)::uuid",
    "created_at": "{at}",
}
_PAYMENT: Columns = {
    "id": "md5('payment' || n)::uuid",
    "order_id": "md5('order' || n)::uuid",
    "provider": "CASE WHEN n % 2 = 0 THEN 'midtrans' ELSE 'xendit' END",
    "transaction_id": "md5('transaction' || n)::uuid::text",
    "reference": "md5('order' || n)::uuid || '-1'",
    "other_ids": "ARRAY[]::varchar[]",
    "channel": "'qris'",
    "status": "CASE WHEN n % 20 = 0 THEN 'expired' WHEN n % 20 = 1 THEN 'failed'"
    " WHEN {old} THEN 'refunded' ELSE 'settled' END",
    "amount_rupiah": "125000",
    "refunded_rupiah": "0",
    "held_reason": f"CASE WHEN n <= {HELD} THEN 'out of stock' ELSE '' END",
    "created_at": "{at}",
    "updated_at": "{at}",
    "paid_at": "{at}",
}
_NOTIFICATION: Columns = {
    "provider": "CASE WHEN n % 2 = 0 THEN 'midtrans' ELSE 'xendit' END",
    "identity": "md5('transaction' || n)::uuid || ':settlement'",
    "transaction_id": "md5('transaction' || n)::uuid::text",
    "order_reference": "md5('order' || n)::uuid || '-1'",
    "status": "'settled'",
    "amount": "125000",
    "currency": "'IDR'",
    "channel": "'qris'",
    "occurred_at": "{at}",
    "payload": "jsonb_build_object('transaction_status', 'settlement', 'payment_type', 'qris')",
    "received_at": "{at}",
    "payment_id": "md5('payment' || n)::uuid",
    "outcome": "CASE WHEN {old} THEN (ARRAY['ignored', 'repeated'])[n % 2 + 1] ELSE 'applied' END",
    "reason": "''",
    "decided_at": "{at}",
}
_EVENT: Columns = {
    "event_id": "md5(CASE WHEN n % 2 = 0 THEN 'placed' ELSE 'paid' END || n / 2)::uuid::text",
    "event_type": "CASE WHEN n % 2 = 0 THEN 'order.confirmed' ELSE 'payment.processed' END",
    "order_id": "md5('order' || n / 2)::uuid::text",
    "payload": "jsonb_build_object('order_id', md5('order' || n / 2)::uuid, 'user_id', 'guest',"
    " 'amount_rupiah', 125000, 'created_at', {at})",
    "created_at": "{at}",
}
_OUTBOX: Columns = _EVENT | {
    "sent_at": "{at}",
    "send_attempts": "1",
    "next_attempt_at": "{at}",
    "last_error": "''",
}
_PROCESSED: Columns = _EVENT | {
    "payment_id": "CASE WHEN n % 2 = 0 THEN '' ELSE md5('payment' || n / 2)::uuid::text END",
    "status": "CASE WHEN {old} THEN 'skipped' ELSE 'done' END",
    "payload_hash": "md5('hash' || n) || md5('payload' || n)",
    "attempts": "1",
    "receive_count": "1",
    "fence": "1",
    "worker": "'worker@bench'",
    "last_error": "''",
    "first_claimed_at": "{at}",
    "claimed_at": "{at}",
    "effects_at": "{at}",
    "finished_at": "{at}",
}
_REFUND: Columns = {
    "payment_id": "md5('payment' || n * 5)::uuid",
    "key": "md5('refund' || n)",
    "kind": "CASE WHEN {old} THEN 'chargeback' ELSE 'refund' END",
    "amount_rupiah": "1000",
    "refunded_at": "{at}",
    "created_at": "{at}",
}
_HOLD: Columns = {
    "order_id": "md5('order' || n * 5)::uuid",
    "code": "CASE WHEN {old} THEN 'chargeback' ELSE 'out_of_stock' END",
    "reason": "'out of stock'",
    "opened_at": "{at}",
    "closed_at": "{at}",
    "closed_how": "'resolved'",
    "closed_reason": "''",
}
TABLES: tuple[tuple[str, Columns, int], ...] = (
    ("orders_order", _ORDER, 2),
    ("orders_orderline", _LINE, 2),
    ("orders_ordertransition", _TRANSITION, 2),
    ("orders_stockmovement", _MOVEMENT, 1),
    ("orders_checkoutrequest", _CHECKOUT_REQUEST, 2),
    ("payments_payment", _PAYMENT, 2),
    ("payments_paymentnotification", _NOTIFICATION, 2),
    ("payments_paymentrefund", _REFUND, 10),
    ("payments_hold", _HOLD, 10),
    ("events_outboxevent", _OUTBOX, 1),
    ("events_processedevent", _PROCESSED, 1),
)
"""Name, columns, and for how many events it has a row; two are an order's."""


SECONDS_APART = 7.5
"""Between two events: two million fill half a year."""


def fill(connection: Connection, *, events: int, seconds_apart: float = SECONDS_APART) -> None:
    """Insert that many finished events, and the orders that they belong to.

    The tables want to be analyzed afterwards.
    """
    # Foreign keys and triggers are not asked: all rows fit together by their making.
    connection.execute("SET session_replication_role = replica")
    for table, columns, events_of_a_row in TABLES:
        say(f"{events} events: filling {table}")
        there = connection.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = %s", [table]
        )
        names = [row[0] for row in there if row[0] in columns]
        count = events // events_of_a_row
        at = f"now() - interval '{seconds_apart} s' * {events_of_a_row} * ({count} - n)"
        # In a shop of few events so many that each filter has a page to show.
        old = f"n <= {max(count // 20, min(count // 2, 400))}"
        values = ", ".join(columns[name].format(at=at, old=old) for name in names)
        connection.execute(
            sql.SQL("INSERT INTO {} ({}) SELECT {} FROM generate_series(1, {}) AS n").format(
                sql.Identifier(table),
                sql.SQL(", ").join(map(sql.Identifier, names)),
                sql.SQL(values),  # constants of this file
                sql.Literal(count),
            )
        )
    connection.execute("RESET session_replication_role")
