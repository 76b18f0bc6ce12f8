"""Lives of orders through the gateways' pages, while their webhooks are lost, doubled or late.

With every webhook lost, asking alone brings each order to where it has to be: within the times of
the reconciliation, counted on a clock that is moved. What has to be is counted at the gateway, and
the check of all money finds nothing.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from django.db.models import Min
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from orders.models import Order
from payments.expiry import expire_unpaid_orders
from payments.models import Payment
from payments.money_check import check_orders, check_products
from payments.reconciliation import sweep
from skincare.local.gateways.midtrans import CoreRefusal
from skincare.local.gateways.simulator import Simulator
from skincare.local.gateways.xendit import ApiRefusal
from tests.integration.payments.gateways import TOTAL, an_order
from tests.integration.payments.test_confirmation import shown, work
from tests.integration.payments.test_paying import buyer, later, pay

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(900)]

MINUTE, HOUR = 60, 3600
#: The longest page, and the last time that a gateway is asked, counted from the page's end.
LONGEST: Final = (24 + 48 + 1) * HOUR

#: What buyers and banks do. What a page does not allow at the moment, it refuses, as in life.
STEPS = st.one_of(
    st.tuples(st.just("open"), st.sampled_from(["", "qris", "card", "virtual_account"])),
    st.tuples(
        st.just("pick"),
        st.sampled_from(["qris", "permata_va", "card", "declined card", "indomaret"]),
    ),
    st.tuples(
        st.just("act"),
        st.sampled_from(["pay", "pay", "decline", "expire", "pay late", "reverse", "settle"]),
    ),
    st.tuples(st.just("wait"), st.sampled_from([20, 3 * MINUTE, 20 * MINUTE, 3 * HOUR, 26 * HOUR])),
)
LIVES = st.lists(STEPS, min_size=1, max_size=7)
#: For each webhook: how often it is delivered, and whether after all the others.
FATES = st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=12)
CARDS = {"card": "4811111111111114", "declined card": "4911111111111113"}


@dataclass
class Life:
    """One order, its buyer, and how its webhooks fare: those beyond `fates` are lost."""

    gateways: Simulator
    order: Order
    fates: list[tuple[int, bool]] = field(default_factory=list)
    _told: int = 0
    _late: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._told = len(self.gateways.webhooks.all)

    def step(self, what: str, value: Any) -> None:
        with suppress(CoreRefusal, ApiRefusal, Payment.DoesNotExist):
            match what:
                case "open":
                    assert pay(self.order, payment_method=value).status_code < 500
                case "pick" if self.order.payment_method == "midtrans":
                    method = "credit_card" if value in CARDS else value
                    card = CARDS.get(value, "")
                    buyer(self.gateways, self.order, "pick", method=method, card=card)
                case "act":
                    buyer(self.gateways, self.order, value)
                case "wait":
                    self.wait(value)
        self._notify()

    def wait(self, seconds: float) -> None:
        """Let time go by, stopping wherever the relay has something to do."""
        while seconds > 0:
            pause = min(seconds, self._until_next())
            later(self.gateways, pause)
            seconds -= pause
            sweep()
            expire_unpaid_orders()
            self._notify()
            work(self.order)

    def _until_next(self) -> float:
        """Return the seconds until the next moment at which something is due, 10 at least."""
        now = timezone.now()
        found = Payment.objects.filter(order=self.order, next_ask_at__gt=now)
        next_ask = found.aggregate(at=Min("next_ask_at"))["at"]
        self.order.refresh_from_db()
        moments = [
            one for one in (next_ask, self.order.expires_at) if one is not None and one > now
        ]
        return max(10.0, (min(moments) - now).total_seconds() + 1) if moments else 6 * HOUR

    def _notify(self) -> None:
        """Deliver what was notified since the last time, as the fates say."""
        calls = self.gateways.webhooks.all
        for call in calls[self._told :]:
            times, is_late = self.fates.pop(0) if self.fates else (0, False)
            if is_late:
                self._late += [call] * times
            else:
                self._deliver([call] * times)
        self._told = len(calls)

    def end(self) -> None:
        """Let all that is late come, the last first, and all times of asking go by."""
        self._deliver(self._late[::-1])
        work(self.order)
        self.wait(LONGEST)

    def _deliver(self, calls: list[Any]) -> None:
        for call in calls:
            answer = Client().post(
                f"/v1/webhooks/{call.gateway}",
                data=call.document,
                content_type="application/json",
                headers=dict(call.headers),
            )
            assert answer.status_code == 200, answer.content

    def check(self) -> None:
        """Hold the end to what the gateway has of the buyer's money."""
        kept, order = kept_at_the_gateway(self.gateways, self.order), self.order
        order.refresh_from_db()
        note(f"the gateway keeps {kept}, the order is {order.status}, {order.held_reason!r}")
        assert kept_by_the_shop(order) == kept
        if kept == 0:
            assert order.status in ("expired", "cancelled", "refunded"), order.status
            assert shown(order)[1:] == (0, 0)
        else:
            assert order.status == "paid"
            assert shown(order)[1:] == (2, 0)
        assert order.is_held == (kept > TOTAL), order.held_reason
        assert [str(one) for one in [*check_orders([order]), *check_products()]] == []


def kept_at_the_gateway(gateways: Simulator, order: Order) -> int:
    """Rupiah that the gateway has taken from the order's buyer, and not given back."""
    if order.payment_method == "midtrans":
        mine = [t for t in gateways.midtrans.transactions if t.order_id.startswith(str(order.pk))]
        return sum(one.amount - one.refunded for one in mine if one.is_paid)
    invoices = gateways.xendit.invoices.values()
    mine_too = [one for one in invoices if one.asked["external_id"].startswith(str(order.pk))]
    return int(sum(one.amount for one in mine_too if one.payment is not None))


def kept_by_the_shop(order: Order) -> int:
    """Rupiah that the shop believes to have of it."""
    payments = Payment.objects.filter(order=order)
    return sum(one.amount_rupiah - one.refunded_rupiah for one in payments if one.is_paid)


def live(gateways: Simulator, name: str, steps: list[Any], fates: list[tuple[int, bool]]) -> None:
    life = Life(gateways, an_order(name), fates)
    # Something was opened, or there is no life to speak of.
    for step in [("open", ""), *steps]:
        life.step(*step)
    life.end()
    life.check()


def lives(examples: int) -> Any:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],  # a failing life is short enough as it is
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


both = pytest.mark.parametrize("name", ["midtrans", "xendit"])


@both
@lives(12)
@given(steps=LIVES)
def test_with_every_webhook_lost_each_order_ends_right(
    name: str, gateways: Simulator, steps: list[Any]
) -> None:
    live(gateways, name, steps, [])


@both
@lives(12)
@given(steps=LIVES, fates=FATES)
def test_with_webhooks_lost_doubled_and_late_each_order_ends_right(
    name: str, gateways: Simulator, steps: list[Any], fates: list[tuple[int, bool]]
) -> None:
    live(gateways, name, steps, list(fates))


@pytest.mark.slow
@both
@lives(40)
@given(steps=LIVES, fates=st.one_of(st.just([]), FATES))
def test_many_lives_end_right(
    name: str, gateways: Simulator, steps: list[Any], fates: list[tuple[int, bool]]
) -> None:
    live(gateways, name, steps, list(fates))
