from django.apps import AppConfig


class EventsConfig(AppConfig):
    name = "skincare.events"
    label = "events"
    verbose_name = "Order events"

    def ready(self) -> None:
        from django.db.backends.signals import connection_created

        from skincare.events import checks, gauges, relay  # noqa: F401  (checks registers itself)
        from skincare.events.time_limits import limit_time

        connection_created.connect(limit_time, dispatch_uid="skincare.events.time_limits")
        relay.every(gauges.EVERY_SECONDS, "report_backlog", gauges.report_backlog)
