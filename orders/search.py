"""The catalogue's full-text search: PostgreSQL, stemmed as Indonesian."""

import re
from collections.abc import Iterable
from typing import Final

from django.contrib.postgres.search import SearchQuery, SearchRank, SearchVector
from django.db.models import BooleanField, ExpressionWrapper, F, Q, QuerySet
from django.utils import timezone

from orders.models import Product

#: PostgreSQL has this snowball stemmer since version 12.
CONFIG: Final = "indonesian"

_VECTOR: Final = (
    SearchVector("name", config=CONFIG, weight="A")
    + SearchVector("sku", config=CONFIG, weight="A")
    + SearchVector("description", config=CONFIG, weight="B")
)
_UNKNOWN_TO_POSTGRESQL: Final = re.compile(r"[\x00\ud800-\udfff]")
_HYPHENS_BEFORE_NO_WORD: Final = re.compile(r"-+(?![\w\"])|-+(?=-)")
_IN_STOCK: Final = ExpressionWrapper(Q(stock__gt=F("reserved")), output_field=BooleanField())


def refresh_search(product_ids: Iterable[int]) -> int:
    """Rebuild the search entries of these products from their current rows.

    Returns how many were rebuilt. In a transaction that moves stock, lock the products first.
    """
    return Product.objects.filter(pk__in=product_ids).update(
        search_vector=_VECTOR,
        search_in_stock=_IN_STOCK,
        search_refreshed_at=timezone.now(),
    )


def search_products(query: str) -> QuerySet[Product]:
    """Return the active products for a buyer's words, best first; all of them for no words.

    `query` is what people type: words, "a phrase", -not. Products that can be bought come before
    those that are sold out.
    """
    products = Product.objects.filter(is_active=True)
    query = _searchable(query)
    if not query:
        return products.order_by("-search_in_stock", "name", "pk")
    words = SearchQuery(query, config=CONFIG, search_type="websearch")
    return products.filter(search_vector=words).order_by(
        "-search_in_stock", SearchRank(F("search_vector"), words).desc(), "name", "pk"
    )


def _searchable(query: str) -> str:
    """Return what PostgreSQL can search for, of what people type.

    It takes no NUL and no surrogate, and each hyphen that stands before no word is a level of its
    stack, which has room for some thirty.
    """
    query = _UNKNOWN_TO_POSTGRESQL.sub(" ", query)
    return _HYPHENS_BEFORE_NO_WORD.sub(" ", query).strip()
