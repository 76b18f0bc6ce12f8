"""The task definitions start the image as it is built: commands, port, folders, time to end."""

import re
import runpy
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from ecs.template import deployed

ROOT = Path(settings.BASE_DIR)
DOCKERFILE = (ROOT / "docker" / "Dockerfile").read_text()
ENTRYPOINT = (ROOT / "docker" / "entrypoint.sh").read_text()
README = (ROOT / "ecs" / "README.md").read_text()
GUNICORN = runpy.run_path(str(ROOT / "gunicorn.conf.py"))
TASKS = {"api": "api", "worker": "worker", "migration": "migrate"}


def container(task: str) -> dict[str, Any]:
    (only,) = deployed().resource(task, "TaskDefinition")["ContainerDefinitions"]
    return dict(only)


@pytest.mark.parametrize(("task", "command"), TASKS.items())
def test_the_command_is_one_of_the_images(task: str, command: str) -> None:
    assert container(task)["Command"] == [command]
    assert re.search(rf"^\s*{command}\)", ENTRYPOINT, re.MULTILINE)


def test_what_a_shell_reads_ends_its_lines_with_lf_on_windows_too(tmp_path: Path) -> None:
    files = [
        *(path for path in (ROOT / "ecs").iterdir() if path.is_file()),
        ROOT / "docker" / "entrypoint.sh",
        ROOT / ".gitattributes",
    ]
    for path in files:
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())

    def git(*arguments: str) -> None:
        as_on_windows = ["-c", "core.autocrlf=true", "-c", "core.eol=crlf"]
        subprocess.run(
            ["git", "-C", tmp_path, *as_on_windows, *arguments], check=True, capture_output=True
        )

    git("init")
    git("add", ".")
    for path in files:
        (tmp_path / path.relative_to(ROOT)).unlink()
    git("checkout-index", "--all")

    for path in files:
        assert b"\r" not in (tmp_path / path.relative_to(ROOT)).read_bytes(), path.name


def test_the_image_listens_where_the_load_balancer_asks() -> None:
    (port,) = container("api")["PortMappings"]

    assert f"EXPOSE {port['ContainerPort']}" in DOCKERFILE
    assert f"PORT={port['ContainerPort']}" in DOCKERFILE


@pytest.mark.parametrize("task", TASKS)
def test_a_mounted_folder_is_a_volume_of_the_image(task: str) -> None:
    # Else Fargate mounts it as root's, with mode 0755, and the image's user cannot write there.
    # https://docs.aws.amazon.com/AmazonECS/latest/developerguide/bind-mounts.html
    for mount in container(task)["MountPoints"]:
        assert f"\nVOLUME {mount['ContainerPath']}\n" in DOCKERFILE


def test_the_api_has_time_to_answer_what_it_has_taken() -> None:
    assert container("api")["StopTimeout"] > GUNICORN["graceful_timeout"]


def test_the_load_balancer_hangs_up_before_the_api_does() -> None:
    # The load balancer's idle timeout is 60 s unless somebody changed it.
    # https://docs.aws.amazon.com/elasticloadbalancing/latest/application/application-load-balancers.html
    assert GUNICORN["keepalive"] > 60
    # Whoever brings a load balancer is told.
    assert f"idle timeout is less than {GUNICORN['keepalive']} s " in README
