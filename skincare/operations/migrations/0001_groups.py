from typing import Any

from django.db import migrations

from skincare.operations.groups import PERMISSIONS, make_groups


def make(apps: Any, schema_editor: Any) -> None:
    make_groups(apps)


def remove(apps: Any, schema_editor: Any) -> None:
    apps.get_model("auth", "Group").objects.filter(name__in=PERMISSIONS).delete()


class Migration(migrations.Migration):
    initial = True
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("events", "0002_permissions"),
        ("orders", "0003_permissions"),
        ("payments", "0003_decided_by_hand"),
    ]
    operations = [migrations.RunPython(make, remove)]
