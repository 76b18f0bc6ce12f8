from django.apps import AppConfig


class EventsConfig(AppConfig):
    name = "skincare.events"
    label = "events"
    verbose_name = "Order events"

    def ready(self) -> None:
        from django.db.backends.signals import connection_created

        from skincare.events import checks, gauges, relay, unclaimed  # noqa: F401  (checks registers itself)
        from skincare.events.database_sessions import prepare_session
        from skincare.events.stored_moments import read_any_moment

        connection_created.connect(prepare_session, dispatch_uid="skincare.events.sessions")
        connection_created.connect(read_any_moment, dispatch_uid="skincare.events.moments")
        relay.every(unclaimed.EVERY_SECONDS, "resend_unclaimed", unclaimed.resend_unclaimed)
        relay.every(unclaimed.SEARCH_EVERY_SECONDS, "search_unclaimed", unclaimed.search_on)
        relay.every(gauges.EVERY_SECONDS, "report_backlog", gauges.report_backlog)
