"""Make the queues of a local shop: `python -m skincare.local.queues` prints both URLs.

A program, because the numbers' one home is the settings, and those are read from the shop's
environment: whoever starts the shop keeps an environment of its own.
"""

from django.conf import settings

from skincare.sqs.client import make_client
from skincare.sqs.queues import create_queue_pair

QUEUE = "skincare-order-events"


def main() -> None:
    """Make queue and dead-letter queue with production's attributes, at SQS_ENDPOINT_URL."""
    policy = settings.SQS_POLICY
    client = make_client(
        region=settings.AWS_REGION, endpoint_url=settings.SQS_ENDPOINT_URL, policy=policy
    )
    for url in create_queue_pair(client, name=QUEUE, policy=policy):
        print(url)


if __name__ == "__main__":
    main()
