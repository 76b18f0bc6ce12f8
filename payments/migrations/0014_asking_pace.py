from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("payments", "0013_reversed_chargebacks")]

    operations = [
        migrations.CreateModel(
            name="AskingPace",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False),
                ),
                ("next_at", models.DateTimeField(help_text="by the database's clock")),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="asking_pace_is_one")
                ],
            },
        ),
    ]
