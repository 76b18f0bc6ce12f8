import datetime

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("events", "0002_permissions")]

    operations = [
        migrations.AddField(
            model_name="outboxevent",
            name="leased_until",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="processedevent",
            name="put_off_until",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="processedevent",
            name="put_off_since",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="processedevent",
            name="put_offs",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        AddConstraintNotValid(
            model_name="processedevent",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    created_at__gte=datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC),
                    created_at__lte=datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC),
                ),
                name="processed_created_in_bounds",
            ),
        ),
    ]
