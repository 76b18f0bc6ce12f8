"""How many requests of a kind one network address may send.

The `limits` library counts in this process's memory: a count costs no round trip, so a flood cannot
reach the database by it. Each process counts for itself; what all tasks let through together is the
business of the firewall's rate rule (ecs/).
"""

from typing import Final

from django.conf import settings
from django.http import HttpRequest
from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from orders.hoarding import network_hash

_counts: Final = SlidingWindowCounterRateLimiter(MemoryStorage())
_parsed: Final[dict[str, RateLimitItem]] = {}


def kind_of(request: HttpRequest) -> str:
    """Return the kind of a request, a key of REQUEST_LIMITS."""
    path, is_read = request.path, request.method in ("GET", "HEAD", "OPTIONS")
    if path.startswith("/v1/webhooks/"):
        return "webhooks"
    if path.startswith("/admin/login"):
        return "pages" if is_read else "logins"
    if path.startswith("/v1/") and not is_read:
        return "orders"
    return "pages"


def is_too_often(request: HttpRequest) -> bool:
    """Count the request, and return whether its address has sent too many of its kind."""
    if not settings.LIMIT_BUYERS:
        return False
    kind = kind_of(request)
    limit = settings.REQUEST_LIMITS[kind]
    item = _parsed.setdefault(limit, parse(limit))
    return not _counts.hit(item, kind, network_hash(request.META.get("REMOTE_ADDR", "")))
