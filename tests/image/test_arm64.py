"""The image on ARM64, as on Graviton. On another machine qemu runs each program of it.

Under qemu a start takes minutes where it takes seconds elsewhere, so there are few tests, which
wait long.
"""

import platform
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import docker
import pytest

from tests.image.build import ARM64, PROJECT, NoImage, build_arm64_image
from tests.image.conftest import Run
from tests.image.containers import PRODUCTION

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
