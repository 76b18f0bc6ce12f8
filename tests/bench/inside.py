"""What can only be measured inside the shop: python -m tests.bench.inside measure TIMES | session.

Prints one line of JSON.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from importlib import import_module
from uuid import uuid4

import django


def milliseconds(action: Callable[[], object], times: int) -> float:
    """The median of so many calls, after some that warm up."""
    measured = []
    for number in range(times + 5):
        started = time.perf_counter()
        action()
        if number >= 5:
            measured.append((time.perf_counter() - started) * 1000)
    return statistics.median(measured)


def measure(times: int) -> dict[str, float]:
    from skincare.events import relay
    from skincare.events.claim import claim
    from skincare.events.schema import PAYMENT_PROCESSED, Event

    def claim_one() -> object:
        event = Event(
            event_id=uuid4().hex,
            event_type=PAYMENT_PROCESSED,
            order_id=str(uuid4()),
            payment_id=str(uuid4()),
            user_id="guest",
            amount_rupiah=125_000,
            created_at="2026-11-11T00:00:00+07:00",
        )
        return claim(event, worker="bench")

    return {
        "claim": milliseconds(claim_one, times),
        "idle relay pass": milliseconds(relay.run_once, times),
    }


def session() -> str:
    """Sign a superuser in; return the value of the session's cookie."""
    from django.conf import settings
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.auth.models import User

    user = User.objects.create_superuser(f"bench-{uuid4().hex[:8]}", password=uuid4().hex)
    store = import_module(settings.SESSION_ENGINE).SessionStore()
    store[SESSION_KEY] = str(user.pk)
    # The last one knows people; those before it only count wrong passwords.
    store[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[-1]
    store[HASH_SESSION_KEY] = user.get_session_auth_hash()
    store.create()
    return str(store.session_key)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "skincare.settings")
    django.setup()
    print(json.dumps(measure(int(sys.argv[2])) if sys.argv[1] == "measure" else session()))
