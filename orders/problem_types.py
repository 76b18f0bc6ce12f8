"""Every kind of problem that the API answers with: its name, status, title, and what to do then.

`GET /v1/problems` and the OpenAPI document are made from this list.
"""

from dataclasses import dataclass
from typing import Any, Final

from orders.sentences import Sentence


@dataclass(frozen=True)
class ProblemType:
    """`name` ends the `type` of the problem document; `remedy` is for who writes the client."""

    name: str
    status: int
    title: Sentence
    remedy: Sentence


def _type(name: str, status: int, title: Sentence, remedy: Sentence) -> tuple[str, ProblemType]:
    return name, ProblemType(name, status, title, remedy)


_S = Sentence
_CORRECT: Final = _S(
    "Correct the fields that `errors` names.", "Perbaiki isian yang disebut di `errors`."
)
_GATEWAY: Final = _S("For the payment gateway alone.", "Hanya untuk penyedia layanan pembayaran.")
_AGAIN: Final = _S("Send it again after Retry-After seconds.", "Kirim ulang setelah Retry-After.")

PROBLEM_TYPES: Final[dict[str, ProblemType]] = dict(
    [
        _type(
            "invalid-request",
            422,
            _S(
                "The request breaks the rules of its fields.",
                "Isian tidak sesuai aturan.",
            ),
            _CORRECT,
        ),
        _type(
            "unreadable-body",
            400,
            _S("The body is not JSON.", "Isi permintaan bukan JSON."),
            _S("Send a JSON object in UTF-8.", "Kirim objek JSON dalam UTF-8."),
        ),
        _type(
            "body-too-large",
            413,
            _S("The body is too large.", "Isi permintaan terlalu besar."),
            _S("Send less at a time.", "Kirim lebih sedikit sekaligus."),
        ),
        _type(
            "too-many-requests",
            429,
            _S("There were too many requests.", "Terlalu banyak permintaan."),
            _AGAIN,
        ),
        _type(
            "too-many-unpaid",
            429,
            _S(
                "Too much is set aside and not paid.",
                "Terlalu banyak yang disisihkan dan belum dibayar.",
            ),
            _S(
                "Pay for an open order, or try again after Retry-After seconds.",
                "Bayar pesanan yang terbuka, atau coba lagi setelah Retry-After.",
            ),
        ),
        _type(
            "unknown-host",
            400,
            _S("No shop of this name is here.", "Tidak ada toko dengan nama ini di sini."),
            _S("Use the name that ALLOWED_HOSTS lists.", "Pakai nama di ALLOWED_HOSTS."),
        ),
        _type(
            "invalid-token",
            401,
            _S("The buyer's token is not valid.", "Token pembeli tidak sah."),
            _S(
                "Get a new token from the shop's login, or order as a guest without one.",
                "Minta token baru dari halaman masuk, atau pesan sebagai tamu tanpa token.",
            ),
        ),
        _type(
            "not-found",
            404,
            _S("There is nothing at this address.", "Tidak ada apa pun di alamat ini."),
            _S("See the addresses in /v1/openapi.json.", "Lihat alamat di /v1/openapi.json."),
        ),
        _type(
            "order-not-found",
            404,
            _S("There is no such order.", "Pesanan tidak ditemukan."),
            _S("Use the `order_id` of the checkout.", "Pakai `order_id` dari checkout."),
        ),
        _type(
            "order-not-cancellable",
            409,
            _S("The order cannot be cancelled.", "Pesanan tidak dapat dibatalkan."),
            _S(
                "Show `detail` to the buyer, and look at the order again.",
                "Tunjukkan `detail` kepada pembeli, dan lihat pesanan lagi.",
            ),
        ),
        _type(
            "product-not-found",
            404,
            _S("There is no such product.", "Produk tidak ditemukan."),
            _S("Use a `sku` of GET /v1/products.", "Pakai `sku` dari GET /v1/products."),
        ),
        _type(
            "method-not-allowed",
            405,
            _S("This address does not know this method.", "Metode ini tidak ada di alamat ini."),
            _S("Use a method that Allow names.", "Pakai metode yang disebut di Allow."),
        ),
        _type(
            "bad-request",
            400,
            _S("The request cannot be read.", "Permintaan tidak dapat dibaca."),
            _S("Mend the address or the headers.", "Perbaiki alamat atau header."),
        ),
        _type(
            "forbidden",
            403,
            _S("The request is not allowed.", "Permintaan tidak diizinkan."),
            _S("Do not send it again.", "Jangan kirim ulang."),
        ),
        _type(
            "internal-error",
            500,
            _S("Something went wrong on our side.", "Terjadi kesalahan di sisi kami."),
            _S(
                "Send a checkout again with the same Idempotency-Key; tell us the X-Request-ID.",
                "Kirim ulang checkout dengan Idempotency-Key yang sama; beri tahu X-Request-ID.",
            ),
        ),
        _type(
            "unavailable",
            503,
            _S("The shop cannot answer now.", "Toko sedang tidak dapat menjawab."),
            _AGAIN,
        ),
        _type(
            "missing-idempotency-key",
            400,
            _S("The Idempotency-Key header is missing.", "Header Idempotency-Key tidak ada."),
            _S("Send a value of your own, new for each order.", "Kirim nilai baru tiap pesanan."),
        ),
        _type(
            "invalid-idempotency-key",
            400,
            _S("The Idempotency-Key header is malformed.", "Header Idempotency-Key tidak sah."),
            _S("A UUID is right.", "UUID adalah pilihan yang tepat."),
        ),
        _type(
            "idempotency-key-reused",
            409,
            _S(
                "This Idempotency-Key was used for another order.",
                "Idempotency-Key ini sudah dipakai untuk pesanan lain.",
            ),
            _S("Use a new one for a new cart.", "Pakai yang baru untuk keranjang baru."),
        ),
        _type("empty-cart", 422, _S("The cart is empty.", "Keranjang masih kosong."), _CORRECT),
        _type(
            "too-many-lines",
            422,
            _S("The cart has too many lines.", "Keranjang berisi terlalu banyak baris."),
            _CORRECT,
        ),
        _type(
            "quantity-out-of-range",
            422,
            _S("A quantity is out of range.", "Jumlah barang di luar batas."),
            _CORRECT,
        ),
        _type(
            "duplicate-sku",
            422,
            _S("A product is in the cart twice.", "Satu produk ada dua kali di keranjang."),
            _CORRECT,
        ),
        _type(
            "unknown-sku",
            422,
            _S("A product is not for sale.", "Ada produk yang tidak dijual."),
            _S("Take it out of the cart.", "Keluarkan dari keranjang."),
        ),
        _type(
            "not-enough-stock",
            409,
            _S("There is not enough stock.", "Stok tidak mencukupi."),
            _S("Offer the buyer what `errors` says is left.", "Tawarkan sisa stok di `errors`."),
        ),
        _type(
            "order-not-payable",
            409,
            _S("This order cannot be paid.", "Pesanan ini tidak dapat dibayar."),
            _S(
                "Look at the order: it is paid, over, tried too often, or needs no payment.",
                "Lihat pesanannya: sudah lunas, sudah berakhir, terlalu sering dicoba, atau tidak "
                "perlu dibayar.",
            ),
        ),
        _type(
            "payment-page-being-opened",
            409,
            _S(
                "The payment page is being opened.",
                "Halaman pembayaran sedang dibuka.",
            ),
            _AGAIN,
        ),
        _type(
            "payment-still-open",
            409,
            _S(
                "The payment page before can still be paid on.",
                "Halaman pembayaran sebelumnya masih dapat dibayar.",
            ),
            _S(
                "Send the buyer to that page, or try again after Retry-After seconds.",
                "Arahkan pembeli ke halaman itu, atau coba lagi setelah Retry-After.",
            ),
        ),
        _type(
            "gateway-refused",
            502,
            _S("The payment gateway refuses.", "Penyedia pembayaran menolak."),
            _S(
                "Trying again does not help: offer another payment method.",
                "Mencoba lagi tidak membantu: tawarkan metode pembayaran lain.",
            ),
        ),
        _type(
            "gateway-unavailable",
            503,
            _S("The payment gateway does not answer.", "Penyedia pembayaran tidak menjawab."),
            _AGAIN,
        ),
        _type(
            "invalid-email",
            422,
            _S("The email address is malformed.", "Alamat surel tidak sah."),
            _CORRECT,
        ),
        _type(
            "unknown-payment-method",
            422,
            _S("The payment method is not offered.", "Metode pembayaran tidak tersedia."),
            _S(
                "Use one of GET /v1/payment-methods.",
                "Pilih dari GET /v1/payment-methods.",
            ),
        ),
        _type(
            "webhook-forged",
            403,
            _S("The sender is not proven.", "Pengirim tidak terbukti."),
            _GATEWAY,
        ),
        _type(
            "webhook-malformed",
            400,
            _S("This is not a notification.", "Ini bukan notifikasi."),
            _GATEWAY,
        ),
        _type(
            "webhook-too-large",
            413,
            _S("The body is too large.", "Isi permintaan terlalu besar."),
            _GATEWAY,
        ),
        _type(
            "webhook-order-not-known-yet",
            503,
            _S("The order is not known yet.", "Pesanan belum dikenal."),
            _AGAIN,
        ),
        _type(
            "webhook-not-stored",
            503,
            _S("The notification could not be stored.", "Notifikasi tidak dapat disimpan."),
            _AGAIN,
        ),
    ]
)


def rows(types: dict[str, ProblemType] = PROBLEM_TYPES) -> list[dict[str, Any]]:
    """Return the catalogue as JSON-ready rows, titles and remedies in English and Indonesian."""
    return [
        {
            "name": one.name,
            "status": one.status,
            "title": {"en": str(one.title), "id": one.title.in_indonesian},
            "remedy": {"en": str(one.remedy), "id": one.remedy.in_indonesian},
        }
        for one in sorted(types.values(), key=lambda one: one.name)
    ]
