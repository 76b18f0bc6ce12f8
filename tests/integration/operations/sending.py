"""What the relay of a test's own process sends by."""

import sys
from typing import Any

import pytest
from celery import Celery

from skincare.events.routing import adapt
from skincare.sqs import configure

#: The application that settings.CELERY_APP names; a new one for each test.
app: Celery


def send_to(
    queue_url: str, *, endpoint_url: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let what this process publishes go to this queue, until the test ends."""
    made = Celery("sender", set_as_current=False)
    configure(
        made,
        policy=settings.SQS_POLICY,
        queues={"orders": queue_url},
        region=settings.AWS_REGION,
        endpoint_url=endpoint_url,
        adapter=adapt,
    )
    monkeypatch.setattr(sys.modules[__name__], "app", made, raising=False)
    settings.CELERY_APP = f"{__name__}.app"
