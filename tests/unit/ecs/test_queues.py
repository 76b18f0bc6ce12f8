"""The queues' template says what the settings and the queues made for local servers say."""

import json
from typing import Any

import pytest
from django.conf import settings

from ecs.template import deployed
from skincare.sqs.queues import attribute_problems, dlq_attributes, queue_attributes

POLICY = settings.SQS_POLICY


def test_the_queue_has_the_attributes_that_the_policy_asks_for() -> None:
    asked = queue_attributes(POLICY, dlq_arn="queues.DeadLetters.Arn")

    assert as_api_attributes(template_queue("OrderEvents")) == {
        **asked,
        "SqsManagedSseEnabled": "true",
    }


def test_the_worker_starts_on_the_queue_of_the_template() -> None:
    attributes = as_api_attributes(template_queue("OrderEvents"))

    assert attribute_problems(attributes, name="skincare-order-events", policy=POLICY) == []


def test_the_dead_letter_queue_keeps_a_message_longest_and_takes_them_from_the_queue_only() -> None:
    queue = template_queue("DeadLetters")

    allowed = json.loads(as_api_attributes(queue).pop("RedriveAllowPolicy"))
    assert as_api_attributes(queue) == {
        **dlq_attributes(POLICY),
        "SqsManagedSseEnabled": "true",
        "RedriveAllowPolicy": json.dumps(allowed),
    }
    assert allowed == {
        "redrivePermission": "byQueue",
        "sourceQueueArns": ["arn:aws:sqs:ap-southeast-3:123456789012:skincare-order-events"],
    }


def test_the_names_are_those_of_the_queue_url_and_its_dead_letter_queue() -> None:
    default_name = settings.ORDER_EVENTS_QUEUE_URL.rsplit("/", 1)[-1]

    assert template_queue("OrderEvents")["QueueName"] == default_name
    assert template_queue("DeadLetters")["QueueName"] == f"{default_name}-dlq"


@pytest.mark.parametrize("queue", ["OrderEvents", "DeadLetters"])
def test_plain_http_is_refused_for_both_queues(queue: str) -> None:
    policy = deployed().resource("queues", "OnlyOverTls")
    (statement,) = policy["PolicyDocument"]["Statement"]

    assert f"queues.{queue}" in policy["Queues"]
    assert f"queues.{queue}.Arn" in statement["Resource"]
    assert statement["Effect"] == "Deny"
    assert statement["Principal"] == "*"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def template_queue(logical_id: str) -> dict[str, Any]:
    return deployed().resource("queues", logical_id)


def as_api_attributes(properties: dict[str, Any]) -> dict[str, str]:
    """The form in which the API of SQS gives attributes: strings, and JSON in them."""

    def text(value: Any) -> str:
        if isinstance(value, dict):
            return json.dumps(
                {key: str(item) if isinstance(item, int) else item for key, item in value.items()}
            )
        return str(value).lower() if isinstance(value, bool) else str(value)

    return {name: text(value) for name, value in properties.items() if name != "QueueName"}
