from django.apps import AppConfig
from django.conf import settings


class PaymentsConfig(AppConfig):
    name = "payments"
    verbose_name = "Payments"

    def ready(self) -> None:
        from payments import expiry, handlers, methods, notifications, ranges, reconciliation  # noqa: F401  (ranges registers itself)
        from skincare.events import relay

        methods.register_enabled()
        handlers.register_handlers()
        relay.every(
            settings.UNPAID_ORDER_SWEEP_SECONDS,
            "expire_unpaid_orders",
            expiry.expire_unpaid_orders,
        )
        relay.every(
            settings.UNMATCHED_RETRY_SECONDS,
            "retry_unmatched_notifications",
            notifications.retry_unmatched,
        )
        relay.every(
            settings.RECONCILE_SWEEP_SECONDS,
            "reconcile_payments",
            reconciliation.sweeper.start,
        )
