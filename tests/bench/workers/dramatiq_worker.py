"""Dramatiq on dramatiq-sqs: `dramatiq tests.bench.workers.dramatiq_worker`.

It runs in an environment of its own, which has nothing of ours but what this file imports.
"""

import dramatiq  # type: ignore[import-not-found]
from dramatiq_sqs import SQSBroker  # type: ignore[import-not-found]

from skincare.local.sqs import REGION
from tests.bench import work

VISIBILITY_SECONDS = 120

dramatiq.set_broker(
    SQSBroker(
        visibility_timeout=VISIBILITY_SECONDS,
        region_name=REGION,
        endpoint_url=work.ENDPOINT_URL,
    )
)


@dramatiq.actor(actor_name="handle", queue_name=work.QUEUE_URL.rsplit("/", 1)[-1])
def handle(document: work.Document) -> None:
    work.do_nothing(document, 1)
