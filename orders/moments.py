"""The rule for moments of `skincare.events.moments`, as constraints of the database."""

from django.db.models import CheckConstraint, Q

from skincare.events.moments import EARLIEST, LATEST


def moments_within_reason(table: str, *fields: str) -> list[CheckConstraint]:
    """Return the constraints that keep these fields of `table` between 2000 and 2100, or NULL."""
    return [
        CheckConstraint(
            name=f"{table}_{field}_within_reason",
            condition=Q(**{f"{field}__isnull": True})
            | Q(**{f"{field}__gte": EARLIEST, f"{field}__lte": LATEST}),
        )
        for field in fields
    ]
