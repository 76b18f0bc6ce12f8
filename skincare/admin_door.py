"""The way into the admin: on its own host, guessed at a few times only, with a code if wanted.

django-axes counts wrong passwords by person and address, and refuses before any password is hashed.
An address that is refused is so by one statement, before axes writes and a page is rendered.
django-otp asks those for a code who have a device; ADMIN_REQUIRES_CODE asks everybody.
"""

from collections.abc import Callable
from typing import Any, Final

import structlog
from axes.helpers import get_client_ip_address
from axes.models import AccessAttempt
from django import forms
from django.conf import settings
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.admin.sites import AdminSite
from django.db.models import Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.http.request import split_domain_port, validate_host
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django_otp import user_has_device
from django_otp.admin import OTPAdminAuthenticationForm

from orders.problems import problem_of, problem_response
from skincare.telemetry import metrics

log = structlog.get_logger(__name__)

PREFIX: Final = "/admin/"
LOGIN: Final = "/admin/login"
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

    def process_view(self, request: HttpRequest, *_: Any) -> HttpResponse | None:
        """Raise Http404 for the admin on another host than its own; answer who is locked out."""
        if not request.path.startswith(PREFIX):
            return None
        host, _port = split_domain_port(request.get_host())
        if not validate_host(host, settings.ADMIN_HOSTS):  # as ALLOWED_HOSTS is read
            raise Http404
        is_login = request.method == "POST" and request.path.startswith(LOGIN)
        return _refuse(request) if is_login and _is_locked_out(request) else None


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


def _is_locked_out(request: HttpRequest) -> bool:
    """Whether django-axes would refuse all from this address, by its own rows."""
    failed = AccessAttempt.objects.filter(
        ip_address=get_client_ip_address(request),
        attempt_time__gte=timezone.now() - settings.AXES_COOLOFF_TIME,
    ).aggregate(times=Sum("failures_since_start"))
    return (failed["times"] or 0) >= settings.AXES_FAILURE_LIMIT


def _refuse(request: HttpRequest) -> HttpResponse:
    metrics.record({"LoginsFailed": 1, "LoginsRefused": 1})
    return _refusal(request)


def locked_out(request: HttpRequest, response: Any, credentials: Any) -> HttpResponse:
    """Answer for django-axes, which calls it with the wrong password that was one too many."""
    metrics.count("LoginsRefused")
    return _refusal(request)


def _refusal(request: HttpRequest) -> HttpResponse:
    log.warning("login_refused")
    answer = problem_response(request, problem_of("too-many-requests"))
    answer["Retry-After"] = str(int(settings.AXES_COOLOFF_TIME.total_seconds()))
    return answer
