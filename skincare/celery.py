"""The Celery app: `celery -A skincare worker` consumes the order events."""

import os
from typing import Any

from celery import Celery
from celery.signals import celeryd_init, setup_logging

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "skincare.settings")

from django.conf import settings

from skincare.events.routing import adopt
from skincare.sqs import configure
from skincare.telemetry.worker import prepare_worker

app = Celery("skincare")
configure(
    app,
    policy=settings.SQS_POLICY,
    queues={settings.ORDER_EVENTS_QUEUE_URL.rsplit("/", 1)[-1]: settings.ORDER_EVENTS_QUEUE_URL},
    region=settings.AWS_REGION,
    endpoint_url=settings.SQS_ENDPOINT_URL,
    adopt=adopt,
)
app.autodiscover_tasks()
celeryd_init.connect(prepare_worker)


@setup_logging.connect
def keep_django_logging(**_: Any) -> None:
    """Leave the logging that the settings made; Celery sets up its own unless this is connected."""
