"""The catalogue's search, and the catalogue that comes with the shop."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models import Sum
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orders.catalogue import CATALOGUE
from orders.models import Product, StockMovement
from orders.search import refresh_search, search_products
from tests.integration.orders.shop import a_product, an_order, cancelled, numbers, paid

pytestmark = pytest.mark.django_db


def found(query: str) -> list[str]:
    return [product.name for product in search_products(query)]


def seed() -> str:
    out = StringIO()
    call_command("seed_catalogue", stdout=out)
    return out.getvalue()


def test_words_are_found_by_their_stem() -> None:
    a_product(name="Krim Pelembap", description="melembapkan kulit kering")
    a_product(name="Sabun", description="membersihkan wajah")

    assert found("lembap") == ["Krim Pelembap"]
    assert found("BERSIH") == ["Sabun"]


def test_a_name_counts_more_than_a_description() -> None:
    a_product(name="Toner", description="dipakai sebelum serum")
    a_product(name="Serum Mawar", description="dipakai sesudah toner")

    assert found("serum") == ["Serum Mawar", "Toner"]
    assert found("toner") == ["Toner", "Serum Mawar"]


def test_people_search_as_on_the_web() -> None:
    a_product(name="Serum Vitamin C", description="mencerahkan")
    a_product(name="Serum Retinol", description="malam hari")

    assert found("serum -retinol") == ["Serum Vitamin C"]
    assert found('"vitamin c"') == ["Serum Vitamin C"]
    assert found("retinol or vitamin") == ["Serum Retinol", "Serum Vitamin C"]


def test_a_product_is_found_by_its_sku() -> None:
    serum, _ = a_product(name="Serum"), a_product(name="Toner")

    assert found(serum.sku) == ["Serum"]


def test_no_words_list_everything_by_name() -> None:
    for name in ("Toner", "Serum"):
        a_product(name=name)

    assert found("") == found("  ") == ["Serum", "Toner"]


@pytest.mark.parametrize("query", ["';--", "&|!():*", '"', "-", "\x00", "%", "😀"])
def test_no_input_breaks_the_search(query: str) -> None:
    a_product(name="Serum")

    assert found(query) in ([], ["Serum"])


def test_what_is_not_active_is_not_found() -> None:
    serum = a_product(name="Serum")
    serum.is_active = False
    serum.save(update_fields=["is_active"])

    assert found("serum") == found("") == []


def test_what_is_sold_out_comes_last_until_it_is_back() -> None:
    best = a_product(name="Serum Serum", stocked=1)
    a_product(name="Toner", description="serum", stocked=1)
    assert found("serum") == ["Serum Serum", "Toner"]

    order = paid(an_order((best, 1)))
    assert found("serum") == found("") == ["Toner", "Serum Serum"]

    cancelled(order)
    assert found("serum") == found("") == ["Serum Serum", "Toner"]


def test_an_edited_product_is_found_by_its_new_words_after_a_refresh() -> None:
    serum = a_product(name="Serum")
    Product.objects.filter(pk=serum.pk).update(name="Ampul")
    assert found("ampul") == []

    assert refresh_search([serum.pk]) == 1

    assert found("ampul") == ["Ampul"]
    assert found("serum") == []


def test_the_search_uses_its_index() -> None:
    seed()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    plan = search_products("serum").explain()

    assert "product_search" in plan


def test_the_catalogue_is_seeded_once() -> None:
    assert seed() == f"{len(CATALOGUE)} products created, 0 updated\n"
    serum = Product.objects.get(sku="SRM-VITC-30")
    paid(an_order((serum, 3)))
    Product.objects.filter(pk=serum.pk).update(name="Nama lama", price_rupiah=1)

    assert seed() == f"0 products created, {len(CATALOGUE)} updated\n"

    serum.refresh_from_db()
    assert (serum.name, serum.price_rupiah) == ("Serum Vitamin C 10% 30 ml", 159_000)
    assert numbers(serum) == (97, 0), "what was sold stays sold"
    assert StockMovement.objects.filter(kind="receive").count() == len(CATALOGUE)


def test_the_seeded_stock_is_in_the_ledger() -> None:
    seed()

    for product in Product.objects.all():
        received = StockMovement.objects.filter(product=product).aggregate(n=Sum("stock_delta"))
        assert received["n"] == product.stock > 0


def test_the_seeded_products_are_complete_and_found() -> None:
    seed()

    assert len(CATALOGUE) >= 20
    for product in Product.objects.all():
        product.full_clean()
        assert product.description
    assert len({entry.sku for entry in CATALOGUE}) == len(CATALOGUE)
    assert found("vitamin c")[0] == "Serum Vitamin C 10% 30 ml"
    assert {"Tabir Surya SPF 50 PA++++ 50 ml", "Tabir Surya Stik SPF 50 20 g"} == set(
        found("tabir surya")[:2]
    )


@pytest.mark.parametrize(
    "query",
    [
        *("-" * 33, "- " * 40, '"-' * 60, "-" * 200, "--serum", "serum --", '-"' * 90, '"', '""'),
        *("\x00", "serum\x00", "\ud800", "!" * 200, "& | ! ( ) : * <->", "or or or", "-or-" * 50),
        *("a-b-c-" * 33, "'; --", "\\", "%", "_", "serum:*", "\u200f-\u200f", "-\u0301" * 60),
    ],
)
def test_words_of_any_shape_are_searched_for(query: str) -> None:
    a_product(name="Serum")

    assert set(found(query)) <= {"Serum"}


@settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(query=st.text(st.sampled_from("-\" a|&!():*<>'\\\x00\ud800é1or"), max_size=200) | st.text())
def test_no_query_is_too_much_for_postgresql(query: str, db: None) -> None:
    list(search_products(query[:200]))


def test_a_hyphen_before_a_word_still_excludes_it() -> None:
    a_product(name="Serum Mawar")
    a_product(name="Serum")

    assert found("serum -mawar") == ["Serum"]
    assert found('serum -"serum mawar"') == ["Serum"]
