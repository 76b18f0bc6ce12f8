"""One event in the browser: what happened to it, and what a person can do about it."""

import json

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_POST

from skincare.events import manual_actions
from skincare.events.exceptions import AlreadyFinished, ReasonMissing, StillInProgress, UnknownEvent
from skincare.operations.base_view import actor_of, page_for, refuse, show
from skincare.operations.forms import EventForm, FormRefused, read
from skincare.operations.history import event_history


@require_GET
@page_for("events.view_operations")
def event(request: HttpRequest, event_id: str) -> HttpResponse:
    """Show the event's history, with its order and payment."""
    try:
        found = event_history(event_id)
    except UnknownEvent:
        raise Http404("No event with this id was ever published or received here.") from None
    processed = found.processed
    return show(
        request,
        "event.html",
        title=f"Event {event_id}",
        history=found,
        document=json.dumps(found.document, indent=2, ensure_ascii=False),
        repeats=manual_actions.repeats(processed),
        is_held_by_worker=processed is not None and manual_actions.is_leased(processed),
        is_finished=processed is not None and processed.is_finished,
    )


@require_POST
@page_for("events.replay_event")
def replay(request: HttpRequest, event_id: str) -> HttpResponse:
    """Send the event to the queue again; a finished one only where the form says so."""
    try:
        force = read(EventForm, request.POST)["force"] == "yes"
        done = manual_actions.replay(event_id, force=force, actor=actor_of(request))
    except (FormRefused, UnknownEvent, AlreadyFinished, StillInProgress) as error:
        return refuse(request, error, to="operations:event", event_id=event_id)
    messages.success(request, f"Put back: {done}.")
    return redirect("operations:event", event_id=event_id)


@require_POST
@page_for("events.skip_event")
def skip(request: HttpRequest, event_id: str) -> HttpResponse:
    """Mark the event as skipped, with a reason."""
    try:
        reason = read(EventForm, request.POST)["reason"]
        manual_actions.skip(event_id, reason=reason, actor=actor_of(request))
    except (FormRefused, ReasonMissing, UnknownEvent, AlreadyFinished, StillInProgress) as error:
        return refuse(request, error, to="operations:event", event_id=event_id)
    messages.success(request, "Marked as skipped: no worker will process it.")
    return redirect("operations:event", event_id=event_id)
