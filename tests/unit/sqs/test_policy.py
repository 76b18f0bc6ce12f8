"""What contradicts what among the numbers of the deployment."""

from dataclasses import replace

import pytest

from skincare.sqs import SQSPolicy


def test_the_default_numbers_agree() -> None:
    assert SQSPolicy().problems() == []


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"soft_time_limit": 90}, "Lower soft_time_limit"),
        ({"soft_time_limit": 0}, "Lower soft_time_limit"),
        ({"visibility_timeout": 100}, "Raise visibility_timeout"),
        ({"visibility_timeout": 43_201}, "between 1 and 43200"),
        ({"stop_timeout": 99}, "Raise stop_timeout"),
        ({"poll_timeout_margin": 105}, "Raise stop_timeout"),
        ({"stop_timeout": 121}, "Lower stop_timeout"),
        ({"long_poll": 21}, "between 0 and 20"),
        ({"poll_timeout_margin": 0}, "Raise poll_timeout_margin"),
        ({"max_receive_count": 1}, "between 2 and 1000"),
        ({"max_receive_count": 6}, "one step for each"),
        ({"backoff": (10, 30, 60, 43_201)}, "outside 0..43200"),
        ({"backoff_jitter": 1.0}, "backoff_jitter"),
        ({"outage_backoff": (0, 15)}, "outage_backoff"),
        ({"outage_backoff": (2, 1)}, "outage_backoff"),
        ({"concurrency": 0}, "concurrency"),
        ({"attempts": 0}, "attempts"),
        ({"connect_timeout": 0}, "connect_timeout"),
        ({"delete_linger": 2}, "delete_linger"),
    ],
)
def test_each_contradiction_is_one_sentence_with_its_remedy(
    changes: dict[str, float], says: str
) -> None:
    problems = replace(SQSPolicy(), **changes).problems()  # type: ignore[arg-type]

    assert len(problems) == 1
    assert says in problems[0]


def test_a_poll_is_given_up_some_time_after_its_long_poll() -> None:
    assert SQSPolicy(long_poll=15, poll_timeout_margin=10).poll_timeout == 25


def test_the_health_file_has_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQS_HEALTH_FILE", "/run/health.json")

    assert SQSPolicy().health_file == "/run/health.json"
    assert SQSPolicy(health_file="/tmp/mine").health_file == "/tmp/mine"  # noqa: S108


def test_a_policy_without_any_backoff_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="backoff is empty"):
        SQSPolicy(backoff=())
