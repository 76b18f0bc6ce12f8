from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False  # the index is built while orders are taken

    dependencies = [("orders", "0007_movements_by_event")]

    operations = [
        migrations.AddField(
            model_name="order",
            name="network_hash",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="of the address that ordered, as only this shop can compute it",
                max_length=32,
            ),
        ),
        AddIndexConcurrently(
            model_name="order",
            index=models.Index(
                condition=models.Q(
                    ("status", "pending"), models.Q(("network_hash", ""), _negated=True)
                ),
                fields=["network_hash"],
                name="order_unpaid_network",
            ),
        ),
    ]
