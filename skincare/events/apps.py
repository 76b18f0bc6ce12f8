from django.apps import AppConfig


class EventsConfig(AppConfig):
    name = "skincare.events"
    label = "events"
    verbose_name = "Order events"

    def ready(self) -> None:
        from skincare.events import checks, gauges, relay  # noqa: F401  (checks registers itself)

        relay.every(gauges.EVERY_SECONDS, "report_backlog", gauges.report_backlog)
