"""The way into the admin: on its own host, guessed at a few times only, with a code if wanted.

django-axes counts wrong passwords by person and address, and refuses before any password is hashed.
django-otp asks those for a code who have a device; ADMIN_REQUIRES_CODE asks everybody.
"""

from collections.abc import Callable
from typing import Any, Final

import structlog
from django import forms
from django.conf import settings
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.admin.sites import AdminSite
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.cache import add_never_cache_headers
from django_otp import user_has_device
from django_otp.admin import OTPAdminAuthenticationForm

from orders.problems import problem_of, problem_response
from skincare.telemetry import metrics

log = structlog.get_logger(__name__)

PREFIX: Final = "/admin/"
#: Answers below these show orders and people: nobody keeps a copy on the way.
PRIVATE: Final = (PREFIX, "/v1/orders", "/v1/checkout")


class AdminDoorMiddleware:
    """Serves the admin on its own host alone, and lets nobody keep what is private."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        if request.path.startswith(PRIVATE):
            add_never_cache_headers(response)  # no-store is among them
        return response

    def process_view(self, request: HttpRequest, *_: Any) -> None:
        """Raise Http404 for the admin on another host than its own."""
        if not request.path.startswith(PREFIX):
            return
        host = request.get_host().rpartition(":")[0] or request.get_host()
        if host not in settings.ADMIN_HOSTS and "*" not in settings.ADMIN_HOSTS:
            raise Http404


class CodeForm(OTPAdminAuthenticationForm):
    """The login's form; who has a device, or where everybody must, gives its code too."""

    otp_token = forms.CharField(
        required=False, widget=forms.TextInput(attrs={"autocomplete": "one-time-code"})
    )

    def clean(self) -> dict[str, Any]:
        """Raise ValidationError for a wrong password or code."""
        self.cleaned_data = AdminAuthenticationForm.clean(self)
        user = self.get_user()
        if user is not None and (settings.ADMIN_REQUIRES_CODE or user_has_device(user)):
            self.clean_otp(user)
        return self.cleaned_data


class ShopAdminSite(AdminSite):
    """The admin, for those who gave their code where they have one."""

    login_form = CodeForm
    login_template = "admin/login_with_code.html"

    def has_permission(self, request: HttpRequest) -> bool:
        """Whether the person may see any page: a session that began before the device does not."""
        if not super().has_permission(request):
            return False
        is_needed = settings.ADMIN_REQUIRES_CODE or user_has_device(request.user)
        # django-otp's middleware gives the user this method.
        return not is_needed or request.user.is_verified()  # type: ignore[union-attr]


def count_failed_login(**_: Any) -> None:
    """Tell of a wrong password or code, without the name: people type passwords there."""
    metrics.count("LoginsFailed")
    log.warning("login_failed")


def locked_out(request: HttpRequest, response: Any, credentials: Any) -> HttpResponse:
    """Answer for django-axes, which calls it: nothing was hashed, and no page rendered."""
    metrics.count("LoginsRefused")
    log.warning("login_refused")
    answer = problem_response(request, problem_of("too-many-requests"))
    answer["Retry-After"] = str(int(settings.AXES_COOLOFF_TIME.total_seconds()))
    return answer
