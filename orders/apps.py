from datetime import timedelta

from django.apps import AppConfig
from django.conf import settings


class OrdersConfig(AppConfig):
    name = "orders"
    verbose_name = "Shop"

    def ready(self) -> None:
        from orders import handlers, lifecycle, ranges  # noqa: F401  (ranges registers itself)
        from skincare.events import relay
        from skincare.events.handlers import register
        from skincare.events.schema import ORDER_CONFIRMED

        register(ORDER_CONFIRMED, handlers.ORDER_CONFIRMED)
        relay.every(
            settings.UNPAID_ORDER_SWEEP_SECONDS,
            "expire_unpaid_orders",
            lambda: lifecycle.expire_unpaid_orders(
                older_than=timedelta(hours=settings.UNPAID_ORDER_EXPIRES_HOURS)
            ),
        )
