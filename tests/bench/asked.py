"""What the worker does where it waits for a gateway and a mail server, by its number of processes.

    python -m tests.bench.asked [--orders N] [--processes P …] [--cpus C …]
                                [--gateway-ms 150] [--mail-ms 100]

Each order is confirmed, reported and paid: three events, two with an email and one for which the
gateway is asked. Printed are the events per second from the first claim to the last, and the CPU
of worker and relay for each event; `docs/scaling/README.md` says what follows from them.

With `--cpus 0.5` both together use half a core at the most, as a task on ECS with 512 CPU units may
(Linux, as root).
"""

import argparse
import itertools
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil

from skincare.local.deadline import wait_until
from skincare.local.outsiders import Midtrans
from skincare.local.sqs import CLIENT_ENVIRONMENT
from skincare.local.supervised import Supervised
from tests.bench import load, slow_mail
from tests.bench.report import Table, machine
from tests.bench.server import BenchServer, bench_server
from tests.bench.shop import CLIENTS, SERVER_KEY, Databases, Shop, checkouts
from tests.bench.subject import HERE

EVENTS_PER_ORDER = 3
CGROUPS = Path("/sys/fs/cgroup")
PERIOD_US = 100_000
"""In each of these microseconds the kernel counts anew what a group has used."""


class SlowGateway:
    """Answers each question for a state after a while: settled, as it was notified."""

    def __init__(self, *, seconds: float) -> None:
        self.notified: dict[str, Mapping[str, str]] = {}  # by the transaction's id
        self.asked = 0
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                time.sleep(seconds)
                gateway.asked += 1
                id_ = self.path.split("/")[-2]
                body = json.dumps(gateway.notified[id_]).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "SlowGateway":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def place_and_notify(shop: Shop, server: BenchServer, gateway: SlowGateway, orders: int) -> None:
    """Place the orders, and let each be notified as paid; all of it waits in the outbox."""
    server.set_health("refusing")
    try:
        with shop.web(PROVIDERS_ASKED="midtrans", MIDTRANS_API_URL=gateway.url) as port:
            requests = checkouts(shop.skus(), orders, method="midtrans")
            placed = load.run(port, requests, clients=CLIENTS, wanted=201)
            notify = Midtrans("", server_key=SERVER_KEY)
            posts = []
            for answer in placed.answers:
                order = answer.json()
                reference = f"{order['order_id']}-1"
                told = notify.notification({**order, "order_id": reference}, "settlement", "200")
                gateway.notified[told["transaction_id"]] = told
                posts.append(load.post("/v1/webhooks/midtrans", told))
            load.run(port, posts, clients=CLIENTS, wanted=200)
    finally:
        server.set_health("healthy")


def removed(group: Path) -> bool:
    with suppress(OSError):  # while a process is in it, or waits for its parent to take note
        group.rmdir()
    return not group.exists()


@contextmanager
def limited(cpus: float) -> Iterator[Path | None]:
    """Yield the list of processes of a cgroup that may use so many CPUs; None for no limit (0)."""
    if not cpus:
        yield None
        return
    old = CGROUPS / "cpu"  # cgroups 1 have a tree for each resource
    group = (old if old.is_dir() else CGROUPS) / f"skincare-bench-{os.getpid()}"
    group.mkdir()
    try:
        quota = round(cpus * PERIOD_US)
        if old.is_dir():
            (group / "cpu.cfs_period_us").write_text(f"{PERIOD_US}")
            (group / "cpu.cfs_quota_us").write_text(f"{quota}")
        else:
            (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
        yield group / "cgroup.procs"
    finally:
        wait_until(lambda: removed(group), seconds=10, what="the end of its last process")


@contextmanager
def working(
    shop: Shop, gateway: SlowGateway, mail_port: int, processes: int, cpus: float
) -> Iterator[list[int]]:
    """A worker and a relay on the shop's queue; yields their process ids."""
    more = {
        "PROVIDERS_ASKED": "midtrans",
        "MIDTRANS_API_URL": gateway.url,
        "WORKER_CONCURRENCY": str(processes),
        "EMAIL_URL": f"smtp://127.0.0.1:{mail_port}",
        "RELAY_IN_PROCESS": "false",
    }
    worker = [HERE.celery, "-A", "skincare", "worker"]
    with (
        limited(cpus) as group,
        shop._start("worker", worker, more) as one,
        shop._start("relay", [HERE.python, "manage.py", "relay_outbox"], more) as other,
    ):
        pids = [pid_of(one), pid_of(other)]
        for pid in pids if group else []:
            group.write_text(f"{pid}")  # before they have children, who inherit it
        yield pids


def pid_of(program: Supervised) -> int:
    return program.pid


def cpu_seconds(pids: list[int]) -> float:
    """CPU that these processes and their children have used so far."""
    found = [psutil.Process(pid) for pid in pids]
    everybody = [*found, *(child for one in found for child in one.children(recursive=True))]
    return sum(sum(one.cpu_times()[:2]) for one in everybody)


def measure(
    shop: Shop, gateway: SlowGateway, mail_port: int, processes: int, cpus: float, orders: int
) -> Any:
    """Work it all off; return (events per second, ms of CPU for each)."""
    events = orders * EVENTS_PER_ORDER
    with working(shop, gateway, mail_port, processes, cpus) as pids, shop.connect() as connection:

        def done() -> int:
            rows = connection.execute(
                "SELECT count(*) FROM events_processedevent WHERE status = 'done'"
            )
            return int(rows.fetchone()[0])

        # What it costs to start is not what an event costs.
        wait_until(lambda: done() >= events // 10, seconds=180, what="the first events", every=0.1)
        before, cpu, started = done(), cpu_seconds(pids), time.monotonic()
        wait_until(lambda: done() >= events * 0.95, seconds=600, what="the last events", every=0.1)
        after, cpu = done(), cpu_seconds(pids) - cpu
        seconds = time.monotonic() - started
        wait_until(lambda: done() >= events, seconds=300, what="all events", every=0.1)
    return (after - before) / seconds, cpu / (after - before) * 1000


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--orders", type=int, default=400)
    parser.add_argument("--processes", type=int, nargs="+", default=[5, 10])
    parser.add_argument("--cpus", type=float, nargs="+", default=[0], help="0: no limit")
    parser.add_argument("--gateway-ms", type=int, default=150)
    parser.add_argument("--mail-ms", type=int, default=100)
    options = parser.parse_args()
    os.environ.pop("AWS_PROFILE", None)
    os.environ.update(CLIENT_ENVIRONMENT)
    slow_mail.MAIL_SECONDS = options.mail_ms / 1000
    table = Table(
        f"A gateway of {options.gateway_ms} ms and a mail server of {options.mail_ms} ms, "
        f"{options.orders} orders",
        ["processes", "CPUs", "events/s", "CPU ms/event", "load before"],
    )
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        server = stack.enter_context(bench_server())
        databases = stack.enter_context(Databases())
        gateway = stack.enter_context(SlowGateway(seconds=options.gateway_ms / 1000))
        mail_port = stack.enter_context(slow_mail.slow_mail())
        placed = databases.shop(HERE, server, folder)
        place_and_notify(placed, server, gateway, options.orders)
        for processes, cpus in itertools.product(options.processes, options.cpus):
            busy = f"{os.getloadavg()[0]:.1f}"
            copy = Shop(HERE, server, databases.create(placed.database_url), folder)
            rate, cpu = measure(copy, gateway, mail_port, processes, cpus, options.orders)
            most = f"{cpus}" if cpus else "all"
            table.rows.append([str(processes), most, f"{rate:.1f}", f"{cpu:.1f}", busy])
            print(table.rows[-1], flush=True)
    print(machine("the bench's own"), table.markdown(), sep="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
