import django.db.models.functions.text
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False  # the indexes are built while orders are taken

    dependencies = [("orders", "0008_unpaid_by_network")]

    operations = [
        AddIndexConcurrently(
            model_name="order",
            index=models.Index(
                django.db.models.functions.text.Lower(
                    models.Func(
                        "email",
                        models.Value("\\+[^@]*@"),
                        models.Value("@"),
                        function="regexp_replace",
                    )
                ),
                name="order_mailbox",
            ),
        ),
        AddIndexConcurrently(
            model_name="order",
            index=models.Index(
                condition=models.Q(
                    ("total_rupiah", 0), models.Q(("network_hash", ""), _negated=True)
                ),
                fields=["network_hash"],
                name="order_free_network",
            ),
        ),
    ]
