"""taskiq on taskiq-aio-sqs: `taskiq worker tests.bench.workers.taskiq_worker:broker`.

It runs in an environment of its own, which has nothing of ours but what this file imports.
"""

from taskiq_aio_sqs import SQSBroker  # type: ignore[import-not-found]

from skincare.local.sqs import REGION
from tests.bench import work

LONG_POLL_SECONDS = 15
TASK = "bench.handle"

broker = SQSBroker(
    work.QUEUE_URL.rsplit("/", 1)[-1],
    endpoint_url=work.ENDPOINT_URL,
    region_name=REGION,
    wait_time_seconds=LONG_POLL_SECONDS,
    max_number_of_messages=10,
)


@broker.task(task_name=TASK)
async def handle(document: work.Document) -> None:
    work.do_nothing(document, 1)
