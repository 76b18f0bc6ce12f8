"""The simulators, seen by the gateways' own clients: they find what they find at the gateways."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from skincare.local.gateways.simulator import Simulator
from tests.integration.gateways.conftest import SECRET_KEY, SERVER_KEY

pytestmark = pytest.mark.slow

CLIENTS = Path(__file__).parent / "clients"
PYTHON = Path(sys.prefix) / "gateway-clients" / "bin" / "python"
NODE_FOLDER = Path(sys.prefix) / "gateway-clients" / "node"
SECONDS = 120

MIDTRANS = {
    "created": ["redirect_url", "token"],
    "before_a_method": 404,
    "pending": "pending",
    "duplicate": 400,
    "cancelled": "cancel",
    "cancelled_again": 412,
    "expired": "expire",
    "expired_status": "expire",
    "paid": "settlement",
    "refunded": ["partial_refund", "50000.00"],
    "notification": "partial_refund",
}
XENDIT = {
    "created": "PENDING",
    "url": True,
    "asked": "PENDING",
    "listed": 2,
    "unknown": [404, "INVOICE_NOT_FOUND_ERROR"],
    "expired": "EXPIRED",
    "expired_told": "EXPIRED",
    "paid_told": ["PAID", 150000, "OVO"],
    "paid": "PAID",
    "paid_cannot_expire": [404, "INVOICE_NOT_FOUND_ERROR"],
    "refund": 50000,
    "refund_told": ["refund.succeeded", "SUCCEEDED"],
    "refund_asked": 50000,
    "refunds": 1,
}


@pytest.fixture(scope="module")
def node() -> str:
    """Install the locked clients for Node once; returns the program."""
    program = shutil.which("node")
    if program is None or shutil.which("npm") is None:
        pytest.skip("needs Node and npm")
    lock = "package-lock.json"
    installed = NODE_FOLDER / lock
    if not installed.exists() or installed.read_bytes() != (CLIENTS / lock).read_bytes():
        shutil.rmtree(NODE_FOLDER, ignore_errors=True)
        NODE_FOLDER.mkdir(parents=True)
        shutil.copy(CLIENTS / "package.json", NODE_FOLDER)
        shutil.copy(CLIENTS / lock, NODE_FOLDER)
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(command, cwd=NODE_FOLDER, check=True, timeout=SECONDS)
    return program


def run(command: list[str], folder: Path) -> Any:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("script", "key", "expected"),
    [("midtrans_client.py", SERVER_KEY, MIDTRANS), ("xendit_client.py", SECRET_KEY, XENDIT)],
)
def test_the_official_python_client_finds_what_it_knows(
    script: str, key: str, expected: dict[str, Any], gateways: Simulator
) -> None:
    if not PYTHON.exists():
        pytest.fail(f"{PYTHON} is missing: run `make .venv/gateway-clients/.ready`")
    assert run([str(PYTHON), str(CLIENTS / script), gateways.url, key], CLIENTS) == expected


@pytest.mark.parametrize(
    ("script", "key", "expected"),
    [("midtrans_client.mjs", SERVER_KEY, MIDTRANS), ("xendit_client.mjs", SECRET_KEY, XENDIT)],
)
def test_the_official_node_client_finds_what_it_knows(
    script: str, key: str, expected: dict[str, Any], node: str, gateways: Simulator
) -> None:
    assert run([node, str(CLIENTS / script), gateways.url, key], NODE_FOLDER) == expected
