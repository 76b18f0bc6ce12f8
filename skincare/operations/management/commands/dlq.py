"""manage.py dlq: look through the dead-letter queue, put back, discard."""

import json
from dataclasses import asdict
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from skincare.events import audit
from skincare.events.exceptions import ReasonMissing
from skincare.events.queue_client import open_dead_letter_queue
from skincare.operations import dead_letter_actions
from skincare.operations.base_command import (
    NOT_DONE,
    USAGE,
    OperatorCommand,
    add_actor,
    local_time,
    short_time,
    since_argument,
)
from skincare.operations.dead_letter_actions import DeadLetterOutcome, Report
from skincare.operations.dead_letter_groups import groups_of
from skincare.operations.dead_letter_messages import (
    DeadLetterFilter,
    DeadLetterMessage,
    DeadLetterState,
)
from skincare.operations.identifiers import order_id_of
from skincare.operations.native_redrive import redrive_native
from skincare.operations.progress import ProgressBar
from skincare.sqs.queues import Depth

#: Characters of a message's id in a line on a terminal.
SHORT_ID: Final = 8


class Command(OperatorCommand):
    help = (
        "Look through the dead-letter queue without consuming it, put its events back on the "
        "queue, or discard messages for good. `dlq list` first."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)

        listing = actions.add_parser("list", help="one line for each message")
        _add_filters(listing)
        listing.add_argument(
            "--limit", type=int, default=1000, help="at most LIMIT messages (%(default)s)"
        )
        _add_json(listing, "one JSON object for each message, one on each line")

        groups = actions.add_parser("groups", help="how many of each error and type of event")
        _add_filters(groups)
        _add_json(groups, "one JSON object for each group, one on each line")

        show = actions.add_parser("show", help="everything about one message")
        show.add_argument("id", help="the message's id or how it begins, or its event's")
        _add_json(show, "one JSON object")

        redrive = actions.add_parser(
            "redrive",
            help="put events back through the outbox, under the same event id",
            description="What is done already stays done. A message is deleted here only after its "
            "event is in the outbox. Events that are finished are left alone unless --force. "
            "Messages in which there is no event can only be moved with --native.",
        )
        _add_filters(redrive)
        redrive.add_argument("--all", action="store_true", help="all messages: give no filter")
        redrive.add_argument(
            "--force",
            action="store_true",
            help="finished events too: what they did stays done once, their email is sent again",
        )
        redrive.add_argument(
            "--native",
            action="store_true",
            help="let SQS move all messages back as they are (StartMessageMoveTask): no filter",
        )
        _add_acting(redrive)

        discard = actions.add_parser("discard", help="delete messages for good")
        _add_filters(discard)
        discard.add_argument("--all", action="store_true", help="all messages: give no filter")
        discard.add_argument("--reason", required=True, help="why, for the audit entry")
        _add_acting(discard)

    def handle(self, *args: Any, **options: Any) -> None:
        match options["action"]:
            case "list":
                self._list(**options)
            case "groups":
                self._groups(**options)
            case "show":
                self._show(**options)
            case "redrive" if options["native"]:
                self._redrive_natively(**options)
            case "redrive":
                self._redrive(**options)
            case "discard":
                self._discard(**options)

    def _list(self, *, limit: int, json: bool, **options: Any) -> None:
        found = 0
        for dead_letter in dead_letter_actions.peek(limit=limit, matching=_filter(options)):
            found += 1
            if json:
                self.write_json(document_of(dead_letter))
            else:
                self.write_row(_line(dead_letter, short=self.is_for_a_person))
        if not found:
            raise CommandError("No message matches.", returncode=NOT_DONE)
        if not json:
            self.stderr.write(f"{found} messages" + (" (more may be there)" * (found == limit)))

    def _groups(self, *, json: bool, **options: Any) -> None:
        groups = groups_of(dead_letter_actions.peek(limit=None, matching=_filter(options)))
        for group in groups:
            if json:
                self.write_json(asdict(group))
            else:
                oldest, newest = short_time(group.oldest), short_time(group.newest)
                self.write_row(
                    f"{group.count:6}  {group.event_type:17}  {oldest} to {newest}  {group.error}"
                )
        if not groups:
            raise CommandError("No message matches.", returncode=NOT_DONE)

    def _show(self, *, id: str, json: bool, **_: Any) -> None:  # noqa: A002 the argument's name
        found = 0
        for dead_letter in dead_letter_actions.peek(limit=None):
            if id == dead_letter.event_id or dead_letter.message_id.startswith(id):
                found += 1
                if json:
                    self.write_json({**document_of(dead_letter), "body": dead_letter.body})
                else:
                    self._write_dead_letter(dead_letter)
        if not found:
            raise CommandError("No message has this id or this event id.", returncode=NOT_DONE)

    def _write_dead_letter(self, dead_letter: DeadLetterMessage) -> None:
        size = f"{dead_letter.size_bytes} bytes"
        self.write(f"message    {dead_letter.message_id}, {size}, {dead_letter.kind}")
        self.write(f"sent       {local_time(dead_letter.sent_at)}")
        self.write(f"received   {dead_letter.receive_count} times, looks included")
        self.write(f"state      {dead_letter.summary}")
        self.write(f"refused    {dead_letter.reason or 'no: a worker takes it'}")
        if dead_letter.event is not None:
            self.write(f"event      {json.dumps(dead_letter.event.document(), indent=2)}")
            self.write(f"\nmanage.py event show {dead_letter.event_id} tells the rest.")
        else:
            self.write(f"body       {dead_letter.body[:2000]!r}")

    def _redrive(
        self, *, force: bool, dry_run: bool, yes: bool, actor: str, **options: Any
    ) -> None:
        matching = _filter(options, all_needed=True)
        with ProgressBar() as bar:
            plan = dead_letter_actions.redrive(
                matching=matching, actor=actor, force=force, dry_run=True, progress=bar
            )
        wanted = plan.counts[DeadLetterOutcome.REDRIVEN]
        self._check_plan(plan)
        if dry_run or not wanted:
            return self._finish(plan, json=options["json"])
        if force:
            self.stderr.write("--force: what is finished runs again and sends its email again.")
        self.confirm(f"{wanted} events go back on the queue.", yes=yes)
        with ProgressBar() as bar:
            report = dead_letter_actions.redrive(
                matching=_only(plan), actor=actor, force=force, progress=bar
            )
        return self._finish(report, json=options["json"])

    def _discard(
        self, *, reason: str, dry_run: bool, yes: bool, actor: str, **options: Any
    ) -> None:
        try:
            audit.check_reason(reason)
        except ReasonMissing as error:
            raise CommandError(f"--reason is empty. {error}", returncode=USAGE) from None
        matching = _filter(options, all_needed=True)
        with ProgressBar() as bar:
            plan = dead_letter_actions.discard(
                matching=matching, reason=reason, actor=actor, dry_run=True, progress=bar
            )
        self._check_plan(plan)
        if dry_run:
            return self._finish(plan, json=options["json"])
        self.confirm(f"{len(plan.results)} messages are deleted for good.", yes=yes)
        with ProgressBar() as bar:
            report = dead_letter_actions.discard(
                matching=_only(plan), reason=reason, actor=actor, progress=bar
            )
        return self._finish(report, json=options["json"])

    def _redrive_natively(self, *, dry_run: bool, yes: bool, actor: str, **options: Any) -> None:
        if _filter(options) != DeadLetterFilter() or options["force"]:
            raise CommandError(
                "--native moves all messages: SQS knows no filter, and no state to force.",
                returncode=USAGE,
            )
        there: Depth = open_dead_letter_queue().depth()
        if not there.visible:
            raise CommandError("The dead-letter queue is empty.", returncode=NOT_DONE)
        text = f"About {there.visible} messages go back to the queue as they are, poison too."
        if dry_run:
            self.write(text)
            return
        self.confirm(text, yes=yes)
        with ProgressBar() as bar:
            move = redrive_native(actor=actor, progress=bar)
        if options["json"]:
            self.write_json({"status": move.status, "moved": move.moved, "failure": move.failure})
        else:
            self.write(f"{move.status}: {move.moved} messages moved. {move.failure}".strip())
        if move.status != "COMPLETED":
            raise CommandError("The move did not complete.", returncode=NOT_DONE)

    def _check_plan(self, plan: Report) -> None:
        if not plan.results:
            raise CommandError(
                f"No message matches ({plan.looked_at} looked at).", returncode=NOT_DONE
            )

    def _finish(self, report: Report, *, json: bool) -> None:
        """Print what became of the messages; fail where one was left."""
        if json:
            self.write_json(
                {
                    "dry_run": report.dry_run,
                    "looked_at": report.looked_at,
                    "counts": report.counts,
                    "messages": [
                        {
                            "message_id": dead_letter.message_id,
                            "event_id": dead_letter.event_id,
                            "outcome": outcome,
                        }
                        for dead_letter, outcome in report.results
                    ],
                }
            )
        else:
            would = "would be " if report.dry_run else ""
            for outcome, number in sorted(report.counts.items()):
                is_end = outcome in (DeadLetterOutcome.REDRIVEN, DeadLetterOutcome.DISCARDED)
                self.write(f"{number:6}  {would if is_end else 'left: '}{outcome}")
        ended = (
            report.counts[DeadLetterOutcome.REDRIVEN] + report.counts[DeadLetterOutcome.DISCARDED]
        )
        if ended < len(report.results):
            raise CommandError(
                f"{len(report.results) - ended} messages are left alone.", returncode=NOT_DONE
            )


def document_of(dead_letter: DeadLetterMessage) -> dict[str, Any]:
    """Return what --json says of a dead letter: ids and states, not the body."""
    return {
        "message_id": dead_letter.message_id,
        "kind": dead_letter.kind,
        "state": dead_letter.state,
        "summary": dead_letter.summary,
        "reason": dead_letter.reason,
        "sent_at": dead_letter.sent_at.isoformat(),
        "last_at": dead_letter.last_at.isoformat(),
        "receive_count": dead_letter.receive_count,
        "size_bytes": dead_letter.size_bytes,
        "event": dead_letter.event.document() if dead_letter.event else None,
    }


def _line(dead_letter: DeadLetterMessage, *, short: bool) -> str:
    """Return a dead letter in one line. The short one's id is enough for `show` and --id."""
    if short:
        what = dead_letter.event_type or dead_letter.kind
        return (
            f"{dead_letter.message_id[:SHORT_ID]}  {short_time(dead_letter.last_at)}  {what:17}  "
            f"{dead_letter.summary}"
        )
    what = (
        f"{dead_letter.event_type} {dead_letter.event_id}"
        if dead_letter.event
        else dead_letter.kind
    )
    summary = dead_letter.summary.splitlines()[0]
    return f"{dead_letter.message_id}  {local_time(dead_letter.last_at)}  {what}  {summary}"


def _only(plan: Report) -> DeadLetterFilter:
    """Return the filter for just those messages that the operator has agreed to."""
    return DeadLetterFilter(
        message_ids=frozenset(dead_letter.message_id for dead_letter, _ in plan.results)
    )


def _filter(options: dict[str, Any], *, all_needed: bool = False) -> DeadLetterFilter:
    matching = DeadLetterFilter(
        event_type=options["type"],
        error=options["error"],
        since=options["since"],
        state=options["state"],
        message_ids=frozenset(options["id"]) if options["id"] else None,
        order_id=_order_id(options["order"]),
    )
    if all_needed and (matching == DeadLetterFilter()) is not options["all"]:
        raise CommandError("Say which messages: by a filter, or --all.", returncode=USAGE)
    return matching


def _order_id(text: str | None) -> str | None:
    if text is None:
        return None
    order_id = order_id_of(text)
    if order_id is None:
        raise CommandError(f"There is no order {text}.", returncode=NOT_DONE)
    return order_id


def _add_filters(parser: CommandParser) -> None:
    parser.add_argument("--type", help="event type, such as payment.processed")
    parser.add_argument("--error", help="part of the error or of the reason for the refusal")
    parser.add_argument(
        "--since",
        type=since_argument,
        metavar="2h",
        help="last tried since then (90s, 30m, 2h, 7d, or a time); sent, if it was never tried",
    )
    parser.add_argument("--order", help="the order's number (SKN-…) or id")
    parser.add_argument("--state", choices=[state.value for state in DeadLetterState])
    parser.add_argument(
        "--id",
        action="append",
        metavar="MESSAGE_ID",
        help=f"this message, by its id or the first {SHORT_ID} characters of it; can be repeated",
    )


def _add_acting(parser: CommandParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_actor(parser)
    _add_json(parser, "one JSON object with the counts and each message's outcome")


def _add_json(parser: CommandParser, text: str) -> None:
    parser.add_argument("--json", action="store_true", help=f"print {text}")
