"""What gunicorn serves: the Django application, with the outbox relay beside it."""

import gc
import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "skincare.settings")

from django.core.checks import run_checks
from django.core.management.base import SystemCheckError
from django.core.signals import request_started
from django.core.wsgi import get_wsgi_application

from skincare.telemetry.identity import identify

identify("api")
application = get_wsgi_application()

from skincare.events import relay  # noqa: E402 its models need the apps loaded

# manage.py and the worker check the system by themselves; gunicorn would serve with wrong settings.
wrong = [found for found in run_checks() if found.is_serious() and not found.is_silenced()]
if wrong:
    raise SystemCheckError("\n".join(map(str, wrong)))


def start_relay(**_: object) -> None:
    """Start the relay with the first request (after any fork), to send what a dead process left."""
    relay.start()


request_started.connect(start_relay)

# What is loaded now stays. A search of all of it for garbage takes a tenth of a second, every few
# hundred requests, and each request of the process waits for it.
gc.collect()
gc.freeze()
