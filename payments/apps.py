from django.apps import AppConfig
from django.conf import settings


class PaymentsConfig(AppConfig):
    name = "payments"
    verbose_name = "Payments"

    def ready(self) -> None:
        from payments import (
            checks,  # noqa: F401  (registers itself)
            expiry,
            handlers,
            holds,
            methods,
            money_check,
            notifications,
            ranges,  # noqa: F401  (registers itself)
            reconciliation,
            refund_sending,
            restocking,
        )
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
            reconciliation.Sweeper(reconciliation.sweep, reconciliation.is_due).start,
        )
        relay.every(settings.UNPAID_ORDER_SWEEP_SECONDS, "adopt_holds", holds.adopt_all)
        relay.every(
            reconciliation.GAUGE_SECONDS,
            "gauge_open_attempts",
            reconciliation.gauge_open_attempts,
        )
        relay.every(
            settings.UNPAID_ORDER_SWEEP_SECONDS,
            "serve_out_of_stock",
            restocking.serve_out_of_stock,
        )
        relay.every(settings.MONEY_CHECK_SECONDS, "check_money", money_check.check_daily)
        relay.every(
            settings.RECONCILE_SWEEP_SECONDS,
            "send_refunds",
            reconciliation.Sweeper(refund_sending.send_due, refund_sending.is_due).start,
        )
