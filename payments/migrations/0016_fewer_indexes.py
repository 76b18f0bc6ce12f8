import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """What another index begins with, and Django's own for searches by the beginning of a key.

    Nobody makes such a search, and each row pays for its indexes.
    """

    atomic = False  # the tables are in use meanwhile
    dependencies = [("orders", "0010_large_lists"), ("payments", "0015_large_lists")]

    operations = [
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS payments_refundrequest_key_506809bc_like",
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS payments_refundrequest_key_506809bc_like"
            " ON payments_refundrequest (key varchar_pattern_ops)",
        ),
        # Django would make the foreign keys anew, and check all rows under a lock.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="pagerequest",
                    name="order",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="page_requests",
                        to="orders.order",
                    ),
                ),
                migrations.AlterField(
                    model_name="paymentrefund",
                    name="payment",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="refunds",
                        to="payments.payment",
                    ),
                ),
            ],
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS payments_pagerequest_order_id_07da3bcf",
                    "CREATE INDEX CONCURRENTLY IF NOT EXISTS payments_pagerequest_order_id_07da3bcf"
                    " ON payments_pagerequest (order_id)",
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS payments_paymentrefund_payment_id_a4dd9b77",
                    "CREATE INDEX CONCURRENTLY IF NOT EXISTS payments_paymentrefund_payment_id_a4dd9b77"
                    " ON payments_paymentrefund (payment_id)",
                ),
            ],
        ),
    ]
