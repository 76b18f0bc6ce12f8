"""What a notified state does to a payment in another state: one table, and the reading of it.

Notifications repeat and arrive in any order, so the table does not ask "may this follow that?" but
"which of the two is later in the gateway's own history?". The later one wins, whoever came first:

    pending < authorized < challenged < expired, failed < captured < cancelled < settled < denied
                                                             settled < partly refunded < refunded

- Expired and failed yield to money: a transfer can race with the expiry, and money received is
  never dropped.
- A capture can be cancelled before it settles; a settlement can only be denied (Midtrans calls it
  a reversal: some bank transfers change to deny minutes after settlement) or refunded.
- A refund implies the settlement that it gives back, if that was never notified.
- Pairs that no history has (money in after a denial, a cancelled settlement, a denied refund) are
  held for a person. The payment stays as it is.

https://docs.midtrans.com/docs/transaction-status-cycle
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from payments.status import PaymentStatus


@dataclass(frozen=True)
class Apply:
    """The notified state is later: the payment takes it."""

    status: PaymentStatus


@dataclass(frozen=True)
class Duplicate:
    """The payment is in the notified state already."""


@dataclass(frozen=True)
class Stale:
    """The notified state is earlier than the payment's."""

    reason: str


@dataclass(frozen=True)
class Hold:
    """No history of a gateway has both states: a person must decide."""

    reason: str


Decision = Apply | Duplicate | Stale | Hold

_S = PaymentStatus
_COLUMNS: Final = (
    _S.PENDING,
    _S.AUTHORIZED,
    _S.CHALLENGED,
    _S.EXPIRED,
    _S.FAILED,
    _S.CAPTURED,
    _S.CANCELLED,
    _S.SETTLED,
    _S.DENIED,
    _S.PARTLY_REFUNDED,
    _S.REFUNDED,
)

#: > apply   = repeat   . ignore   ! hold
#: Each row is the payment's state; its columns are the notified states in the same order.
_CELLS: Final[Mapping[PaymentStatus, str]] = {
    # notified:          pen aut cha exp fai cap can set den par ref
    _S.PENDING: "         =   >   >   >   >   >   >   >   >   >   > ",
    _S.AUTHORIZED: "      .   =   >   >   >   >   >   >   >   >   > ",
    _S.CHALLENGED: "      .   .   =   >   >   >   >   >   >   >   > ",
    _S.EXPIRED: "         .   .   .   =   .   >   >   >   >   >   > ",
    _S.FAILED: "          .   .   .   .   =   >   >   >   >   >   > ",
    _S.CAPTURED: "        .   .   .   .   .   =   >   >   >   >   > ",
    _S.CANCELLED: "       .   .   .   .   .   .   =   >   >   >   > ",
    _S.SETTLED: "         .   .   .   .   .   .   !   =   >   >   > ",
    _S.DENIED: "          .   .   .   .   .   !   .   !   =   !   ! ",
    _S.PARTLY_REFUNDED: " .   .   .   .   .   .   !   .   !   =   > ",
    _S.REFUNDED: "        .   .   .   .   .   .   .   .   !   .   = ",
}

#: (payment's state, notified state) → one of the four signs above.
TRANSITIONS: Final[Mapping[tuple[PaymentStatus, PaymentStatus], str]] = {
    (current, notified): sign
    for current, row in _CELLS.items()
    for notified, sign in zip(_COLUMNS, row.split(), strict=True)
}


def next_status(current: PaymentStatus, notified: PaymentStatus) -> Decision:
    """Return what a notification of `notified` does to a payment that is `current`."""
    match TRANSITIONS[current, notified]:
        case ">":
            return Apply(notified)
        case "=":
            return Duplicate()
        case ".":
            return Stale(f"{notified} is earlier than {current}")
        case _:
            return Hold(f"{notified} was notified, but the payment is {current}")
