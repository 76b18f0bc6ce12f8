"""What the events' services refuse, and why: one class for each thing."""


class InvalidEvent(ValueError):
    """The document is not an event: `field` says where, `rule` says what was expected."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(field, rule)
        self.field = field
        self.rule = rule

    def __str__(self) -> str:
        return f"{self.field}: {self.rule}"


class InvalidMoment(ValueError):
    """The text is no RFC 3339 time, or the moment is out of bounds: the text says which."""


class InvalidDuration(ValueError):
    """Write a time as 90s, 30m, 2h or 7d ago, or as 2026-11-11T00:00:00+07:00."""


class OutsideTransaction(RuntimeError):
    """publish() outside transaction.atomic(): the event could outlive a failed change."""


class EventTooLarge(ValueError):
    """The event's JSON is larger than settings.EVENT_MAX_BYTES: send ids, not snapshots."""


class TerminalError(Exception):
    """The event can never be processed as it is: trying again is useless, a person must look."""


class NotificationDelayed(Exception):
    """The effects stand, and who should be notified cannot be reached now: try again later.

    `at_least` is for how many seconds trying again is of no use. `spacing` is given where nothing
    was tried, because others have their turn first: how many seconds apart turns are.
    """

    def __init__(self, reason: str, *, at_least: float = 0.0, spacing: float | None = None) -> None:
        super().__init__(reason)
        self.at_least = at_least
        self.spacing = spacing


class DependencyAway(Exception):
    """What has to be asked before the effects does not answer: nothing was done, try again later.

    `at_least` is for how many seconds trying again is of no use.
    """

    def __init__(self, reason: str, *, at_least: float = 0.0) -> None:
        super().__init__(reason)
        self.at_least = at_least


class NotPrepared(Exception):
    """The effects need what their handler's `prepare` finds out: roll back, and call it first."""


class DuplicateHandler(Exception):
    """Two apps want the same event type."""


class LostClaim(Exception):
    """Another worker took the event over: nothing of this try may be committed."""


class UnknownEvent(Exception):
    """No event with this id was ever published or received here."""


class AnotherEvent(Exception):
    """Another event, with another payload, is stored under this id."""


class AlreadyFinished(Exception):
    """The event is done or skipped already."""


class StillInProgress(Exception):
    """A worker holds the event; its lease must end first."""


class UnknownActor(Exception):
    """No user has this name: what is decided here is kept with the user who decides."""


class ReasonMissing(Exception):
    """Say why: the reason is kept for whoever looks later."""
