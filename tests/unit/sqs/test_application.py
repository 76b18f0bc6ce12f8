"""What `configure` sets up, and what a worker refuses to start with."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery, chain
from celery.app.task import Task as CeleryTask
from celery.concurrency.prefork import TaskPool as Prefork
from celery.concurrency.solo import TaskPool as Solo
from celery.platforms import EX_FAILURE

from skincare.sqs import RetryLater, SQSPolicy, Terminal, Unavailable, configure
from skincare.sqs.policy import OPTION
from skincare.sqs.preflight import Preflight, setting_problems, task_problems, worker_problems
from skincare.sqs.transport import CannotSend, Channel, Refused, Transport

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


def worker(app: Celery, **changes: Any) -> SimpleNamespace:
    plain: dict[str, Any] = {
        "app": app,
        "pool_cls": Prefork,
        "prefetch_multiplier": 1,
        "time_limit": POLICY.hard_time_limit,
        "soft_time_limit": POLICY.soft_time_limit,
        "pool_start_method": "fork",
        "statedb": None,
        "task_events": False,
    }
    return SimpleNamespace(**plain | changes)


@pytest.mark.parametrize(
    ("changes", "options", "says"),
    [
        ({}, {}, ""),
        ({}, {"autoscale": None, "purge": False, "beat": False}, ""),
        ({"pool_cls": Solo}, {}, "not prefork"),
        ({"prefetch_multiplier": 4}, {}, "prefetch multiplier is 4"),
        ({"time_limit": 600}, {}, "leave --time-limit out"),
        ({"time_limit": None}, {}, "leave --time-limit out"),
        ({"soft_time_limit": 80}, {}, "leave --soft-time-limit out"),
        ({}, {"autoscale": [4, 1]}, "leave --autoscale out"),
        ({}, {"purge": True}, "leave --purge out"),
        ({}, {"beat": True}, "leave -B (--beat) out"),
        ({"pool_start_method": "spawn"}, {}, "leave --pool-start-method out"),
        ({"statedb": "/var/celery.db"}, {}, "leave --statedb out"),
        ({"task_events": True}, {}, "leave -E out"),
    ],
)
def test_options_of_the_command_line_that_do_not_fit_are_refused(
    app: Celery, changes: dict[str, Any], options: dict[str, Any], says: str
) -> None:
    problems = worker_problems(worker(app, **changes), options, POLICY)

    assert [says in problem for problem in problems] == [True] * bool(says)


def test_a_worker_is_refused_before_any_step_of_its_start_makes_something(
    app: Celery, capsys: pytest.CaptureFixture[str]
) -> None:
    app.conf.broker_transport_options[OPTION].queues.clear()  # none to ask SQS about

    with pytest.raises(SystemExit) as refused:
        Preflight(worker(app, pool_cls=Solo))  # what Celery does with all steps, before it creates

    assert refused.value.code == EX_FAILURE
    assert "preflight: The pool is not prefork" in capsys.readouterr().err


def test_a_worker_without_any_queue_is_refused(app: Celery) -> None:
    app.amqp.queues.deselect(["orders"])
    assert worker_problems(worker(app), {}, POLICY) == []

    app.amqp.queues.deselect(["orders", "mail"])

    assert worker_problems(worker(app), {}, POLICY) == [
        "No queue is left to consume: leave -X out."
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task_acks_late", False),
        ("task_acks_on_failure", True),
        ("task_time_limit", 600),
        ("task_serializer", "pickle"),
        ("worker_prefetch_multiplier", 4),
        ("worker_consumer", "celery.worker.consumer:Consumer"),
        ("worker_pool", "prefork"),
    ],
)
def test_settings_that_were_changed_afterwards_are_refused(
    app: Celery, name: str, value: object
) -> None:
    assert setting_problems(app, POLICY) == []
    app.conf[name] = value

    [problem] = setting_problems(app, POLICY)

    assert f"The setting {name} is" in problem


def test_a_task_of_another_base_class_is_refused(app: Celery) -> None:
    @app.task(name="stranger", base=CeleryTask, shared=False)
    def stranger() -> None: ...

    [problem] = task_problems(app, app.conf.broker_transport_options[OPTION])

    assert "Task stranger has a base class" in problem


def test_autoretry_leaves_our_outcomes_alone_or_is_refused(app: Celery) -> None:
    @app.task(name="good", autoretry_for=(Exception,), shared=False)
    def good() -> None: ...

    @app.task(name="also good", autoretry_for=(OSError,), dont_autoretry_for=(), shared=False)
    def also_good() -> None: ...

    assert task_problems(app, app.conf.broker_transport_options[OPTION]) == []

    @app.task(name="bad", autoretry_for=(Exception,), dont_autoretry_for=(KeyError,), shared=False)
    def bad() -> None: ...

    [problem] = task_problems(app, app.conf.broker_transport_options[OPTION])
    assert "Task bad has an autoretry_for" in problem


@pytest.mark.parametrize("outcome", [Terminal("no"), RetryLater("later"), Unavailable("it")])
def test_autoretry_raises_our_outcomes_as_they_are(app: Celery, outcome: Exception) -> None:
    @app.task(name="raise", autoretry_for=(Exception,), shared=False)
    def fail() -> None:
        raise outcome

    with pytest.raises(type(outcome)) as raised:
        fail.run()

    assert raised.value is outcome


def test_a_message_is_consumed_for_its_task_only(app: Celery) -> None:
    with app.connection_for_write() as connection:
        channel = connection.default_channel
        with pytest.raises(Refused, match="Remote control and events are off"):
            channel.basic_consume("orders", no_ack=True, callback=print, consumer_tag="1")


@pytest.mark.parametrize(
    "ask",
    [
        lambda app, channel: channel.queue_purge("orders"),
        lambda app, channel: channel._purge("orders"),
        lambda app, channel: app.control.purge(),
        lambda app, channel: app.amqp.queues["orders"](channel).purge(),
        lambda app, channel: app.amqp.queues["orders"](channel).delete(),
        lambda app, channel: channel._delete("orders"),
        lambda app, channel: channel.basic_get("orders"),
        lambda app, channel: channel.basic_get("orders", no_ack=True),
    ],
)
def test_no_spelling_of_a_purge_deletes_anything(
    app: Celery, ask: Callable[[Celery, Channel], object]
) -> None:
    with app.connection_for_write() as connection, pytest.raises(Refused):
        ask(app, connection.default_channel)


@pytest.mark.parametrize(
    "ask",
    [
        lambda app: app.control.inspect().ping(),
        lambda app: app.control.inspect().active(),
        lambda app: app.control.ping(),
        lambda app: app.control.shutdown(),
        lambda app: app.control.revoke("id"),
        lambda app: app.control.pool_grow(2),
        lambda app: app.control.broadcast("anything", reply=True),
    ],
)
def test_remote_control_is_refused_with_what_to_use_instead(
    app: Celery, ask: Callable[[Celery], object]
) -> None:
    with pytest.raises(Refused, match=r"python -m skincare\.sqs\.health"):
        ask(app)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"link": "other"}, "callbacks, chains and chords"),
        ({"link_error": "other"}, "callbacks, chains and chords"),
        ({"chain": ["other"]}, "callbacks, chains and chords"),
        ({"serializer": "pickle"}, "application/json"),
        ({"serializer": "yaml"}, "application/json"),
        ({"compression": "zlib"}, "compressed"),
        ({"task_id": "x" * 256}, "id is not"),
        ({"countdown": 50_000}, "eta is more than 43200"),
        ({"time_limit": 600}, "time limit is longer"),
    ],
)
def test_what_no_worker_would_take_is_refused_to_the_sender(
    app: Celery, options: dict[str, Any], says: str
) -> None:
    @app.task(name="other", shared=False)
    def other() -> None: ...

    parts = {
        name: [other.s()] if value == ["other"] else other.s() if value == "other" else value
        for name, value in options.items()
    }
    for send in (other.apply_async, lambda **o: app.send_task("other", **o)):
        with pytest.raises(CannotSend, match=says):
            send(**parts)


def test_a_chain_is_refused_to_the_sender(app: Celery) -> None:
    @app.task(name="other", shared=False)
    def other() -> None: ...

    with pytest.raises(CannotSend, match="chains"):
        chain(other.si(), other.si()).apply_async()
