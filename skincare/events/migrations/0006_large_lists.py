from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False  # the table is in use while the index is made
    dependencies = [("events", "0005_event_type_index")]

    operations = [
        AddIndexConcurrently(
            model_name="processedevent",
            index=models.Index(
                condition=models.Q(
                    ("status__in", ("processing", "effects_done", "done")), _negated=True
                ),
                fields=["status", "-id"],
                name="processed_rare_status",
            ),
        ),
    ]
