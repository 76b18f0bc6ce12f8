from dataclasses import replace
from typing import Any

from django.apps import AppConfig

from skincare.events import handlers
from skincare.events.handlers import Handler
from skincare.events.schema import Event
from tests.acceptance.faultpoints import reach


class FaultPointsConfig(AppConfig):
    """Comes last, so that all handlers are there to be wrapped."""

    name = "tests.acceptance.faultpoints"

    def ready(self) -> None:
        for event_type, handler in handlers._handlers.items():
            handlers._handlers[event_type] = with_points(handler)


def with_points(handler: Handler) -> Handler:
    """Return the handler with its fault points."""

    def effects(event: Event, *prepared: Any) -> Any:
        found = handler.effects(event, *prepared)
        reach("effects", event.event_id)
        return found

    def notify(event: Event, *found: Any, **fence: Any) -> None:
        reach("email", event.event_id)
        if handler.notify is not None:
            handler.notify(event, *found, **fence)
        reach("done", event.event_id)

    return replace(handler, effects=effects, notify=notify)
