"""manage.py event: events' history, and what a person can do with them."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db.models import F, QuerySet

from skincare.events import manual_actions
from skincare.events.exceptions import AlreadyFinished, ReasonMissing, StillInProgress, UnknownEvent
from skincare.events.models import ProcessedEvent
from skincare.operations.base_command import (
    NOT_DONE,
    USAGE,
    OperatorCommand,
    add_actor,
    local_time,
    printable,
    short_time,
    since_argument,
)
from skincare.operations.history import EventHistory, event_history
from skincare.operations.identifiers import order_id_of

_LEFT_ALONE = (AlreadyFinished, UnknownEvent, StillInProgress)
_REFUSALS = (*_LEFT_ALONE, ReasonMissing)
_FILTERS = ("status", "type", "order", "error", "since")
_WITH_ERRORS = [one for one in ProcessedEvent.Status.values if one != ProcessedEvent.Status.DONE]
_UNFINISHED = [one for one in ProcessedEvent.Status.values if one not in ProcessedEvent.FINISHED]


class Command(OperatorCommand):
    help = "Show what happened to an event, put it back on the queue, or mark it as skipped."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)

        listing = actions.add_parser("list", help="one line for each event that workers know")
        _add_filters(listing, statuses=ProcessedEvent.Status.values)
        listing.add_argument("--limit", type=int, default=100, help="at most (%(default)s)")
        _add_json(listing, "one JSON object for each event, one on each line")

        show = actions.add_parser("show", help="its timeline, its order and its payment")
        show.add_argument("event_id")
        _add_json(show, "one JSON object")

        replay = actions.add_parser(
            "replay",
            help="put it back on the queue under the same id",
            description="What is done already stays done. A finished event is refused unless "
            "--force: then its email is sent again.",
        )
        replay.add_argument("event_id")
        replay.add_argument("--force", action="store_true", help="even if it is finished")
        _add_yes(replay)
        add_actor(replay)

        skip = actions.add_parser(
            "skip",
            help="mark events as skipped: no worker processes them any more",
            description="For what was settled by hand. What is done stays done; an email that is "
            "still to come is never sent. Name events, or filter those that are not finished; more "
            "than one are shown before you are asked.",
        )
        skip.add_argument("event_id", nargs="*")
        _add_filters(skip, statuses=_UNFINISHED)
        skip.add_argument("--reason", required=True, help="why, for whoever looks later")
        skip.add_argument("--dry-run", action="store_true", help="only say what would be done")
        skip.add_argument("--yes", action="store_true", help="do not ask")
        add_actor(skip)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            match options["action"]:
                case "list":
                    self._list(**options)
                case "show":
                    self._show(options["event_id"], json=options["json"])
                case "replay":
                    replayed = manual_actions.replay(
                        options["event_id"], force=options["force"], actor=options["actor"]
                    )
                    self.write(str(replayed))
                case "skip":
                    self._skip(**options)
        except _REFUSALS as refusal:
            text = f"{type(refusal).__name__}: {refusal}"
            raise CommandError(text, returncode=NOT_DONE) from None

    def _list(self, *, limit: int, json: bool, **options: Any) -> None:
        found = list(_events(**options)[:limit])
        for event in found:
            if json:
                self.write_json(_document(event))
            else:
                time = short_time if self.is_for_a_person else local_time
                error = event.last_error.splitlines()[0] if event.last_error else ""
                self.write_row(
                    f"{time(event.claimed_at)}  {event.event_type} {event.event_id}  "
                    f"{event.get_status_display()}, try {event.attempts}  {error}".rstrip()
                )
        if not found:
            raise CommandError("No event matches.", returncode=NOT_DONE)

    def _skip(
        self,
        *,
        event_id: list[str],
        reason: str,
        dry_run: bool,
        yes: bool,
        actor: str,
        **options: Any,
    ) -> None:
        """Skip the named events, or those that match. Each has its own transaction and entry."""
        wanted = self._wanted(event_id, **options)
        if dry_run:
            for one in wanted:
                self.write(f"{one} would be skipped")
            return
        if wanted != event_id or len(wanted) > 1:
            self._ask_for(wanted, yes=yes)
        left: list[str] = []
        for one in wanted:
            try:
                skipped = manual_actions.skip(one, reason=reason, actor=actor)
            except _LEFT_ALONE as refusal:
                left.append(f"{type(refusal).__name__}: {refusal}")
            else:
                self.write(f"{skipped} is skipped")
        if left:
            raise CommandError("\n".join(left), returncode=NOT_DONE)

    def _wanted(self, named: list[str], **options: Any) -> list[str]:
        """Return the ids of the events that the arguments mean, each once."""
        is_filtered = any(options[name] is not None for name in _FILTERS)
        if bool(named) is is_filtered:
            raise CommandError("Say which events: by their ids, or by a filter.", returncode=USAGE)
        if named:
            return list(dict.fromkeys(named))
        unfinished = _events(**options).exclude(status__in=ProcessedEvent.FINISHED)
        found = list(unfinished.values_list("event_id", flat=True))
        if not found:
            raise CommandError("No event matches.", returncode=NOT_DONE)
        return found

    def _ask_for(self, wanted: list[str], *, yes: bool) -> None:
        if not yes:
            for one in wanted:
                self.stderr.write(printable(one))
        self.confirm(f"{len(wanted)} events are never processed any more.", yes=yes)

    def _show(self, event_id: str, *, json: bool) -> None:
        history = event_history(event_id)
        if json:
            self.write_json(
                {
                    "event": history.document,
                    "status": history.status,
                    "timeline": [
                        {"at": one.at.isoformat(), "what": one.what, "detail": one.detail}
                        for one in history.entries
                    ],
                    "order": _order(history),
                    "payment": _payment(history),
                }
            )
            return
        self.write(str(history))


def _events(
    *,
    status: str | None,
    type: str | None,  # noqa: A002 the argument's name
    order: str | None,
    error: str | None,
    since: datetime | None,
    **_: Any,
) -> QuerySet[ProcessedEvent]:
    events = ProcessedEvent.objects.order_by("-id")
    if status is not None:
        events = events.filter(status=status).order_by("-claimed_at")
    if type is not None:
        events = events.filter(event_type=type)
    if order is not None:
        order_id = order_id_of(order)
        events = events.filter(order_id=order_id) if order_id else events.none()
    if error:
        # What is done has none. The sum keeps PostgreSQL from walking the table from its newest row
        # on, by the key, for the few that an index by status has.
        events = events.filter(last_error__icontains=error, status__in=_WITH_ERRORS)
        events = events.order_by((F("id") + 0).desc()) if status is None else events
    if since is not None:
        # Of whatever status, because the index of the times begins with it.
        of_any = ProcessedEvent.Status.values
        events = events.filter(claimed_at__gte=since, status__in=of_any)
    return events


def _document(event: ProcessedEvent) -> dict[str, Any]:
    return {
        "event_id": event.event_id,
        "event_type": event.event_type,
        "order_id": event.order_id,
        "payment_id": event.payment_id,
        "status": event.status,
        "attempts": event.attempts,
        "receive_count": event.receive_count,
        "claimed_at": event.claimed_at.isoformat(),
        "last_error": event.last_error,
    }


def _order(history: EventHistory) -> dict[str, Any] | None:
    order = history.order
    if order is None:
        return None
    return {
        "number": order.number,
        "id": str(order.pk),
        "status": order.status,
        "total_rupiah": order.total_rupiah,
        "held_reason": order.held_reason,
    }


def _payment(history: EventHistory) -> dict[str, Any] | None:
    payment = history.payment
    if payment is None:
        return None
    return {
        "id": str(payment.pk),
        "provider": payment.provider,
        "transaction_id": payment.transaction_id,
        "status": payment.status,
        "amount_rupiah": payment.amount_rupiah,
        "refunded_rupiah": payment.refunded_rupiah,
        "held_reason": payment.held_reason,
    }


def _add_filters(parser: CommandParser, *, statuses: list[str]) -> None:
    parser.add_argument("--status", choices=statuses)
    parser.add_argument("--type", help="event type, such as payment.processed")
    parser.add_argument("--order", help="the order's number (SKN-…) or id")
    parser.add_argument("--error", help="part of the last error")
    parser.add_argument(
        "--since", type=since_argument, metavar="2h", help="claimed last since then"
    )


def _add_json(parser: CommandParser, text: str) -> None:
    parser.add_argument("--json", action="store_true", help=f"print {text}")


def _add_yes(parser: CommandParser) -> None:
    """Take --yes as all commands do that change something; of one event nobody is asked anyway."""
    parser.add_argument("--yes", action="store_true", help="do not ask (it does not)")
