"""The dead-letter queue in the browser: look, put back, discard."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from skincare.events.exceptions import ReasonMissing
from skincare.events.schema import EVENT_TYPES
from skincare.operations import dead_letter_actions
from skincare.operations.base_view import actor_of, page_for, refuse, show
from skincare.operations.dead_letter_actions import Report
from skincare.operations.dead_letter_groups import groups_of
from skincare.operations.dead_letter_messages import (
    DeadLetterFilter,
    DeadLetterMessage,
    DeadLetterState,
)
from skincare.operations.forms import DeadLettersForm, FormRefused, read
from skincare.operations.identifiers import is_order_number, numbers_of, order_id_of
from skincare.sqs.dead_letters import NoDeadLetterQueue, Unreachable

#: Letters on one page; a filter's action covers all that match, shown or not.
PAGE: Final = 50
#: Letters that are looked at; the page says so where there are more.
LOOKED_AT: Final = 5_000
#: What the list can be sorted by, each also backwards with a minus.
ORDERS: Final[Mapping[str, Callable[[DeadLetterMessage], Any]]] = {
    "sent": lambda one: one.sent_at,
    "tried": lambda one: one.last_at,
    "tries": lambda one: one.tries,
    "type": lambda one: (one.event_type, one.sent_at),
    "error": lambda one: (one.error, one.sent_at),
}
SINCE: Final[Mapping[str, timedelta]] = {
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}
#: The id of a message, an event or an order, or the first eight characters of one.
_AN_ID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F-]{0,27})?")
_PERMISSIONS: Final = {
    "redrive": "events.redrive_dead_letters",
    "discard": "events.discard_dead_letters",
}


def filter_of(asked: Mapping[str, Any]) -> DeadLetterFilter:
    """Return the filter that a `DeadLettersForm` asks for.

    Its `q` is what a person types: an order's number or id, the id of an event or a message, or
    part of an error.
    """
    since = SINCE.get(asked["since"])
    meant = _meant_by(asked["q"] or asked["error"])
    if asked["scope"] == "selected":
        meant["message_ids"] = frozenset(asked["message"])
    return DeadLetterFilter(
        event_type=asked["type"] or None,
        group=asked["group"] or None,
        state=asked["state"] or None,
        since=timezone.now() - since if since else None,
        **meant,
    )


def _meant_by(text: str) -> dict[str, Any]:
    wanted = text.strip()
    if is_order_number(wanted):
        return {"order_id": order_id_of(wanted) or "no such order"}
    if _AN_ID.fullmatch(wanted):
        return {"any_id": wanted.lower()}
    return {"error": wanted} if wanted else {}


@require_GET
@page_for("events.view_operations")
def browse(request: HttpRequest) -> HttpResponse:
    """List the dead letters that match the filter. They stay where they are."""
    error, everything = "", []
    try:
        asked = read(DeadLettersForm, request.GET)
    except FormRefused as refusal:
        return refuse(request, refusal, to="operations:dead_letters")
    try:
        everything = dead_letter_actions.look_at_all(limit=LOOKED_AT)
    except (Unreachable, NoDeadLetterQueue) as unreachable:
        error = str(unreachable)
    matching = filter_of(asked)
    found = [one for one in everything if matching.matches(one)]
    grouped = replace(matching, group=None)
    page = Paginator(_sorted(found, asked["sort"]), PAGE).get_page(asked["page"])
    dead_letters = list(page.object_list)
    return show(
        request,
        "dead_letters.html",
        title="Dead-letter queue",
        dead_letters=dead_letters,
        page=page,
        groups=groups_of(one for one in everything if grouped.matches(one)),
        group=next((one for one in groups_of(found)), None) if matching.group else None,
        numbers=numbers_of({one.order_id for one in dead_letters if one.order_id}),
        error=error,
        matched=len(found),
        looked_at=len(everything),
        is_limited=len(everything) >= LOOKED_AT,
        is_filtered=matching != DeadLetterFilter(),
        asked=request.GET,
        text=asked["q"] or asked["error"],
        types=EVENT_TYPES,
        states=list(DeadLetterState),
        since=list(SINCE),
        orders=list(ORDERS),
    )


def _sorted(dead_letters: list[DeadLetterMessage], order: str) -> list[DeadLetterMessage]:
    """Return them by what `order` names, else the newest first."""
    by = ORDERS.get(order.removeprefix("-"), ORDERS["sent"])
    backwards = order.startswith("-") if order else True
    return sorted(dead_letters, key=by, reverse=backwards)


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
    try:
        form = read(DeadLettersForm, request.POST)
    except FormRefused as refusal:
        return refuse(request, refusal, to="operations:dead_letters")
    action = form["action"]
    if action not in _PERMISSIONS or not request.user.has_perm(_PERMISSIONS[action]):
        raise PermissionDenied
    confirmed = form["confirmed"] == "yes"
    try:
        report = _run(form, actor_of(request), dry_run=not confirmed)
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
            kept=[(name, text) for name in _KEPT for text in _texts(form[name])],
        )
    outcomes = ", ".join(f"{count} {outcome.value}" for outcome, count in report.counts.items())
    messages.success(request, f"{outcomes or 'No dead letter matched'}. It is in the audit log.")
    return redirect("operations:dead_letters")


#: What the second form repeats of the first.
_KEPT: Final = (
    *("action", "scope", "message", "type", "error", "state", "since", "force", "reason"),
    *("group", "q"),
)


def _texts(value: str | list[str]) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [text for text in values if text]


def _run(form: Mapping[str, Any], actor: str, *, dry_run: bool) -> Report:
    matching = filter_of(form)
    if form["action"] == "discard":
        return dead_letter_actions.discard(
            matching=matching, reason=form["reason"], actor=actor, dry_run=dry_run
        )
    force = form["force"] == "yes"
    return dead_letter_actions.redrive(matching=matching, actor=actor, force=force, dry_run=dry_run)
