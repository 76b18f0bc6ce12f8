import pytest

from orders import payment_methods
from orders.models import Order
from orders.payment_methods import FREE, PaymentMethod
from tests.integration.orders.shop import METHOD


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Order]:
    """The orders whose payment was opened; the shop offers one way to pay, and the free one."""
    orders: list[Order] = []
    methods = {name: PaymentMethod(name, open=orders.append) for name in (METHOD, FREE)}
    monkeypatch.setattr(payment_methods, "_methods", methods)
    return orders
