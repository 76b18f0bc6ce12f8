"""The README's examples, in a project that has this folder and what it says to install."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import skincare.sqs
from skincare.local.deadline import wait_until
from skincare.local.supervised import Supervised
from skincare.sqs import SQSPolicy
from skincare.sqs.client import make_client
from tests.integration.sqs.queue_pair import Queue

FOLDER = Path(skincare.sqs.__file__).parent
README = (FOLDER / "README.md").read_text()
REQUIREMENTS = ["celery[sqs]==5.7.0", "kombu==5.7.0", "pycurl", "boto3"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def queue(sqs_server: str) -> Queue:
    client = make_client(region="eu-west-1", endpoint_url=sqs_server, policy=SQSPolicy())
    return Queue.create(client, "readme-orders", SQSPolicy())


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, queue: Queue) -> Path:
    """A folder with the examples, `skincare/sqs` alone, and an environment of its own."""
    folder = tmp_path_factory.mktemp("project")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(FOLDER, folder / "skincare" / "sqs", ignore=ignored)
    shop, batch = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (folder / "shop.py").write_text(
        shop.replace("https://sqs.eu-west-1.amazonaws.com/123456789012/orders", queue.url)
    )
    (folder / "send.py").write_text(f"{batch}\nassert batch.failures == {{}}, batch.failures\n")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    pip = [folder / "venv" / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *REQUIREMENTS], check=True, timeout=240)
    return folder


@pytest.fixture
def environment(project: Path, sqs_server: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_ENDPOINT_URL_SQS": sqs_server,
        "TMPDIR": str(project),
    }


@pytest.fixture
def log(project: Path, environment: dict[str, str]) -> Iterator[Path]:
    """The log of the README's worker, which runs as long as the test."""
    file = project / "log"
    command = [str(project / "venv/bin/celery"), "-A", "shop", "worker", "--loglevel=INFO"]
    with Supervised(
        command, name="the worker", env=environment, log=file, cwd=project, grace=10
    ) as worker:
        worker.wait_ready(lambda: " ready." in file.read_text(), seconds=30)
        yield file


def test_the_requirements_are_those_that_the_readme_names() -> None:
    named = README[README.index("install") : README.index("it imports nothing else")]

    assert re.findall(r"`([^`]+)`", named) == REQUIREMENTS


def test_the_examples_run_and_the_promised_fields_are_in_the_log(
    project: Path, environment: dict[str, str], log: Path, queue: Queue
) -> None:
    python = project / "venv" / "bin" / "python"
    send = "import sys; from shop import ship; ship.delay(sys.argv[1])"
    subprocess.run([python, "send.py"], cwd=project, env=environment, check=True, timeout=60)
    for order in ("closed", "no such order"):
        subprocess.run(
            [python, "-c", send, order], cwd=project, env=environment, check=True, timeout=60
        )

    wait_until(lambda: queue.wait_dead(1), seconds=30, what="the order that does not exist")
    wait_until(
        lambda: re.search(r"message_released .*retry_in=600.* reason='warehouse", log.read_text()),
        seconds=30,
        what="the fields in the log",
    )
    wait_until(
        lambda: log.read_text().count("succeeded in") == 25, seconds=30, what="25 orders shipped"
    )
    health = subprocess.run(
        [python, "-m", "skincare.sqs.health"], cwd=project, env=environment, check=False, timeout=60
    )
    assert health.returncode == 0
