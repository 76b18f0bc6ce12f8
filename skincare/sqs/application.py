"""Everything that a Celery application needs to run on this transport."""

from collections.abc import Mapping
from typing import Any

from celery import Celery, signals
from click import ClickException, Context, Option
from kombu import Exchange, Queue

from skincare.sqs.decoder import BareMessageAdapter
from skincare.sqs.logs import show_fields
from skincare.sqs.policy import OPTION, Observer, SQSPolicy, Wiring, delivery_settings
from skincare.sqs.preflight import Preflight
from skincare.sqs.shutdown import isolate_process


def configure(
    app: Celery,
    *,
    policy: SQSPolicy,
    queues: Mapping[str, str],
    region: str,
    endpoint_url: str | None = None,
    adapter: BareMessageAdapter | None = None,
    observer: Observer | None = None,
) -> None:
    """Set up `app` to consume and send through SQS.

    `queues` maps names to queue URLs; tasks go to the first one unless they are routed. AWS
    credentials come from boto3's default chain. `adapter` makes a task call of a bare JSON
    document. `observer` gets what metrics may count.
    """
    app.task_cls = "skincare.sqs.task:Task"
    app.control_cls = "skincare.sqs.transport:NoRemoteControl"
    app.steps["worker"].add(Preflight)
    app.user_options["worker"].add(
        _InForeground(
            ["--skip-preflight"],
            is_flag=True,
            help="Start even if the queues contradict the settings.",
        )
    )
    signals.worker_process_init.connect(isolate_process)
    signals.after_setup_logger.connect(show_fields)
    wiring = Wiring(
        policy,
        dict(queues),
        region,
        endpoint_url,
        adapter,
        lambda: app.tasks,
        observer or Observer(),
    )
    app.conf.update(
        broker_url="sqs://",
        broker_transport="skincare.sqs.transport:Transport",
        broker_transport_options={
            OPTION: wiring,
            "predefined_queues": {name: {"url": url} for name, url in queues.items()},
            "region": region,
            # The body of a task stays readable in the console, and a third shorter than in base64.
            "sqs_base64_encoding": False,
            "body_encoding": "utf-8",
        },
        broker_connection_retry_on_startup=True,
        task_queues=[Queue(name, Exchange(""), routing_key=name) for name in queues],
        task_default_queue=next(iter(queues)),
        task_create_missing_queues=False,
        task_publish_retry=False,  # the client tries again by itself, within the policy's times
        **delivery_settings(policy),
    )


class _InForeground(Option):
    """An option beside which `--detach` is refused: Celery detaches before it makes a worker, whose
    steps could refuse it.
    """

    def handle_parse_result(
        self, ctx: Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        if opts.get("detach"):
            raise ClickException(
                "In the background nobody would see the worker end, nor what it refused to start "
                "for: leave -D (--detach) out, and let a supervisor start it."
            )
        return super().handle_parse_result(ctx, opts, args)
