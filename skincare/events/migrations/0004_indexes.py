from django.contrib.postgres.operations import (
    AddIndexConcurrently,
    RemoveIndexConcurrently,
    ValidateConstraint,
)
from django.db import migrations, models


class Migration(migrations.Migration):
    """Without a lock that would stop the workers, so not in one transaction."""

    atomic = False
    dependencies = [("events", "0003_leases_and_put_offs")]

    operations = [
        # Such a time broke whoever listed it; when the worker saw it first is near enough.
        migrations.RunSQL(
            "UPDATE events_processedevent SET created_at = first_claimed_at"
            " WHERE created_at NOT BETWEEN '2000-01-01Z' AND '2100-01-01Z'",
            migrations.RunSQL.noop,
        ),
        ValidateConstraint(model_name="processedevent", name="processed_created_in_bounds"),
        AddIndexConcurrently(
            model_name="outboxevent",
            index=models.Index(
                condition=models.Q(("sent_at__isnull", False)),
                fields=["sent_at"],
                name="outbox_sent",
            ),
        ),
        RemoveIndexConcurrently(model_name="outboxevent", name="outbox_sent_at"),
        AddIndexConcurrently(
            model_name="processedevent",
            index=models.Index(fields=["payment_id"], name="processed_payment"),
        ),
        AddIndexConcurrently(
            model_name="processedevent",
            index=models.Index(
                condition=models.Q(("put_off_until__isnull", False)),
                fields=["put_off_until"],
                name="processed_put_off",
            ),
        ),
    ]
