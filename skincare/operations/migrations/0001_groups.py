from django.db import migrations


class Migration(migrations.Migration):
    """Nothing any more: `skincare.operations.groups` brings the groups up to date after migrate."""

    initial = True
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("events", "0002_permissions"),
        ("orders", "0003_permissions"),
        ("payments", "0003_decided_by_hand"),
    ]
    operations = []
