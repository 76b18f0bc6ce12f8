"""Celery on `skincare.sqs`: `celery -A tests.bench.workers.transport worker`."""

from celery import Celery

from skincare.local.sqs import REGION
from skincare.sqs import SQSPolicy, configure
from tests.bench import work

TASK = "bench.handle"
POLICY = SQSPolicy()


def make_app(*, queue_url: str, endpoint_url: str) -> Celery:
    """Celery as `configure` sets it up, with the shop's numbers."""
    app = Celery("transport", set_as_current=False)
    configure(
        app,
        policy=POLICY,
        queues={queue_url.rsplit("/", 1)[-1]: queue_url},
        region=REGION,
        endpoint_url=endpoint_url,
    )
    return app


if work.QUEUE_URL:  # in the worker; who sends to it imports this module too
    app = make_app(queue_url=work.QUEUE_URL, endpoint_url=work.ENDPOINT_URL)

    @app.task(name=TASK)
    def handle(document: work.Document) -> None:
        work.do_nothing(document, 1)
