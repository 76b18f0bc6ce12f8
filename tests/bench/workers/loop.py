"""What one writes without Celery: five threads that receive ten, process and delete.

BENCH_BATCH=1 deletes ten in one call instead of one by one.
"""

import json
import os
import threading

import boto3
from botocore.config import Config

from skincare.local.sqs import REGION
from tests.bench import work

THREADS = 5
LONG_POLL_SECONDS = 15


def consume(delete_in_batches: bool) -> None:
    """Work forever."""
    client = boto3.session.Session().client(
        "sqs",
        region_name=REGION,
        endpoint_url=work.ENDPOINT_URL,
        config=Config(read_timeout=LONG_POLL_SECONDS + 10),
    )
    handle = work.handler()
    while True:
        answer = client.receive_message(
            QueueUrl=work.QUEUE_URL, MaxNumberOfMessages=10, WaitTimeSeconds=LONG_POLL_SECONDS
        )
        messages = answer.get("Messages", [])
        for message in messages:
            handle(json.loads(message["Body"]), 1)
            if not delete_in_batches:
                client.delete_message(
                    QueueUrl=work.QUEUE_URL, ReceiptHandle=message["ReceiptHandle"]
                )
        if messages and delete_in_batches:
            client.delete_message_batch(
                QueueUrl=work.QUEUE_URL,
                Entries=[
                    {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
                    for number, message in enumerate(messages)
                ],
            )


def main() -> None:
    if work.HANDLER == "shop":
        import django

        django.setup()
    arguments = (os.environ.get("BENCH_BATCH") == "1",)
    threads = [threading.Thread(target=consume, args=arguments) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
