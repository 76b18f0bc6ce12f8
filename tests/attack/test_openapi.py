"""What the OpenAPI document allows is taken, what it forbids is refused, and nothing is a 500.

schemathesis makes the requests from the document and holds each answer to it: status, headers,
schema. The last test follows the document's links, from a checkout to its order and its payment
pages.
"""

import json
import re
from typing import Any, Final

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case, HookContext
from schemathesis.config import SchemathesisConfig

from orders.models import SKU_PATTERN, Product
from skincare.api import api
from tests.attack.values import EXAMPLES
from tests.integration.orders.shop import a_product
from tests.integration.web.conftest import Web

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(1800),
]

#: Kept on the shelf in such number that no test empties it; the document's example is of the first.
SOLD: Final = ("SRM-VITC-30", *(f"ATTACK-{number}" for number in range(1, 50)))

schema = schemathesis.openapi.from_dict(
    json.loads(json.dumps(api.get_openapi_schema(path_prefix="/v1"), default=str)),
    config=SchemathesisConfig.from_dict(
        {
            # 503 is for a dependency that is away: a gateway, or a database that is too slow.
            "checks": {"not_a_server_error": {"expected-statuses": ["2xx", "4xx", "503"]}},
        }
    ),
)
patient = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@schema.hook
def map_body(context: HookContext, body: Any) -> Any:
    """Let carts be of different products that are sold, and domains be no IDNA that stands for
    nothing: the document cannot say which those are.
    """
    if not isinstance(body, dict):
        return body
    items = body.get("items")
    if isinstance(items, list):
        for sku, item in zip(SOLD, items, strict=False):
            if isinstance(item, dict) and re.match(SKU_PATTERN, str(item.get("sku"))):
                item["sku"] = sku
    if isinstance(address := body.get("email"), str):
        local_part, at, domain = address.rpartition("@")
        body["email"] = local_part + at + re.sub("--+", "-", domain)
    return body


@pytest.fixture
def sold() -> None:
    for sku in SOLD:
        product = a_product(stocked=2_000_000)
        Product.objects.filter(pk=product.pk).update(sku=sku)


@schema.parametrize()
@patient
def test_each_operation(case: Case, shop: Web, sold: None) -> None:
    case.call_and_validate(base_url=shop.url(""), timeout=30)


def test_what_the_documents_links_lead_to(shop: Web, sold: None) -> None:
    class Buyer(schema.as_state_machine()):  # type: ignore[misc]
        def get_call_kwargs(self, case: Case) -> dict[str, Any]:
            return {"base_url": shop.url(""), "timeout": 30}

    Buyer.run(settings=settings(patient, stateful_step_count=6))
