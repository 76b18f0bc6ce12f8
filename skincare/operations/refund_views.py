"""Money that goes back: asked for, agreed to, and transferred by hand where the gateway cannot."""

from typing import Final
from uuid import UUID

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_http_methods

from payments import exceptions, refunding, transfers
from payments.models import Payment, RefundRequest
from skincare.events.exceptions import ReasonMissing
from skincare.operations.base_view import Action, act, actor_of, page_for, refuse, show

_ASK: Final = "payments.request_refund"
_AGREE: Final = "payments.agree_refund"
_REFUSALS: Final = (
    ReasonMissing,
    exceptions.PaymentNotFound,
    exceptions.NotRequested,
    exceptions.AlreadyRequested,
    exceptions.SamePerson,
    exceptions.CannotDecide,
)


class RefundForm(forms.Form):
    """What a person writes about a refund. `amount` is in rupiah, `request` its id."""

    amount = forms.IntegerField(min_value=1, max_value=10**15, required=False)
    request = forms.IntegerField(min_value=1, max_value=2**63 - 1, required=False)
    reason = forms.CharField(max_length=255, required=False)


@require_http_methods(["GET", "POST"])
@page_for("payments.view_payment")
def refund(request: HttpRequest, payment_id: UUID) -> HttpResponse:
    """Give money of a payment back, in full or in part; every step takes another person."""
    may = request.user.has_perm
    if request.method == "POST":
        if not (may(_ASK) or may(_AGREE)):
            raise PermissionDenied
        return _act(request, payment_id)
    payment = get_object_or_404(Payment.objects.select_related("order"), pk=payment_id)
    requests = payment.refund_requests.select_related(
        "requested_by", "agreed_by", "transferred_by", "transfer_confirmed_by"
    )
    under_way = next((one for one in requests if one.is_under_way), None)
    failed = next((one for one in requests if one.status == RefundRequest.Status.FAILED), None)
    return show(
        request,
        "refund.html",
        title=f"Refunds of {payment.order.number}",
        payment=payment,
        left=payment.kept_rupiah,
        why_not=refunding.why_not_refundable(payment),
        requests=requests,
        now=under_way,
        to_transfer=_to_transfer(under_way or failed),
        can_ask=may(_ASK),
        can_agree=may(_AGREE),
        went_back=payment.refunds.all(),
    )


def _to_transfer(request: RefundRequest | None) -> RefundRequest | None:
    """Return the request where its money has to be transferred by hand."""
    return request if request is not None and request.status in transfers.TO_TRANSFER else None


def _act(request: HttpRequest, payment_id: UUID) -> HttpResponse:
    form = RefundForm(request.POST)
    if not form.is_valid():
        name, errors = next(iter(form.errors.items()))
        refusal = exceptions.CannotDecide(f"{name}: {errors[0]}")
        return refuse(request, refusal, to="operations:refund", payment_id=payment_id)
    amount, asked = form.cleaned_data["amount"] or 0, form.cleaned_data["request"] or 0
    if not RefundRequest.objects.filter(pk=asked, payment_id=payment_id).exists():
        asked = 0  # no request of this payment, which the services say
    reason, actor = form.cleaned_data["reason"], actor_of(request)
    actions: dict[str, Action] = {
        "ask": (
            _ASK,
            lambda: refunding.request_refund(
                payment_id=payment_id, amount_rupiah=amount, reason=reason, actor=actor
            ),
            "Asked for. Another person has to agree.",
        ),
        "agree": (
            _AGREE,
            lambda: refunding.agree_to_refund(request_id=asked, actor=actor),
            "Agreed. The gateway is asked for it now.",
        ),
        "withdraw": (
            _ASK,
            lambda: refunding.withdraw_refund(request_id=asked, reason=reason, actor=actor),
            "Withdrawn.",
        ),
        "tell": (
            _ASK,
            lambda: transfers.tell_transfer(request_id=asked, reason=reason, actor=actor),
            "Noted. Another person has to confirm that the money was transferred.",
        ),
        "confirm": (
            _AGREE,
            lambda: transfers.confirm_transfer(request_id=asked, actor=actor),
            "Confirmed: the money is recorded as gone.",
        ),
    }
    return act(request, actions, refusals=_REFUSALS, to="operations:refund", payment_id=payment_id)
