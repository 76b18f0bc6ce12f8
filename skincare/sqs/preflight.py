"""What a worker checks before it starts."""

import logging
import sys
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from celery import Celery, bootsteps
from celery.concurrency.prefork import TaskPool
from celery.platforms import EX_FAILURE

from skincare.sqs.client import error_code, make_client
from skincare.sqs.policy import OPTION, Wiring
from skincare.sqs.queues import queue_problems

log = logging.getLogger(__name__)

#: A definite no to GetQueueAttributes, as opposed to a network or a server that fails for a while.
_DEFINITE = range(400, 429)


class Preflight(bootsteps.Step):
    """Refuses to start a worker whose settings, tasks or queues contradict each other."""

    def __init__(self, worker: Any, skip_preflight: bool = False, **options: Any) -> None:
        super().__init__(worker, **options)
        self._skip = skip_preflight

    def create(self, worker: Any) -> None:
        """Exit with a sentence for each problem, before any process is forked."""
        wiring: Wiring = worker.app.conf.broker_transport_options[OPTION]
        found = worker_problems(worker) + task_problems(worker.app, wiring)
        found += wiring.policy.problems() + _queue_problems(wiring)
        for problem in found:
            log.error("preflight_failed", extra={"problem": problem})
            print(f"preflight: {problem}", file=sys.stderr)
        if found and not self._skip:
            print("preflight: --skip-preflight starts the worker anyway", file=sys.stderr)
            raise SystemExit(EX_FAILURE)


def worker_problems(worker: Any) -> list[str]:
    """Return a sentence for each option of the worker that this transport cannot serve."""
    problems = []
    if not (isinstance(worker.pool_cls, type) and issubclass(worker.pool_cls, TaskPool)):
        problems.append("The pool is not prefork, so time limits do not work: leave --pool out.")
    if worker.prefetch_multiplier != 1:
        problems.append(
            f"The prefetch multiplier is {worker.prefetch_multiplier}: messages would wait behind "
            "others while their visibility runs out. Leave --prefetch-multiplier out."
        )
    return problems


def task_problems(app: Celery, wiring: Wiring) -> list[str]:
    """Return a sentence for each task that asks for what this transport cannot do."""
    limit = wiring.policy.hard_time_limit
    problems = []
    for name, task in sorted(app.tasks.items()):
        if (task.time_limit or 0) > limit or (task.soft_time_limit or 0) > limit:
            problems.append(
                f"Task {name} has a time limit above hard_time_limit ({limit} s): its message "
                "would be given to another worker while it runs. Lower it."
            )
        if task.rate_limit:
            problems.append(
                f"Task {name} has a rate_limit: its messages would wait in memory until they are "
                "visible to others. Remove it, or raise RetryLater in the task."
            )
    return problems


def _queue_problems(wiring: Wiring) -> list[str]:
    client = make_client(
        region=wiring.region, endpoint_url=wiring.endpoint_url, policy=wiring.policy
    )
    problems = []
    for url in wiring.queues.values():
        try:
            problems += queue_problems(client, url, wiring.policy)
        except ClientError as error:
            code = error_code(error)
            if error.response["ResponseMetadata"]["HTTPStatusCode"] in _DEFINITE:
                problems.append(
                    f"The attributes of queue {url} cannot be read ({code}): see that the queue "
                    "exists and that the role has sqs:GetQueueAttributes on it."
                )
            else:
                log.warning("preflight_skipped", extra={"queue_url": url, "code": code})
        except (BotoCoreError, OSError, ValueError) as error:
            # An outage is no reason not to start: polling goes on until it is over.
            code = type(error).__name__
            log.warning("preflight_skipped", extra={"queue_url": url, "code": code})
    return problems
