"""An event loop and a client in one, whose timers fire and whose calls are answered by the test."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from skincare.sqs.async_client import Result


@dataclass
class Timer:
    delay: float
    call: Callable[[], object]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class Loop:
    """What an acknowledger needs of the event loop and of the client: timers fire, and calls are
    answered, when the test says so."""

    timers: list[Timer] = field(default_factory=list)
    calls: list[tuple[str, list[dict[str, Any]], Callable[[Result], None]]] = field(
        default_factory=list
    )

    def call_later(self, delay: float, function: Callable[..., object], *args: Any) -> Timer:
        self.timers.append(timer := Timer(delay, lambda: function(*args)))
        return timer

    def call(
        self,
        action: str,
        arguments: dict[str, Any],
        *,
        timeout: float,
        done: Callable[..., None],
        sent: Callable[[], None] = lambda: None,
    ) -> None:
        sent()
        self.calls.append((action, arguments.get("Entries", []), done))

    def fire(self) -> float:
        """Fire the timer that was set last; return its delay."""
        timer = self.timers.pop()
        assert not timer.cancelled
        timer.call()
        return timer.delay

    def answer(self, result: Result) -> None:
        """Answer the call that was made last."""
        self.calls[-1][2](result)


def succeeded(count: int) -> Result:
    return {"Successful": [{"Id": str(n)} for n in range(count)]}


def failed(code: str, *positions: int, of: int = 1) -> Result:
    entries = [{"Id": str(n), "Code": code} for n in positions]
    others = [{"Id": str(n)} for n in range(of) if n not in positions]
    return {"Successful": others, "Failed": entries}
