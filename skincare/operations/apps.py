from django.apps import AppConfig
from django.db.models.signals import post_migrate


class OperationsConfig(AppConfig):
    name = "skincare.operations"
    label = "operations"
    verbose_name = "Operations"

    def ready(self) -> None:
        from skincare.events import relay
        from skincare.operations.dead_letter_gauge import EVERY_SECONDS, report_dead_letters
        from skincare.operations.groups import update_groups

        relay.every(EVERY_SECONDS, "report_dead_letters", report_dead_letters)
        from skincare.events.admin import EventAdmin
        from skincare.operations.identifiers import order_id_of

        EventAdmin.order_id_of = staticmethod(order_id_of)
        post_migrate.connect(update_groups, dispatch_uid="skincare.operations.groups")
