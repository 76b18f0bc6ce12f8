import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    """Known to forms only: the column stays what it is."""

    dependencies = [("orders", "0011_fewer_indexes")]

    operations = [
        migrations.AlterField(
            model_name="product",
            name="price_rupiah",
            field=models.BigIntegerField(
                validators=[
                    django.core.validators.MinValueValidator(0),
                    django.core.validators.MaxValueValidator(1_000_000_000),
                ]
            ),
        ),
    ]
