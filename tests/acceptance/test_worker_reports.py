"""A real worker tells that it lives; one that hangs is found."""

import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from django.db import connection
from pytest_celery import CeleryTestSetup

from skincare.local.deadline import wait_until
from skincare.operations import situation
from skincare.operations.models import WorkerReport
from skincare.operations.worker_reports import INTERVAL
from tests.acceptance.conftest import Shop, Stage

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(240),
    pytest.mark.usefixtures("no_other_worker"),
]


def sentences_about_workers() -> list[str]:
    connection.close()  # each look is another page's
    return [str(one) for one in situation.situation().warnings if "Worker " in str(one)]


def test_a_stage_leaves_no_word_of_a_worker_that_was_killed(
    set_up: Callable[..., AbstractContextManager[Stage]], tmp_path: Path, db: None
) -> None:
    with set_up(tmp_path, 1) as stage:
        [worker] = stage.cluster.nodes
        reports = WorkerReport.objects.filter(pid=worker.container.pid)
        wait_until(reports.exists, seconds=60, what="the first report", every=0.2)
        worker.container.kill()

    assert not WorkerReport.objects.exists()


@pytest.mark.workers(1)
def test_a_worker_that_hangs_is_found_and_its_return_too(
    celery_setup: CeleryTestSetup, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(situation, "SILENT_SECONDS", INTERVAL + 2)
    wait_until(WorkerReport.objects.exists, seconds=60, what="the first report", every=0.2)
    report = WorkerReport.objects.get()
    assert report.trouble == ""
    assert sentences_about_workers() == []

    os.kill(report.pid, signal.SIGSTOP)
    try:
        wait_until(
            lambda: any("it hangs, or died" in one for one in sentences_about_workers()),
            seconds=60,
            what="the page to say that it hangs",
            every=0.5,
        )
    finally:
        os.kill(report.pid, signal.SIGCONT)

    wait_until(
        lambda: sentences_about_workers() == [], seconds=60, what="it to be well again", every=0.5
    )
    os.kill(report.pid, signal.SIGTERM)
    wait_until(
        lambda: not WorkerReport.objects.exists(), seconds=60, what="its row to go", every=0.5
    )
