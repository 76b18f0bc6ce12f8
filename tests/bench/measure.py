"""Start one contestant on a queue of its own, and measure it."""

import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL
from typing import TYPE_CHECKING
from uuid import uuid4

import psutil  # type: ignore[import-untyped]

from skincare.local.deadline import wait_until
from skincare.local.sqs import CLIENT_ENVIRONMENT, REGION
from skincare.local.supervised import Supervised
from skincare.sqs.client import make_client
from skincare.sqs.queues import create_queue_pair, depth
from tests.bench.contestants import Contestant
from tests.bench.server import BenchServer
from tests.bench.work import Document, Marks
from tests.bench.workers.transport import POLICY

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

START_SECONDS = 60
STALL_SECONDS = 20
"""Without any event done for so long, what is not done yet counts as lost."""
DRAIN_SECONDS = 10


@dataclass(frozen=True)
class Throughput:
    events: int
    per_second: float
    sends: float
    receives: float
    deletes: float
    """Calls of SQS for each event."""
    lost: int
    repeated: int
    left: int
    """Messages still in the queue at the end."""

    @property
    def requests(self) -> float:
        return self.sends + self.receives + self.deletes


@dataclass(frozen=True)
class Latency:
    """Time from before the send to the end of the handler, in milliseconds."""

    events: int
    p50: float
    p99: float
    lost: int


class Worker:
    """One contestant at work on its queue."""

    def __init__(
        self,
        server: BenchServer,
        client: "SQSClient",
        contestant: Contestant,
        handler: str,
        program: Supervised,
        queue_url: str,
        marks: Marks,
    ) -> None:
        self._server = server
        self._client = client
        self._program = program
        self._queue_url = queue_url
        self._queue = queue_url.rsplit("/", 1)[-1]
        self._marks = marks
        self._publisher = contestant.publisher(handler, queue_url, server.endpoint_url)
        self._process = psutil.Process(program.pid)

    def throughput(self, documents: Sequence[Document], *, latency: float) -> Throughput:
        """Work off a backlog of these events. `latency` (seconds) is added to each call.

        A poll that was waiting when the gate closed takes the first few events at once: those are
        not timed.
        """
        server, queue = self._server, self._queue
        before = len(self._marks.done)
        server.close_gate(queue)
        server.set_latency(0)
        server.forget(queue)
        self._publisher.send(documents)
        sends = self._calls("SendMessage")
        self._marks.read()
        early = len(self._marks.done)
        server.set_latency(latency)
        server.forget(queue)
        server.open_gate(queue)
        lost = self._wait_for({document["event_id"] for document in documents}, since=before)
        left = self._wait_until_drained()
        events = len(documents)
        times = [time_ns / 1e9 for time_ns, _ in self._marks.done[early:]]
        self._require(times)
        return Throughput(
            events=events,
            per_second=pace(times),
            sends=sends / events,
            receives=self._calls("ReceiveMessage") / len(times),
            deletes=self._calls("DeleteMessage") / len(times),
            lost=lost,
            repeated=len(self._marks.done) - before - (events - lost),
            left=left,
        )

    def latency(self, documents: Sequence[Document], *, per_second: float) -> Latency:
        """Send these events one by one at this rate."""
        sent = {}
        before = len(self._marks.done)
        start = time.monotonic()
        for number, document in enumerate(documents):
            time.sleep(max(0.0, start + number / per_second - time.monotonic()))
            sent[document["event_id"]] = time.monotonic_ns()
            self._publisher.send([document])
        lost = self._wait_for(set(sent), since=before)
        done: dict[str, int] = {}
        for time_ns, event_id in self._marks.done[before:]:
            done.setdefault(event_id, time_ns)
        waited = [(done[event_id] - sent[event_id]) / 1e6 for event_id in sent if event_id in done]
        self._require(waited)
        cuts = statistics.quantiles(waited, n=100, method="inclusive")
        return Latency(len(documents), p50=cuts[49], p99=cuts[98], lost=lost)

    def warm_up(self, documents: Sequence[Document]) -> None:
        """Let it take messages as they come, and these first: both ends make their clients."""
        self._server.open_gate(self._queue)
        before = len(self._marks.done)
        self._publisher.send(documents)
        self._wait_for({document["event_id"] for document in documents}, since=before)

    def idle_cpu(self, *, seconds: float) -> float:
        """The share of one core that the main process uses with nothing to do, in per cent."""
        before = sum(self._process.cpu_times()[:2])
        time.sleep(seconds)
        return (sum(self._process.cpu_times()[:2]) - before) / seconds * 100

    def memory(self) -> tuple[float, float]:
        """Megabytes that only it has: the main process, and all of its pool together."""
        pool = self._process.children(recursive=True)
        main, *others = [one.memory_full_info().uss / 1e6 for one in (self._process, *pool)]
        return main, sum(others)

    def wait_ready(self) -> None:
        self._program.wait_ready(lambda: self._calls("ReceiveMessage") > 0, seconds=START_SECONDS)

    def _require(self, measured: Sequence[float]) -> None:
        if len(measured) < 2:
            raise RuntimeError(f"{self._program.name} does nothing\n{self._program.log_tail()}")

    def _calls(self, action: str) -> int:
        calls = self._server.calls(self._queue)
        return calls.get(action, 0) + calls.get(f"{action}Batch", 0)

    def _wait_for(self, event_ids: set[str], *, since: int) -> int:
        """Return how many of them were never done. `since`: how many marks were there before."""
        missing = set(event_ids)
        seen = since
        deadline = time.monotonic() + STALL_SECONDS
        while missing and time.monotonic() < deadline:
            time.sleep(0.02)
            self._marks.read()
            if len(self._marks.done) > seen:
                missing.difference_update(event_id for _, event_id in self._marks.done[seen:])
                seen = len(self._marks.done)
                deadline = time.monotonic() + STALL_SECONDS
        return len(missing)

    def _wait_until_drained(self) -> int:
        """Wait for the deletes; return how many messages the queue still holds in the end."""
        try:
            wait_until(
                lambda: not any(depth(self._client, self._queue_url)),
                seconds=DRAIN_SECONDS,
                what="the deletes",
                every=0.1,
            )
        except TimeoutError:
            return sum(depth(self._client, self._queue_url))
        return 0


def pace(times: Sequence[float]) -> float:
    """Events per second: the slope of how many were done over time.

    Stock Celery works in bursts, a second apart. First to last would count one pause too few; the
    slope is right for bursts too.
    """
    ordered = sorted(times)
    return statistics.linear_regression(ordered, range(len(ordered))).slope


@contextmanager
def worker(
    server: BenchServer,
    contestant: Contestant,
    handler: str,
    *,
    folder: Path,
    environment: dict[str, str],
) -> Iterator[Worker]:
    """Start the contestant on a new queue and wait until it polls.

    It is killed at the end: a long poll in flight is not waited for. `folder` gets its log.
    """
    client = make_client(region=REGION, endpoint_url=server.endpoint_url, policy=POLICY)
    name = f"bench-{uuid4().hex[:12]}"
    create_queue_pair(client, name=name, policy=POLICY)
    queue_url = f"{server.endpoint_url}/000000000000/{name}"
    marks_path = folder / f"{name}.marks"
    marks = Marks(marks_path)
    settings = {
        **os.environ,
        **CLIENT_ENVIRONMENT,
        **environment,
        **contestant.environment,
        "BENCH_QUEUE_URL": queue_url,
        "BENCH_ENDPOINT_URL": server.endpoint_url,
        "BENCH_HANDLER": handler,
        "BENCH_MARKS": str(marks_path),
        "LOG_LEVEL": "INFO",
        "ORDER_EVENTS_QUEUE_URL": queue_url,
        "SQS_ENDPOINT_URL": server.endpoint_url,
        "SQS_HEALTH_FILE": str(folder / f"{name}.health.json"),
    }
    if handler == "no-op":
        # The loops do without Django, too; Celery would close its connections around each task.
        settings.pop("DJANGO_SETTINGS_MODULE", None)
    server.close_gate(name)
    with Supervised(
        contestant.command(handler),
        name=contestant.name,
        env=settings,
        cwd=contestant.root,
        log=folder / f"{name}.log",
        stop_signal=SIGKILL,
    ) as program:
        running = Worker(server, client, contestant, handler, program, queue_url, marks)
        running.wait_ready()
        yield running
    marks.close()
