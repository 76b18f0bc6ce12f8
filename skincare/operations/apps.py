from django.apps import AppConfig
from django.db.models.signals import post_migrate


class OperationsConfig(AppConfig):
    name = "skincare.operations"
    label = "operations"
    verbose_name = "Operations"

    def ready(self) -> None:
        from skincare.operations.groups import update_groups

        post_migrate.connect(update_groups, dispatch_uid="skincare.operations.groups")
