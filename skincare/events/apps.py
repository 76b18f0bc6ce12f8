from django.apps import AppConfig


class EventsConfig(AppConfig):
    name = "skincare.events"
    label = "events"
    verbose_name = "Order events"

    def ready(self) -> None:
        from skincare.events import checks  # noqa: F401  (registers the system checks)
