"""How people read an amount of rupiah."""

from decimal import Decimal


def rupiah(amount: int) -> str:
    """Return whole rupiah as Indonesians write them: Rp150.000."""
    sign = "-" if amount < 0 else ""
    return f"{sign}Rp{abs(amount):,}".replace(",", ".")


def reported(amount: Decimal | None, currency: str) -> str:
    """Write an amount as a gateway reported it, without the zeros that a column adds."""
    if amount is None:
        return "no amount"
    whole = amount.to_integral_value()
    if whole != amount:
        return f"{amount.normalize():f} {currency}"
    return rupiah(int(whole)) if currency == "IDR" else f"{whole} {currency}"
