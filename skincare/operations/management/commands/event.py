"""manage.py event: one event's history, and what a person can do with it."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db.models import QuerySet

from skincare.events import manual_actions
from skincare.events.exceptions import AlreadyFinished, ReasonMissing, StillInProgress, UnknownEvent
from skincare.events.models import ProcessedEvent
from skincare.operations.base_command import (
    NOT_DONE,
    OperatorCommand,
    add_actor,
    local_time,
    short_time,
    since_argument,
)
from skincare.operations.history import EventHistory, event_history
from skincare.operations.identifiers import order_id_of

_REFUSALS = (AlreadyFinished, UnknownEvent, StillInProgress, ReasonMissing)


class Command(OperatorCommand):
    help = "Show what happened to an event, put it back on the queue, or mark it as skipped."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)

        listing = actions.add_parser("list", help="one line for each event that workers know")
        listing.add_argument("--status", choices=ProcessedEvent.Status.values)
        listing.add_argument("--type", help="event type, such as payment.processed")
        listing.add_argument("--order", help="the order's number (SKN-…) or id")
        listing.add_argument("--error", help="part of the last error")
        listing.add_argument(
            "--since", type=since_argument, metavar="2h", help="claimed last since then"
        )
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
            help="mark it as skipped: no worker processes it any more",
            description="For what was settled by hand. What is done stays done; an email that is "
            "still to come is never sent.",
        )
        skip.add_argument("event_id")
        skip.add_argument("--reason", required=True, help="why, for whoever looks later")
        _add_yes(skip)
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
                    skipped = manual_actions.skip(
                        options["event_id"], reason=options["reason"], actor=options["actor"]
                    )
                    self.write(f"{skipped} is skipped")
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
    if error is not None:
        events = events.filter(last_error__icontains=error)
    if since is not None:
        events = events.filter(claimed_at__gte=since)
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


def _add_json(parser: CommandParser, text: str) -> None:
    parser.add_argument("--json", action="store_true", help=f"print {text}")


def _add_yes(parser: CommandParser) -> None:
    """Take --yes as all commands do that change something; of one event nobody is asked anyway."""
    parser.add_argument("--yes", action="store_true", help="do not ask (it does not)")
