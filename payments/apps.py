from django.apps import AppConfig


class PaymentsConfig(AppConfig):
    name = "payments"
    verbose_name = "Payments"

    def ready(self) -> None:
        from payments import checks, handlers, methods  # noqa: F401  (checks registers itself)

        methods.register_enabled()
        handlers.register_handlers()
