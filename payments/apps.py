from django.apps import AppConfig


class PaymentsConfig(AppConfig):
    name = "payments"
    verbose_name = "Payments"

    def ready(self) -> None:
        from payments import handlers, methods, ranges  # noqa: F401  (ranges registers itself)

        methods.register_enabled()
        handlers.register_handlers()
