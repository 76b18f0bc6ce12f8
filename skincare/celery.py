"""The Celery app: `celery -A skincare worker` consumes the order events."""

import os
import sys
from typing import Any

from celery import Celery
from celery.signals import celeryd_init, setup_logging, worker_ready, worker_shutdown

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "skincare.settings")

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from skincare.events.routing import adapt
from skincare.sqs import configure
from skincare.telemetry.transport_metrics import TransportMetrics
from skincare.telemetry.worker import keep_logging, prepare_worker

try:
    policy = settings.SQS_POLICY
except ImproperlyConfigured:  # Celery would put the one sentence that helps into a page of text
    sys.excepthook(*sys.exc_info())
    raise SystemExit(1) from None

app = Celery("skincare")
configure(
    app,
    policy=policy,
    queues={settings.ORDER_EVENTS_QUEUE_URL.rsplit("/", 1)[-1]: settings.ORDER_EVENTS_QUEUE_URL},
    region=settings.AWS_REGION,
    endpoint_url=settings.SQS_ENDPOINT_URL,
    adapter=adapt,
    observer=TransportMetrics(),
)
# Celery closes the database connection before and after every task, so that each costs a session
# of PostgreSQL, unless it may be used that often. When to close it, EventTask knows.
app.conf.update(CELERY_DB_REUSE_MAX=sys.maxsize)
app.autodiscover_tasks()
celeryd_init.connect(prepare_worker)
setup_logging.connect(keep_logging)


@worker_ready.connect
def start_reports(sender: Any, **_: Any) -> None:
    """Its model needs the apps loaded, which they are by now."""
    from skincare.operations import worker_reports

    worker_reports.start_reports(sender)
    worker_shutdown.connect(worker_reports.stop_reports, weak=False)
