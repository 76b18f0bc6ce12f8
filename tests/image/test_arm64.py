"""The image on ARM64, as on Graviton. On another machine qemu runs each program of it.

Under qemu a start takes minutes where it takes seconds elsewhere, so there are few tests, which
wait long.
"""

import platform
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import docker
import pytest
from pytest_celery import CeleryTestSetup
from pytest_docker_tools import container

from skincare.local.deadline import wait_until
from tests.acceptance.conftest import Shop
from tests.image.build import ARM64, PROJECT, NoImage, build_arm64_image
from tests.image.conftest import Numbers, Run, StartApi, worker_options
from tests.image.containers import PRODUCTION, WorkerContainer

if TYPE_CHECKING:
    from docker.models.images import Image

pytestmark = [pytest.mark.image, pytest.mark.timeout(7200)]

EMULATED_SECONDS = 900
EMULATOR = Path("/proc/sys/fs/binfmt_misc/qemu-aarch64")
HOW_TO_REGISTER = (
    "as root, with Debian's qemu-user-static: mount -t binfmt_misc binfmt_misc "
    f"{EMULATOR.parent} && cat /usr/lib/binfmt.d/qemu-aarch64.conf > {EMULATOR.parent}/register"
)
PLATFORMS = [f"manylinux_2_{minor}_aarch64" for minor in (17, 28, 31, 34)]

# Emulated code takes memory of its own.
default_worker_container = container(
    **{
        **worker_options,
        "timeout": EMULATED_SECONDS,
        "mem_limit": "2g",
        "memswap_limit": "2g",
    }
)


@pytest.fixture
def start_seconds() -> float:
    return EMULATED_SECONDS


@pytest.fixture(scope="module")
def image(host: str, base: str, image: "Image", docker_client: docker.DockerClient) -> "Image":
    """The image for ARM64, made of this machine's and the wheels for ARM64."""
    if platform.machine() != "aarch64" and not EMULATOR.exists():
        pytest.skip(f"ARM64 WAS NOT TRIED: this kernel runs none of it; {HOW_TO_REGISTER}")
    try:
        tag = build_arm64_image(host, base)
    except NoImage as reason:
        pytest.fail(str(reason))
    return docker_client.images.get(tag)


def test_every_pinned_package_has_a_wheel_for_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--dest", tmp_path),
            *("--require-hashes", "--no-deps", "--only-binary=:all:", "--python-version=3.13"),
            *(f"--platform={name}" for name in PLATFORMS),
            *("--requirement", PROJECT / "requirements" / "production.txt"),
        ],
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("*_aarch64.whl"))) >= 5  # those with machine code


def test_it_is_for_arm64(image: "Image", run: Run) -> None:
    assert f"{image.attrs['Os']}/{image.attrs['Architecture']}" == ARM64
    assert run("-m", entrypoint="uname") == (0, "aarch64\n")


def test_its_settings_and_celery_load(run: Run) -> None:
    database = {"DATABASE_URL": "postgresql://shop:secret@db.example/shop"}

    checked = run(
        *("manage", "check", "--deploy", "--fail-level", "INFO"),
        environment={**PRODUCTION, "AWS_REGION": "ap-southeast-3", **database},
    )
    version = run("-A", "skincare", "--version", entrypoint="celery", environment=PRODUCTION)

    assert checked == (0, "System check identified no issues (0 silenced).\n")
    assert version[0] == 0
    assert version[1].startswith("5.7.0")


def test_a_checkout_is_paid_once_and_both_end_well(
    celery_setup: CeleryTestSetup,
    shop: Shop,
    start_api: StartApi,
    default_worker_container: WorkerContainer,
    numbers: Numbers,
) -> None:
    # gunicorn would replace a process that takes longer than usual to load the application.
    api = start_api({"GUNICORN_CMD_ARGS": f"--timeout={EMULATED_SECONDS}"})
    # By its name: qemu shows a process another start of its own than the others see, by which the
    # command finds the files of workers that run.
    named = "python -m skincare.sqs.health ${TMPDIR:-/tmp}/skincare-worker-health.*.json"
    assert default_worker_container.run("sh", "-c", named) == (0, "")

    answer = api.post(
        "/v1/checkout",
        {
            "items": [{"sku": "CLN-GEL-100", "quantity": 1}],
            "email": "buyer@mail.example",
            "payment_method": "sandbox",
        },
        **{"Idempotency-Key": uuid4().hex},
    )

    assert answer.status_code == 201, answer.text
    wait_until(
        lambda: len(shop.emails()) == 2,
        seconds=EMULATED_SECONDS,
        what="confirmation and receipt",
        every=0.5,
    )
    shop.wait_for_empty_queue(seconds=EMULATED_SECONDS)
    order = api.get(f"/v1/orders/{answer.json()['order_id']}")
    assert order.json()["status"] == "paid"
    assert shop.in_dlq() == []
    assert default_worker_container.stop(seconds=numbers.policy.stop_timeout) == 0
    assert api.stop() == 0
