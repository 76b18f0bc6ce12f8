import django.db.models.deletion
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Lists of millions of rows: each filter and search has an index in the list's order.

    The keys of products get wider indexes, and the Idempotency-Key's constraint another order of
    its columns, so that an insert writes no more of them than before.
    """

    atomic = False  # the tables are in use while the indexes are made
    dependencies = [("orders", "0009_hoarding")]

    operations = [
        AddIndexConcurrently(
            model_name="stockmovement",
            index=models.Index(fields=["product", "-id"], name="stock_movement_product"),
        ),
        AddIndexConcurrently(
            model_name="orderline",
            index=models.Index(fields=["product", "id"], name="order_line_product"),
        ),
        # Django would make the foreign keys anew, and check all rows under a lock.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="stockmovement",
                    name="product",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="movements",
                        to="orders.product",
                    ),
                ),
                migrations.AlterField(
                    model_name="orderline",
                    name="product",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="orders.product",
                    ),
                ),
            ],
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS orders_stockmovement_product_id_b6c96ab4",
                    "CREATE INDEX CONCURRENTLY IF NOT EXISTS"
                    " orders_stockmovement_product_id_b6c96ab4"
                    " ON orders_stockmovement (product_id)",
                ),
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS orders_orderline_product_id_a68772b6",
                    "CREATE INDEX CONCURRENTLY IF NOT EXISTS"
                    " orders_orderline_product_id_a68772b6 ON orders_orderline (product_id)",
                ),
            ],
        ),
        AddIndexConcurrently(
            model_name="stockmovement",
            index=models.Index(
                condition=models.Q(("kind__in", ("reserve", "sell")), _negated=True),
                fields=["kind", "-id"],
                name="stock_movement_rare_kind",
            ),
        ),
        AddIndexConcurrently(
            model_name="ordertransition",
            index=models.Index(
                condition=models.Q(("to_status__in", ("paid",)), _negated=True),
                fields=["to_status", "-id"],
                name="order_transition_rare",
            ),
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveConstraint(
                    model_name="checkoutrequest", name="checkout_request_key_once"
                ),
                migrations.AddConstraint(
                    model_name="checkoutrequest",
                    constraint=models.UniqueConstraint(
                        fields=("key", "scope"), name="checkout_request_once"
                    ),
                ),
            ],
            database_operations=[
                migrations.RunSQL(
                    "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS checkout_request_once"
                    " ON orders_checkoutrequest (key, scope)",
                    "ALTER TABLE orders_checkoutrequest DROP CONSTRAINT checkout_request_once",
                ),
                # At every moment one of the two says what it always said.
                migrations.RunSQL(
                    "ALTER TABLE orders_checkoutrequest"
                    " ADD CONSTRAINT checkout_request_once UNIQUE USING INDEX"
                    " checkout_request_once,"
                    " DROP CONSTRAINT checkout_request_key_once",
                    "ALTER TABLE orders_checkoutrequest"
                    " ADD CONSTRAINT checkout_request_key_once UNIQUE (scope, key)",
                ),
            ],
        ),
    ]
