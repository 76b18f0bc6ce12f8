from django.apps import AppConfig


class OrdersConfig(AppConfig):
    name = "orders"
    verbose_name = "Shop"

    def ready(self) -> None:
        from orders import handlers, ranges  # noqa: F401  (ranges registers itself)
        from skincare.events.handlers import register
        from skincare.events.schema import ORDER_CONFIRMED, ORDER_EXPIRED

        register(ORDER_CONFIRMED, handlers.ORDER_CONFIRMED)
        register(ORDER_EXPIRED, handlers.ORDER_EXPIRED)
