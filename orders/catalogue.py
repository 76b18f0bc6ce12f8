"""The demonstration catalogue."""

from dataclasses import dataclass
from typing import Final

from django.db import transaction

from orders import stock
from orders.locks import lock_products
from orders.models import Category, Product
from orders.search import refresh_search
from skincare.events.schema import new_event_id


@dataclass(frozen=True)
class SeedProduct:
    """One product: its texts, its price in rupiah, and the pieces that it starts with."""

    sku: str
    name: str
    price_rupiah: int
    stock: int
    description: str


@dataclass(frozen=True)
class Seeded:
    """How many products were created and how many were there already."""

    created: int
    updated: int


def seed() -> Seeded:
    """Create the products of `CATALOGUE`, or bring their texts and prices up to date.

    Stock is received once, when a product is created; what was sold since is left alone.
    """
    created = 0
    seeded = Product.objects.filter(sku__in=[entry.sku for entry in CATALOGUE])
    with transaction.atomic():
        lock_products(seeded.values_list("pk", flat=True))
        for entry in CATALOGUE:
            created += _seed_product(entry)
        refresh_search(seeded.values_list("pk", flat=True))
    return Seeded(created=created, updated=len(CATALOGUE) - created)


def _seed_product(entry: SeedProduct) -> bool:
    product, is_new = Product.objects.update_or_create(
        sku=entry.sku,
        defaults={
            "name": entry.name,
            "description": entry.description,
            "category": category_of(entry.sku),
            "picture": f"orders/products/{category_of(entry.sku)}.png",
            "price_rupiah": entry.price_rupiah,
        },
    )
    if is_new:
        stock.apply_movements(
            [stock.plan_receive(product.pk, entry.stock)],
            event_id=new_event_id("catalogue.seeded", entry.sku),
            order_id=None,
        )
    return is_new


#: How the sku of a product begins.
_CATEGORIES: Final = {
    "CLN": Category.CLEANSER,
    "TON": Category.TONER,
    "ESS": Category.TONER,
    "SRM": Category.SERUM,
    "MST": Category.MOISTURISER,
    "SUN": Category.SUNSCREEN,
    "MSK": Category.MASK,
    "EYE": Category.TREATMENT,
    "SPT": Category.TREATMENT,
    "LIP": Category.BODY,
    "BDY": Category.BODY,
}


def category_of(sku: str) -> Category:
    """Return the category that the sku's first letters stand for."""
    return _CATEGORIES.get(sku[:3], Category.OTHER)


CATALOGUE: Final = (
    SeedProduct(
        "CLN-GEL-100",
        "Gel Pembersih Wajah Lidah Buaya 100 ml",
        65_000,
        200,
        "Pembersih wajah lembut berbusa halus dengan ekstrak lidah buaya. "
        "Mengangkat debu dan minyak tanpa membuat kulit terasa kering.",
    ),
    SeedProduct(
        "CLN-OIL-150",
        "Minyak Pembersih Kelapa dan Jojoba 150 ml",
        128_000,
        120,
        "Melarutkan riasan dan tabir surya pada langkah pertama pembersihan ganda. "
        "Bilasannya bersih, tidak lengket di kulit.",
    ),
    SeedProduct(
        "CLN-MIC-250",
        "Air Misel Mawar 250 ml",
        79_000,
        150,
        "Air misel dengan air mawar untuk membersihkan riasan ringan, tanpa alkohol.",
    ),
    SeedProduct(
        "TON-RCE-150",
        "Toner Air Beras Fermentasi 150 ml",
        95_000,
        140,
        "Toner beras fermentasi yang melembapkan dan membuat kulit kusam tampak lebih cerah.",
    ),
    SeedProduct(
        "TON-BHA-120",
        "Toner Eksfoliasi BHA 2% 120 ml",
        139_000,
        90,
        "Asam salisilat 2% membersihkan pori tersumbat dan membantu merawat kulit berjerawat. "
        "Dipakai dua sampai tiga kali seminggu.",
    ),
    SeedProduct(
        "ESS-CEN-100",
        "Essence Pegagan 100 ml",
        149_000,
        80,
        "Essence dengan 80% ekstrak pegagan (Centella asiatica) yang menenangkan kulit kemerahan.",
    ),
    SeedProduct(
        "SRM-VITC-30",
        "Serum Vitamin C 10% 30 ml",
        159_000,
        100,
        "Serum vitamin C stabil yang mencerahkan dan menyamarkan noda hitam. Dipakai pagi hari "
        "sebelum tabir surya.",
    ),
    SeedProduct(
        "SRM-NIA-30",
        "Serum Niacinamide 10% + Zinc 30 ml",
        119_000,
        160,
        "Niacinamide mengatur minyak dan menyamarkan pori; zinc membantu kulit berjerawat.",
    ),
    SeedProduct(
        "SRM-HYA-30",
        "Serum Asam Hialuronat 30 ml",
        109_000,
        130,
        "Tiga ukuran asam hialuronat yang mengikat air di kulit kering dan dehidrasi.",
    ),
    SeedProduct(
        "SRM-RET-20",
        "Serum Retinol 0,3% 20 ml",
        189_000,
        60,
        "Retinol dalam squalane untuk garis halus dan tekstur kulit. Dipakai malam hari; "
        "tidak untuk ibu hamil.",
    ),
    SeedProduct(
        "SRM-BAK-30",
        "Serum Bakuchiol 30 ml",
        175_000,
        50,
        "Pilihan lembut pengganti retinol dari biji babchi, cocok untuk kulit sensitif.",
    ),
    SeedProduct(
        "MST-GEL-50",
        "Gel Pelembap Semangka 50 g",
        89_000,
        180,
        "Pelembap gel ringan dengan ekstrak semangka untuk kulit berminyak di cuaca panas.",
    ),
    SeedProduct(
        "MST-CER-50",
        "Krim Pelembap Ceramide 50 g",
        135_000,
        110,
        "Krim dengan lima ceramide yang memperkuat lapisan pelindung kulit kering.",
    ),
    SeedProduct(
        "SUN-SPF50-50",
        "Tabir Surya SPF 50 PA++++ 50 ml",
        99_000,
        250,
        "Tabir surya ringan tanpa bekas putih untuk dipakai setiap hari. Ulangi setiap dua jam.",
    ),
    SeedProduct(
        "SUN-STK-20",
        "Tabir Surya Stik SPF 50 20 g",
        115_000,
        70,
        "Tabir surya berbentuk stik untuk dipakai ulang di atas riasan dan saat olahraga.",
    ),
    SeedProduct(
        "MSK-CLY-75",
        "Masker Lumpur Vulkanik 75 g",
        85_000,
        75,
        "Masker tanah liat dari lumpur vulkanik yang menyerap minyak dan membersihkan pori.",
    ),
    SeedProduct(
        "MSK-SHT-05",
        "Masker Lembar Teh Hijau, isi 5",
        72_500,
        140,
        "Lima masker lembar dengan teh hijau yang menyegarkan kulit lelah.",
    ),
    SeedProduct(
        "EYE-CAF-15",
        "Krim Mata Kafein 15 ml",
        98_000,
        65,
        "Krim mata kopi Gayo: kafein membantu menyamarkan kantung dan lingkar mata.",
    ),
    SeedProduct(
        "LIP-HNY-10",
        "Balsam Bibir Madu 10 g",
        39_000,
        220,
        "Balsam bibir madu dan lilin lebah untuk bibir kering dan pecah-pecah.",
    ),
    SeedProduct(
        "BDY-LTN-200",
        "Losion Tubuh Bengkuang 200 ml",
        58_000,
        190,
        "Losion tubuh bengkuang yang melembapkan dan meratakan warna kulit.",
    ),
    SeedProduct(
        "SPT-ACN-10",
        "Gel Totol Jerawat Tea Tree 10 ml",
        49_000,
        170,
        "Gel totol dengan minyak tea tree dan asam salisilat untuk jerawat yang meradang.",
    ),
    SeedProduct(
        "GFT-SAMPLE",
        "Paket Contoh Gratis",
        0,
        100,
        "Tiga sachet contoh: pembersih, serum, dan pelembap. Gratis, satu paket untuk mencoba.",
    ),
)
