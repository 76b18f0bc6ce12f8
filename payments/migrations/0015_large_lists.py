from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False  # the tables are in use while the indexes are made
    dependencies = [("payments", "0014_asking_pace")]

    operations = [
        AddIndexConcurrently(
            model_name="paymentnotification",
            index=models.Index(
                condition=models.Q(("outcome__in", ("applied", "waiting")), _negated=True),
                fields=["outcome", "-id"],
                name="notification_rare_outcome",
            ),
        ),
        AddIndexConcurrently(
            model_name="paymentrefund",
            index=models.Index(fields=["key"], name="payment_refund_key"),
        ),
        AddIndexConcurrently(
            model_name="paymentrefund",
            index=models.Index(fields=["refunded_at"], name="payment_refund_at"),
        ),
        AddIndexConcurrently(
            model_name="paymentrefund",
            index=models.Index(fields=["kind", "-id"], name="payment_refund_kind"),
        ),
        AddIndexConcurrently(
            model_name="hold",
            index=models.Index(fields=["code", "-id"], name="hold_code"),
        ),
        AddIndexConcurrently(
            model_name="hold",
            index=models.Index(fields=["closed_how", "-id"], name="hold_closed_how"),
        ),
    ]
