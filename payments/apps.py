from django.apps import AppConfig


class PaymentsConfig(AppConfig):
    name = "payments"
    verbose_name = "Payments"

    def ready(self) -> None:
        from payments import checks, handlers, methods, ranges  # noqa: F401  (register themselves)

        methods.register_enabled()
        handlers.register_handlers()
