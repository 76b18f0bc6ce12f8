"""What all pages of the operator share: who may open them, and the admin's frame around them."""

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from skincare.operations.forms import ActionForm, FormRefused, read

View = Callable[..., HttpResponse]

#: The permission that an action takes, what it does, and what the person is told then.
Action = tuple[str, Callable[[], object], str]


def page_for(permission: str) -> Callable[[View], View]:
    """Let staff with `permission` open the view: others log in first, or get 403."""

    def protect(view: View) -> View:
        return admin.site.admin_view(permission_required(permission, raise_exception=True)(view))

    return protect


def show(request: HttpRequest, template: str, *, title: str, **context: Any) -> HttpResponse:
    """Render a page inside the admin's frame."""
    frame = admin.site.each_context(request)
    return render(request, f"operations/{template}", {**frame, "title": title, **context})


def refuse(request: HttpRequest, error: Exception, *, to: str, **arguments: Any) -> HttpResponse:
    """Go back to a page with the reason why nothing was done."""
    text = str(error) or (type(error).__doc__ or type(error).__name__)
    messages.error(request, f"Nothing was done. {text}")
    return redirect(to, **arguments)


def act(
    request: HttpRequest,
    actions: Mapping[str, Action],
    *,
    refusals: tuple[type[Exception], ...],
    to: str,
    **arguments: Any,
) -> HttpResponse:
    """Do the one action that the form names, if the person may, and go to a page."""
    try:
        action = read(ActionForm, request.POST)["action"]
    except FormRefused as error:
        return refuse(request, error, to=to, **arguments)
    permission, run, told = actions.get(action, ("", None, ""))
    if run is None or not request.user.has_perm(permission):
        raise PermissionDenied
    try:
        run()
    except refusals as error:
        return refuse(request, error, to=to, **arguments)
    messages.success(request, told)
    return redirect(to, **arguments)


def actor_of(request: HttpRequest) -> str:
    """Return the name that the audit log keeps."""
    return request.user.get_username()
