"""The release before and this one share a database and a queue, as while a deployment goes on.

The database has this release's schema: what a migration breaks for the old code, or the new code
for the old one's rows and messages, breaks here. After a way back all of it is the old code's, and
its API and worker log in as the services' role, of which the old code may know nothing.
"""

import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
import requests

from skincare.local.deadline import wait_until
from skincare.local.mailbox import Mailbox
from skincare.local.outsiders import Buyer, Midtrans
from skincare.local.sqs import free_port
from skincare.local.stack import START_SECONDS, STOP_SECONDS, WORKER, Stack
from skincare.local.supervised import Supervised
from skincare.operations.management.commands import services_role
from skincare.sqs.queues import depth
from tests.integration.operations.test_services_role import of_user
from tests.release.previous import previous_release

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

RELEASES = ("old", "new")
SERVICES_PASSWORD = "a-password-of-the-services"
#: How the release before is started; it is not told of what came after it.
OLD_WEB = (sys.executable, "-m", "gunicorn", "skincare.wsgi", "--workers=1", "--threads=4")
SKU = "CLN-GEL-100"
#: A poll of the worker before may take a message along, which is hidden for 120 seconds then.
WAIT = 180.0


class SideBySide(Stack):
    """The shop with a second API, of the release before, and a worker of either release."""

    def __init__(self, folder: Path, tree: Path) -> None:
        super().__init__(folder)
        self.tree = tree
        self.old_url = f"http://127.0.0.1:{free_port()}"
        self.working = "new"

    def _own_environment(self, endpoint: str) -> dict[str, str]:
        # The release before asks nobody, and does not know what waits for an answer: so the
        # deployment after it does not ask either (ecs/README.md).
        return super()._own_environment(endpoint) | {
            "PROVIDERS_ASKED": "none",
            "SERVICES_PASSWORD": SERVICES_PASSWORD,
        }

    @property
    def services_url(self) -> str:
        """What the templates have API and worker log in with, whatever their release."""
        database = urlsplit(self.database_url).path.removeprefix("/")
        return of_user(self.database_url, services_role.ROLE, SERVICES_PASSWORD, database=database)

    def url(self, release: str) -> str:
        return self.web_url if release == "new" else self.old_url

    def old(self, name: str, command: tuple[str, ...]) -> Supervised:
        return Supervised(
            command,
            name=f"the old {name}",
            env=self.environment | {"DATABASE_URL": self.services_url},
            cwd=self.tree,
            log=self.folder / f"old-{name}.log",
            grace=STOP_SECONDS,
        )

    def old_answers(self) -> bool:
        try:
            return requests.get(f"{self.old_url}/readyz", timeout=5).ok
        except requests.RequestException:
            return False

    def let_work(self, release: str) -> None:
        """End the worker and start one of this release."""
        if release == self.working:
            return
        self.worker.stop()
        if release == "new":
            self.worker = self.start_worker()
        else:
            self._health.unlink(missing_ok=True)
            self.worker = self.old("worker", WORKER)
        self.worker.wait_ready(self.worker_polls, seconds=START_SECONDS)
        self.working = release


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SideBySide]:
    folder = tmp_path_factory.mktemp("side-by-side")
    with SideBySide(folder / "run", previous_release(folder)) as stack:
        address = stack.old_url.removeprefix("http://")
        with stack.old("api", (*OLD_WEB, f"--bind={address}")) as old_api:
            old_api.wait_ready(stack.old_answers, seconds=START_SECONDS)
            yield stack


def check_out(stack: SideBySide, release: str, key: str, email: str) -> requests.Response:
    return requests.post(
        f"{stack.url(release)}/v1/checkout",
        json={
            "items": [{"sku": SKU, "quantity": 1}],
            "email": email,
            "payment_method": "midtrans",
        },
        headers={"Idempotency-Key": key},
        timeout=10,
    )


@pytest.mark.parametrize("worker", RELEASES)
def test_an_order_is_paid_once_whoever_takes_it_is_told_of_the_payment_and_works(
    stack: SideBySide, worker: str
) -> None:
    stack.let_work(worker)
    mailbox = Mailbox(stack.emails)
    orders = {}
    for places, hears in product(RELEASES, RELEASES):
        email = f"{places}.{hears}.{worker}@buyer.example"
        placed = check_out(stack, places, str(uuid4()), email)
        assert placed.status_code == 201, placed.text
        orders[places, hears] = placed.json() | {"email": email}

    for (_, hears), order in orders.items():
        midtrans = Midtrans(stack.url(hears), server_key=stack.midtrans_server_key)
        notification = midtrans.notification(order, "settlement", "200")
        # The gateway repeats itself, and the load balancer sends the repeat to the other release.
        other = Midtrans(
            stack.url("old" if hears == "new" else "new"), server_key=stack.midtrans_server_key
        )
        assert [midtrans.send(notification), other.send(notification)] == [200, 200]

    for path, order in orders.items():
        buyer = Buyer(stack.url("new"))
        wait_until(
            lambda buyer=buyer, order=order: buyer.order(order["order_id"])["status"] == "paid",
            seconds=WAIT,
            what=f"the order that {path} placed and heard of to be paid",
        )
        wait_until(
            lambda order=order: mailbox.count(to=order["email"], kind="receipt") == 1,
            seconds=WAIT,
            what=f"its receipt, {path}",
        )
        wait_until(
            lambda order=order: mailbox.count(to=order["email"], kind="order_confirmation") == 1,
            seconds=WAIT,
            what=f"its confirmation, {path}",
        )
    with stack.connect() as database:
        sold = database.execute(
            "SELECT count(*) FROM orders_stockmovement WHERE order_id = ANY(%s) AND kind = 'sell'",
            [[order["order_id"] for order in orders.values()]],
        ).fetchone()
    assert sold == (len(orders),)
    assert depth(stack.sqs, stack.dlq_url).visible == 0


@pytest.mark.parametrize(("first", "second"), [("old", "new"), ("new", "old")])
def test_a_checkout_that_is_tried_again_at_the_other_release_makes_no_second_order(
    stack: SideBySide, first: str, second: str
) -> None:
    key = str(uuid4())

    made = check_out(stack, first, key, "again@buyer.example")
    again = check_out(stack, second, key, "again@buyer.example")

    assert made.status_code == 201, made.text
    assert again.ok, again.text
    assert again.json()["order_id"] == made.json()["order_id"]


def test_the_migration_of_the_way_back_undoes_nothing_and_knows_no_password(
    stack: SideBySide,
) -> None:
    def state() -> list[object]:
        with stack.connect() as database:
            return [
                database.execute("SELECT app, name FROM django_migrations ORDER BY id").fetchall(),
                # So it is not changed while an image runs that is older than `services_role`.
                database.execute(
                    "SELECT rolpassword FROM pg_authid WHERE rolname = %s", [services_role.ROLE]
                ).fetchall(),
            ]

    before = state()
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "--no-input"],
        env=stack.environment | {"SERVICES_PASSWORD": SERVICES_PASSWORD[::-1]},
        cwd=stack.tree,
        check=True,
        capture_output=True,
    )

    assert before[1], "the newer release made the role"
    assert state() == before
