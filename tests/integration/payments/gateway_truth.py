"""What the gateways' documents say of one transaction, written from them alone.

https://docs.midtrans.com/docs/transaction-status-cycle
https://docs.midtrans.com/docs/https-notification-webhooks
https://docs.xendit.co/docs/payments-api-webhooks

Nothing of the shop is imported here: this is what the shop is held to.
"""

from itertools import pairwise

TOTAL = 150_000  # rupiah; of the example notifications
PART = 50_000  # rupiah; of the example partial refund

#: Midtrans: which state of a transaction may follow which. Before the first, it is not there.
MIDTRANS = {
    "": ["pending", "authorize", "capture_challenge", "capture_accept", "settlement", "deny"],
    "pending": ["settlement", "deny", "cancel", "expire"],
    "authorize": ["capture_accept", "capture_challenge", "deny", "cancel", "expire"],
    # A challenged capture is accepted or denied by a person, or nobody decides in time.
    "capture_challenge": ["capture_accept", "deny", "cancel", "expire"],
    "capture_accept": ["settlement", "cancel"],
    # "deny" after settlement is a reversal: some bank transfers, minutes later.
    "settlement": ["deny", "partial_refund", "refund", "chargeback"],
    "partial_refund": ["refund"],
    "deny": [],
    "cancel": [],
    "expire": [],
    "refund": [],
    "chargeback": [],
}
WORDS = [word for word in MIDTRANS if word]

#: Rupiah of the buyer that are at the shop when a transaction stands at this word.
KEPT = {
    **dict.fromkeys(WORDS, 0),
    "capture_accept": TOTAL,
    "settlement": TOTAL,
    "partial_refund": TOTAL - PART,
}
#: Money that is reserved or under review: nobody may take it for lost.
IN_DOUBT = {"authorize", "capture_challenge"}


def is_documented(words: list[str]) -> bool:
    """Whether the gateway's documents have this history, word for word."""
    return all(after in MIDTRANS[before] for before, after in pairwise(["", *words]))


def kept_after(words: list[str]) -> int:
    """Return the rupiah at the shop after a documented history."""
    return KEPT[words[-1]] if words else 0
