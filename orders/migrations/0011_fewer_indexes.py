import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """What another index begins with, and Django's own for searches by the beginning of a key.

    Nobody makes such a search, and each row pays for its indexes.
    """

    atomic = False  # the tables are in use meanwhile
    dependencies = [("orders", "0010_large_lists")]

    operations = [
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS orders_order_number_abc9e0f2_like",
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS orders_order_number_abc9e0f2_like"
            " ON orders_order (number varchar_pattern_ops)",
        ),
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS orders_product_sku_1b640eb4_like",
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS orders_product_sku_1b640eb4_like"
            " ON orders_product (sku varchar_pattern_ops)",
        ),
        # Django would make the foreign keys anew, and check all rows under a lock.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="orderline",
                    name="order",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="lines",
                        to="orders.order",
                    ),
                ),
                migrations.AlterField(
                    model_name="sentemail",
                    name="order",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="emails",
                        to="orders.order",
                    ),
                ),
            ],
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS orders_orderline_order_id_17f8f3ef",
                    "CREATE INDEX CONCURRENTLY IF NOT EXISTS orders_orderline_order_id_17f8f3ef"
                    " ON orders_orderline (order_id)",
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS orders_sentemail_order_id_34940c4f",
                    "CREATE INDEX CONCURRENTLY IF NOT EXISTS orders_sentemail_order_id_34940c4f"
                    " ON orders_sentemail (order_id)",
                ),
            ],
        ),
    ]
