"""How many messages the dead-letter queue holds, reported to the metrics by the API.

CloudWatch's own metric of a queue that nobody calls can begin a quarter of an hour late:
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/monitoring-using-cloudwatch.html
"""

from typing import Final

from skincare.events.queue_client import open_dead_letter_queue
from skincare.sqs.dead_letters import NoDeadLetterQueue, Unreachable
from skincare.telemetry import metrics
from skincare.telemetry.identity import IDENTITY

EVERY_SECONDS: Final = 60.0  # CloudWatch's shortest period without extra cost


def report_dead_letters() -> None:
    """Report DeadLetters, hidden ones too. Nothing where SQS does not say: its own alarms do.

    Only the API's role may look at the dead-letter queue.
    """
    if IDENTITY.service != "api":
        return
    try:
        depth = open_dead_letter_queue().depth()
    except (Unreachable, NoDeadLetterQueue):
        return
    metrics.record({"DeadLetters": depth.visible + depth.in_flight})
