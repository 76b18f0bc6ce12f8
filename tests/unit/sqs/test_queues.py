"""Which attributes of a queue contradict the policy."""

import json

import pytest

from skincare.sqs import SQSPolicy
from skincare.sqs.queues import attribute_problems, dlq_attributes, queue_attributes

POLICY = SQSPolicy()
WANTED = queue_attributes(POLICY, dlq_arn="arn:aws:sqs:r:1:q-dlq")
GOOD = {str(name): value for name, value in WANTED.items()}


def test_the_attributes_that_the_policy_asks_for_are_in_order() -> None:
    assert attribute_problems(GOOD, name="q", policy=POLICY) == []


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"RedrivePolicy": ""}, "no RedrivePolicy"),
        ({"RedrivePolicy": "{"}, "cannot be read"),
        ({"RedrivePolicy": "[]"}, "cannot be read"),
        ({"RedrivePolicy": '{"maxReceiveCount": 5}'}, "cannot be read"),
        (
            {"RedrivePolicy": json.dumps({"maxReceiveCount": 5, "deadLetterTargetArn": ""})},
            "without deadLetterTargetArn",
        ),
        (
            {"RedrivePolicy": json.dumps({"maxReceiveCount": 3, "deadLetterTargetArn": "arn"})},
            "maxReceiveCount 3, the policy says 5",
        ),
        ({"VisibilityTimeout": "30"}, "VisibilityTimeout 30, the policy says 120"),
        ({"FifoQueue": "true"}, "use a standard queue"),
    ],
)
def test_each_contradiction_is_one_sentence(changes: dict[str, str], says: str) -> None:
    problems = attribute_problems({**GOOD, **changes}, name="q", policy=POLICY)

    assert len(problems) == 1
    assert says in problems[0]


def test_the_dead_letter_queue_keeps_messages_longest() -> None:
    assert int(dlq_attributes(POLICY)["MessageRetentionPeriod"]) == 14 * 24 * 3600
    assert int(GOOD["MessageRetentionPeriod"]) < 14 * 24 * 3600
