"""What is done for each event type. Apps register theirs in `AppConfig.ready`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from skincare.events.exceptions import DuplicateHandler
from skincare.events.schema import Event


@dataclass(frozen=True)
class Handler:
    """The steps of one event type.

    `prepare` asks others, such as a payment gateway: no transaction is open and no row is locked
    meanwhile. What it returns is passed to `effects` as a second argument. With
    `prepares_on_demand`, `effects` comes first, without it, and raises `NotPrepared` where it needs
    what `prepare` returns; it is rolled back then, and runs again. `effects` runs inside
    the transaction that also checks the claim's fence, so it happens exactly once. What it returns,
    if anything, is passed to `notify` as a second argument, unless an earlier try had the effects.
    `notify` (the email) runs after that commit and before "done"; it can run twice if the process
    dies in between, so it must be safe to repeat. It raises `NotificationDelayed` where it is to be
    tried again hours later, if need be. A `notify` that is `fenced` takes the claim as `held`, and
    makes sure of it in its own first statement. Each raises `TerminalError` for what can never
    work; every other exception leads to another try.
    """

    effects: Callable[..., Any]
    notify: Callable[..., None] | None = None
    prepare: Callable[[Event], Any] | None = None
    prepares_on_demand: bool = False
    fenced: bool = False


_handlers: dict[str, Handler] = {}


def register(event_type: str, handler: Handler) -> None:
    """Make `handler` the one for `event_type`. Raises `DuplicateHandler` if it has one already."""
    if event_type in _handlers:
        raise DuplicateHandler(event_type)
    _handlers[event_type] = handler


def handler_for(event_type: str) -> Handler | None:
    """Return the handler of `event_type`, or None where nobody handles it."""
    return _handlers.get(event_type)
