"""What is in the image, and what is not."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import docker
import pytest
from packaging.requirements import Requirement

from tests.image.build import PROJECT
from tests.image.conftest import Run
from tests.image.containers import LOCKED_DOWN

if TYPE_CHECKING:
    from docker.models.images import Image

pytestmark = [pytest.mark.image, pytest.mark.timeout(1800)]

Sh = Callable[[str], list[str]]


@pytest.fixture
def sh(docker_client: docker.DockerClient, image: "Image") -> Sh:
    """Run a shell command in a container of the image and return the lines that it writes."""

    def run(script: str) -> list[str]:
        output: bytes = docker_client.containers.run(
            image, ["-c", script], entrypoint="/bin/sh", remove=True, **LOCKED_DOWN
        )
        return output.decode().splitlines()

    return run


def test_it_runs_as_a_user_without_rights_and_says_what_it_is(image: "Image") -> None:
    config = image.attrs["Config"]

    assert config["User"] == "10001:10001"
    assert config["Entrypoint"] == ["/app/entrypoint.sh"]
    assert config["ExposedPorts"] == {"8000/tcp": {}}
    assert config["Labels"]["org.opencontainers.image.title"] == "skincare-order-events"
    assert config["Labels"]["org.opencontainers.image.licenses"] == "MIT"


def test_it_holds_the_pinned_packages_and_no_others(sh: Sh) -> None:
    [python] = sh("python -c 'import platform; print(platform.python_version())'")
    text = (PROJECT / "requirements/production.txt").read_text()
    lines = re.findall(r"^([\w.-]+==[^\\\n]+)", text, re.MULTILINE)
    pinned = [
        one
        for one in map(Requirement, lines)
        if one.marker is None or one.marker.evaluate({"python_full_version": python})
    ]

    installed = sh(
        "python -c 'from importlib.metadata import distributions\n"
        'for found in distributions(): print(found.name.lower().replace("_", "-"), found.version)\''
    )

    assert sorted(installed) == sorted(
        f"{one.name} {str(one.specifier).removeprefix('==')}" for one in pinned
    )


def test_it_holds_no_compiler_no_tests_and_nothing_of_the_build(sh: Sh) -> None:
    assert sh("command -v gcc cc c++ ld make git || true") == []
    assert (
        sh("ls /build /run/secrets /app/tests /app/skincare/local /app/.git 2>/dev/null || true")
        == []
    )
    assert sh("find /opt/venv /app -name '*.po' -o -name '.env*' -o -name pip.conf") == []


def test_its_files_belong_to_root_and_nobody_else_can_write_them(sh: Sh) -> None:
    assert sh("find /app /opt/venv ! -user root") == []
    assert sh("find /app /opt/venv ! -type l -perm /022") == []


def test_a_volume_mounted_over_tmp_can_be_written_as_on_fargate(
    docker_client: docker.DockerClient, image: "Image"
) -> None:
    options = {name: value for name, value in LOCKED_DOWN.items() if name != "tmpfs"}

    output = docker_client.containers.run(
        image,
        ["-c", "touch /tmp/it && stat -c %a /tmp"],
        entrypoint="/bin/sh",
        remove=True,
        **options,
    )

    assert output == b"1777\n"


def test_its_bytecode_is_compiled(sh: Sh) -> None:
    assert sh(
        "test -d /app/orders/__pycache__ && ls /opt/venv/lib/*/site-packages/django/__pycache__"
    )


def test_its_static_files_have_a_hash_in_their_name_and_a_compressed_copy(sh: Sh) -> None:
    files = [name for name in sh("cd /app/staticfiles && find . -type f") if "manifest" not in name]

    styles = [name for name in files if re.fullmatch(r"\./admin/css/base\.[0-9a-f]{12}\.css", name)]
    assert len(styles) == 1
    assert f"{styles[0]}.gz" in files
    assert "./admin/css/base.css" not in files


@pytest.mark.parametrize("command", ["", "--help", "python"])
def test_it_refuses_what_it_does_not_know_with_a_list_of_what_it_does(
    command: str, run: Run
) -> None:
    status, said = run(command)

    assert status == 64
    assert "api, worker, relay, migrate, or manage COMMAND" in said


@pytest.mark.parametrize("command", ["api", "worker", "relay", "migrate"])
def test_it_refuses_to_start_without_its_secrets(command: str, run: Run) -> None:
    status, said = run(command)

    assert status != 0
    assert "SECRET_KEY is empty: set it" in said
