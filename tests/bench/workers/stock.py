"""Celery on kombu's own SQS transport: `celery -A tests.bench.workers.stock worker`.

BENCH_OPTIONS names a set of its options; without it all is as Celery ships it, but for the address
of the queue.
"""

import os
from typing import Any
from urllib.parse import urlsplit

from celery import Celery

from skincare.local.sqs import REGION
from tests.bench import work

TASK = "bench.handle"

OPTIONS: dict[str, dict[str, Any]] = {
    "": {},
    # No message is lost with its process, and none waits behind another.
    "careful": {"task_acks_late": True, "worker_prefetch_multiplier": 1},
    # The fastest of those tried that lose no message with its process.
    "tuned": {
        "task_acks_late": True,
        "task_ignore_result": True,
        "worker_prefetch_multiplier": 10,
        "worker_send_task_events": False,
    },
}
TRANSPORT_OPTIONS: dict[str, dict[str, Any]] = {
    # Asks again this long after the prefetch was found full; at 0 it would spin.
    "tuned": {"polling_interval": 0.02, "wait_time_seconds": 20},
}


def make_app(*, queue_url: str, endpoint_url: str, options: str) -> Celery:
    """Celery with one predefined queue."""
    server = urlsplit(endpoint_url)
    app = Celery("stock", set_as_current=False)
    app.conf.update(
        broker_url=f"sqs://local:local@{server.hostname}:{server.port}//",
        broker_transport_options={
            "region": REGION,
            "predefined_queues": {"celery": {"url": queue_url}},
            **TRANSPORT_OPTIONS.get(options, {}),
        },
        **OPTIONS[options],
    )
    return app


if work.QUEUE_URL:  # in the worker; who sends to it imports this module too
    app = make_app(
        queue_url=work.QUEUE_URL,
        endpoint_url=work.ENDPOINT_URL,
        options=os.environ.get("BENCH_OPTIONS", ""),
    )
    handle_event = work.handler()

    @app.task(name=TASK)
    def handle(document: work.Document) -> None:
        handle_event(document, 1)
