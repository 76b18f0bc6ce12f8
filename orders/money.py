"""How people read an amount of rupiah."""


def rupiah(amount: int) -> str:
    """Return whole rupiah as Indonesians write them: Rp150.000."""
    sign = "-" if amount < 0 else ""
    return f"{sign}Rp{abs(amount):,}".replace(",", ".")
