from django.db import migrations

#: What an earlier release held becomes rows, in the order of its lines; how often each payment came
#: in or failed is known as far as its state says.
FORWARD = r"""
UPDATE payments_payment SET times_paid = 1 WHERE paid_at IS NOT NULL;
UPDATE payments_payment SET times_failed = 1
 WHERE status IN ('expired', 'failed', 'cancelled', 'denied');

INSERT INTO payments_hold
    (order_id, payment_id, notification_id, code, reason, opened_at, closed_how, closed_reason)
SELECT held.order_id, p.id, n.id,
       CASE WHEN n.status <> '' THEN 'unclear_report'
            WHEN held.reason LIKE 'paid twice%' THEN 'surplus'
            WHEN held.reason LIKE '%charged back%' THEN 'chargeback'
            WHEN held.reason LIKE 'paid after its reservation%' THEN 'out_of_stock'
            ELSE 'other' END,
       left(btrim(regexp_replace(held.reason, '\s+', ' ', 'g')), 500), held.updated_at, '', ''
  FROM (SELECT o.id AS order_id, o.updated_at, line.number,
               substring(line.text FROM '^payment ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}): ')
                   AS payment,
               regexp_replace(line.text, '^payment [0-9a-f-]{36}: ', '') AS reason
          FROM orders_order o
               CROSS JOIN LATERAL regexp_split_to_table(o.held_reason, E'\\n')
                   WITH ORDINALITY AS line(text, number)
         WHERE o.held_reason <> '' AND line.text ~ '\S') AS held
       LEFT JOIN payments_payment p
              ON p.id::text = held.payment AND p.order_id = held.order_id
       LEFT JOIN LATERAL (SELECT n.id, n.status FROM payments_paymentnotification n
                           WHERE n.payment_id = p.id AND n.outcome = 'held'
                             AND n.reason = held.reason
                           ORDER BY n.decided_at DESC, n.id DESC LIMIT 1) AS n ON true
 ORDER BY held.updated_at, held.order_id, held.number;

UPDATE payments_acceptance a SET hold_id = h.id
  FROM payments_hold h
 WHERE h.payment_id = a.payment_id AND h.reason = a.held_reason AND a.closed_at IS NULL;

-- The copies say what the holds say, letter by letter.
UPDATE orders_order o SET held_reason = h.lines
  FROM (SELECT order_id, string_agg(
               CASE WHEN payment_id IS NULL THEN '' ELSE 'payment ' || payment_id || ': ' END
               || reason, E'\n' ORDER BY id) AS lines
          FROM payments_hold WHERE closed_at IS NULL GROUP BY order_id) AS h
 WHERE o.id = h.order_id AND o.held_reason <> h.lines;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("orders", "0005_waiting_and_goods"),
        ("payments", "0006_attempts_and_holds"),
    ]

    operations = [migrations.RunSQL(FORWARD, migrations.RunSQL.noop)]
