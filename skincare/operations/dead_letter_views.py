"""The dead-letter queue in the browser: look, put back, discard."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from skincare.events.exceptions import ReasonMissing
from skincare.events.schema import EVENT_TYPES
from skincare.operations import dead_letter_actions
from skincare.operations.base_view import actor_of, page_for, refuse, show
from skincare.operations.dead_letter_actions import Report
from skincare.operations.dead_letter_messages import (
    DeadLetterFilter,
    DeadLetterMessage,
    DeadLetterState,
)
from skincare.sqs.dead_letters import NoDeadLetterQueue, Unreachable

#: Letters on one page; a filter's action covers all that match, shown or not.
SHOWN: Final = 200
SINCE: Final[Mapping[str, timedelta]] = {
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}
_PERMISSIONS: Final = {
    "redrive": "events.redrive_dead_letters",
    "discard": "events.discard_dead_letters",
}


def filter_of(asked: QueryDict) -> DeadLetterFilter:
    """Return the filter of a form: `type`, `error`, `state`, `since`, and `message` (many)."""
    since = SINCE.get(asked.get("since", ""))
    chosen = asked.getlist("message") if asked.get("scope") == "selected" else None
    return DeadLetterFilter(
        event_type=asked.get("type") or None,
        error=asked.get("error") or None,
        state=asked.get("state") or None,
        since=timezone.now() - since if since else None,
        message_ids=None if chosen is None else frozenset(chosen),
    )


@require_GET
@page_for("events.view_operations")
def browse(request: HttpRequest) -> HttpResponse:
    """List the dead letters that match the filter. They stay where they are."""
    error, dead_letters = "", []
    try:
        dead_letters = list(dead_letter_actions.peek(limit=SHOWN, matching=filter_of(request.GET)))
    except (Unreachable, NoDeadLetterQueue) as unreachable:
        error = str(unreachable)
    return show(
        request,
        "dead_letters.html",
        title="Dead-letter queue",
        dead_letters=dead_letters,
        error=error,
        shown=SHOWN,
        asked=request.GET,
        types=EVENT_TYPES,
        states=list(DeadLetterState),
        since=list(SINCE),
    )


@require_GET
@page_for("events.view_operations")
def detail(request: HttpRequest, message_id: str) -> HttpResponse:
    """Show one dead letter with its text and what is known of its event."""
    try:
        found = _letter(message_id)
    except (Unreachable, NoDeadLetterQueue) as error:
        return refuse(request, error, to="operations:dead_letters")
    if found is None:
        raise Http404("It is not in the dead-letter queue (any more).")
    return show(request, "dead_letter.html", title=f"Dead letter {message_id}", dead_letter=found)


def _letter(message_id: str) -> DeadLetterMessage | None:
    matching = DeadLetterFilter(message_ids=frozenset([message_id]))
    return next(iter(list(dead_letter_actions.peek(limit=1, matching=matching))), None)


@require_POST
@page_for("events.view_operations")
def act(request: HttpRequest) -> HttpResponse:
    """Put dead letters back or discard them: first show what would happen, then do it."""
    action = request.POST.get("action", "")
    if action not in _PERMISSIONS or not request.user.has_perm(_PERMISSIONS[action]):
        raise PermissionDenied
    confirmed = request.POST.get("confirmed") == "yes"
    try:
        report = _run(request, action, dry_run=not confirmed)
    except (Unreachable, NoDeadLetterQueue, ReasonMissing) as error:
        return refuse(request, error, to="operations:dead_letters")
    if not confirmed:
        return show(
            request,
            "dead_letters_confirm.html",
            title="Put back" if action == "redrive" else "Discard",
            action=action,
            report=report,
            counts=report.counts.items(),
            kept=[(k, v) for k in request.POST for v in request.POST.getlist(k) if k in _KEPT],
        )
    outcomes = ", ".join(f"{count} {outcome.value}" for outcome, count in report.counts.items())
    messages.success(request, f"{outcomes or 'No dead letter matched'}. It is in the audit log.")
    return redirect("operations:dead_letters")


_KEPT: Final = frozenset(
    ["action", "scope", "message", "type", "error", "state", "since", "force", "reason"]
)


def _run(request: HttpRequest, action: str, *, dry_run: bool) -> Report:
    matching, actor = filter_of(request.POST), actor_of(request)
    if action == "discard":
        reason = request.POST.get("reason", "")
        return dead_letter_actions.discard(
            matching=matching, reason=reason, actor=actor, dry_run=dry_run
        )
    force = request.POST.get("force") == "yes"
    return dead_letter_actions.redrive(matching=matching, actor=actor, force=force, dry_run=dry_run)
