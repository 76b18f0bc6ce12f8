from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False  # an index that is made while the table is written to
    dependencies = [("orders", "0006_operators_indexes")]

    operations = [
        AddIndexConcurrently(
            model_name="stockmovement",
            index=models.Index(fields=["event_id"], name="stock_movement_event"),
        )
    ]
