from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("payments", "0012_refunds_by_hand")]

    operations = [
        migrations.AlterField(
            model_name="paymentrefund",
            name="kind",
            field=models.CharField(
                choices=[
                    ("refund", "refund"),
                    ("chargeback", "chargeback"),
                    ("by_hand", "sent back by hand"),
                    ("reversal", "chargeback reversed"),
                ],
                max_length=16,
            ),
        ),
        migrations.RemoveConstraint(model_name="paymentrefund", name="payment_refund_amount_sign"),
        migrations.AddConstraint(
            model_name="paymentrefund",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("amount_rupiah__gt", 0), models.Q(("kind", "reversal"), _negated=True)
                    ),
                    models.Q(("amount_rupiah__lt", 0), ("kind", "reversal")),
                    _connector="OR",
                ),
                name="payment_refund_amount_sign",
            ),
        ),
        migrations.RemoveConstraint(model_name="paymentrefund", name="payment_refund_kind_known"),
        migrations.AddConstraint(
            model_name="paymentrefund",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["refund", "chargeback", "by_hand", "reversal"])),
                name="payment_refund_kind_known",
            ),
        ),
    ]
