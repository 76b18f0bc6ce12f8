"""What `configure` sets up, and what a worker refuses to start with."""

from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery
from celery.concurrency.prefork import TaskPool as Prefork
from celery.concurrency.solo import TaskPool as Solo

from skincare.sqs import SQSPolicy, configure
from skincare.sqs.policy import OPTION
from skincare.sqs.preflight import task_problems, worker_problems
from skincare.sqs.transport import Channel, Transport

POLICY = SQSPolicy(concurrency=3)


@pytest.fixture
def app() -> Celery:
    app = Celery("shop", set_as_current=False)
    queues = {"orders": "http://sqs/1/orders", "mail": "http://sqs/1/mail"}
    configure(app, policy=POLICY, queues=queues, region="eu-west-1", endpoint_url="http://sqs")
    return app


def test_nothing_is_acknowledged_before_it_succeeded(app: Celery) -> None:
    assert app.conf.task_acks_late is True
    assert app.conf.task_acks_on_failure is False
    assert app.conf.task_acks_on_timeout is False
    assert app.conf.task_reject_on_worker_lost is True


def test_the_numbers_are_the_policys(app: Celery) -> None:
    assert app.conf.task_time_limit == POLICY.hard_time_limit
    assert app.conf.task_soft_time_limit == POLICY.soft_time_limit
    assert app.conf.worker_concurrency == 3
    assert app.conf.worker_prefetch_multiplier == 1


def test_tasks_go_to_the_first_queue(app: Celery) -> None:
    assert app.conf.task_default_queue == "orders"
    assert sorted(app.amqp.queues) == ["mail", "orders"]


def test_the_transport_is_ours_and_connects_to_nothing(app: Celery) -> None:
    with app.connection_for_write() as connection:
        assert isinstance(connection.transport, Transport)
        assert isinstance(connection.default_channel, Channel)


def test_the_worker_can_skip_its_checks(app: Celery) -> None:
    assert ["--skip-preflight"] in [option.opts for option in app.user_options["worker"]]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"time_limit": 91}, "time limit above hard_time_limit"),
        ({"soft_time_limit": 91}, "time limit above hard_time_limit"),
        ({"rate_limit": "1/s"}, "rate_limit"),
    ],
)
def test_a_task_that_asks_for_the_impossible_is_refused(
    app: Celery, options: dict[str, Any], says: str
) -> None:
    @app.task(name="ask", shared=False, **options)
    def ask() -> None: ...

    problems = task_problems(app, app.conf.broker_transport_options[OPTION])

    assert len(problems) == 1
    assert "Task ask" in problems[0]
    assert says in problems[0]


def test_the_wiring_has_no_problem_with_plain_tasks(app: Celery) -> None:
    assert task_problems(app, app.conf.broker_transport_options[OPTION]) == []


@pytest.mark.parametrize(
    ("pool", "multiplier", "says"),
    [(Prefork, 1, ""), (Solo, 1, "not prefork"), (Prefork, 4, "prefetch multiplier is 4")],
)
def test_a_worker_is_told_which_options_do_not_fit(pool: type, multiplier: int, says: str) -> None:
    worker = SimpleNamespace(pool_cls=pool, prefetch_multiplier=multiplier)

    assert [says in problem for problem in worker_problems(worker)] == [True] * bool(says)


def test_a_message_is_consumed_for_its_task_only(app: Celery) -> None:
    with app.connection_for_write() as connection:
        channel = connection.default_channel
        with pytest.raises(ValueError, match="when its task succeeded"):
            channel.basic_consume("orders", no_ack=True, callback=print, consumer_tag="1")
