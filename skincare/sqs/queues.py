"""Queues as the policy wants them: made for local servers, checked before a worker starts."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from skincare.sqs.policy import SQSPolicy

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

#: Seconds. A message keeps its first enqueue time in the DLQ, so the DLQ must keep it longest.
QUEUE_RETENTION = 4 * 24 * 3600
DLQ_RETENTION = 14 * 24 * 3600  # the most that SQS takes


class Depth(NamedTuple):
    """Approximate numbers of messages, as SQS counts them."""

    visible: int
    in_flight: int
    delayed: int


def create_queue_pair(client: "SQSClient", *, name: str, policy: SQSPolicy) -> tuple[str, str]:
    """Make the queue `name` and its dead-letter queue `name`-dlq; return both URLs.

    Repeatable: existing queues get the policy's attributes.
    """
    dlq_url = _create(client, f"{name}-dlq", dlq_attributes(policy))
    dlq = client.get_queue_attributes(QueueUrl=dlq_url, AttributeNames=["QueueArn"])
    url = _create(client, name, queue_attributes(policy, dlq_arn=dlq["Attributes"]["QueueArn"]))
    return url, dlq_url


def _create(client: "SQSClient", name: str, attributes: "dict[QueueAttributeNameType, str]") -> str:
    # Not in CreateQueue: that fails when the queue exists with other attributes.
    url = client.create_queue(QueueName=name)["QueueUrl"]
    client.set_queue_attributes(QueueUrl=url, Attributes=attributes)
    return url


def queue_attributes(policy: SQSPolicy, *, dlq_arn: str) -> "dict[QueueAttributeNameType, str]":
    """Return the attributes of the work queue that the policy asks for."""
    redrive = {"deadLetterTargetArn": dlq_arn, "maxReceiveCount": str(policy.max_receive_count)}
    return {
        "VisibilityTimeout": str(policy.visibility_timeout),
        "ReceiveMessageWaitTimeSeconds": str(policy.long_poll),
        "MessageRetentionPeriod": str(QUEUE_RETENTION),
        "RedrivePolicy": json.dumps(redrive),
    }


def dlq_attributes(policy: SQSPolicy) -> "dict[QueueAttributeNameType, str]":
    """Return the attributes of the dead-letter queue that the policy asks for."""
    return {
        "VisibilityTimeout": str(policy.visibility_timeout),
        "MessageRetentionPeriod": str(DLQ_RETENTION),
    }


def queue_problems(client: "SQSClient", url: str, policy: SQSPolicy) -> list[str]:
    """Return a sentence, with its remedy, for each attribute that contradicts the policy.

    Raises botocore's errors where the attributes cannot be read.
    """
    answer = client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    attributes = {str(name): value for name, value in answer.get("Attributes", {}).items()}
    return attribute_problems(attributes, name=url, policy=policy)


def attribute_problems(attributes: Mapping[str, str], *, name: str, policy: SQSPolicy) -> list[str]:
    """Return a sentence for each of a queue's attributes that contradicts the policy."""
    problems = _redrive_problems(attributes.get("RedrivePolicy"), name, policy)
    visibility = attributes.get("VisibilityTimeout")
    if visibility != str(policy.visibility_timeout):
        problems.append(
            f"Queue {name} has VisibilityTimeout {visibility}, the policy says "
            f"{policy.visibility_timeout}: set the attribute to {policy.visibility_timeout}."
        )
    if attributes.get("FifoQueue") == "true":
        problems.append(
            f"Queue {name} is a FIFO queue, where one failed message holds up its whole group: "
            "use a standard queue."
        )
    return problems


def _redrive_problems(redrive_policy: str | None, name: str, policy: SQSPolicy) -> list[str]:
    if not redrive_policy:
        return [
            f"Queue {name} has no RedrivePolicy: a message that can never be processed would "
            "never leave the queue. Give it a dead-letter queue with maxReceiveCount "
            f"{policy.max_receive_count}."
        ]
    try:
        redrive = json.loads(redrive_policy)
        count = int(redrive["maxReceiveCount"])
        dlq_arn = redrive["deadLetterTargetArn"]
    except (ValueError, TypeError, KeyError):
        return [f"Queue {name} has a RedrivePolicy that cannot be read: set it again."]
    problems = []
    if count != policy.max_receive_count:
        problems.append(
            f"Queue {name} has maxReceiveCount {count}, the policy says "
            f"{policy.max_receive_count}: set it to {policy.max_receive_count} in RedrivePolicy."
        )
    if not dlq_arn:
        problems.append(f"Queue {name} has a RedrivePolicy without deadLetterTargetArn: set it.")
    return problems


def depth(client: "SQSClient", url: str) -> Depth:
    """Return how many messages the queue holds."""
    attributes = client.get_queue_attributes(
        QueueUrl=url,
        AttributeNames=[
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesDelayed",
        ],
    )["Attributes"]
    return Depth(
        visible=int(attributes["ApproximateNumberOfMessages"]),
        in_flight=int(attributes["ApproximateNumberOfMessagesNotVisible"]),
        delayed=int(attributes["ApproximateNumberOfMessagesDelayed"]),
    )
