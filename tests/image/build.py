"""Build the image, on a base image from a registry or, where none answers, of Debian packages."""

import configparser
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.image.daemon import run_docker

PROJECT = Path(__file__).parents[2]
TAG = "skincare:test"
TITLE = "org.opencontainers.image.title=skincare-order-events"
DEFAULT_BASE = "python:3.13-slim"
DEBIAN_BASE = "python-from-debian:trixie"
PULL_SECONDS = 120.0
BUILD_SECONDS = 900.0


class NoImage(Exception):
    """The image, or its base image, cannot be made; the message is the program's own."""


def base_image(host: str) -> str:
    """BASE_IMAGE of the environment, else the Dockerfile's own, else one made of Debian packages.

    Raises NoImage.
    """
    if chosen := os.environ.get("BASE_IMAGE"):
        return chosen
    for image in (DEFAULT_BASE, DEBIAN_BASE):
        if run_docker(host, "image", "inspect", image).returncode == 0:
            return image
    if run_docker(host, "pull", DEFAULT_BASE, seconds=PULL_SECONDS).returncode == 0:
        return DEFAULT_BASE
    print(f"\nNo registry answers: making {DEBIAN_BASE} with debootstrap, once", flush=True)
    made = subprocess.run(
        [PROJECT / "tests" / "image" / "debian-base", DEBIAN_BASE],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "DOCKER_HOST": host},
    )
    if made.returncode:
        raise NoImage(f"no base image: no registry answers, and without one:\n{made.stderr}")
    return DEBIAN_BASE


def build_image(host: str, base: str) -> str:
    """Build docker/Dockerfile; return the image's tag. Raises NoImage."""
    with tempfile.TemporaryDirectory() as folder:
        built = run_docker(
            host,
            *("build", "--network=host", "--tag", TAG),
            *("--build-arg", f"BASE_IMAGE={base}", *pip_secrets(Path(folder))),
            *("--file", PROJECT / "docker" / "Dockerfile", PROJECT),
            seconds=BUILD_SECONDS,
        )
    if built.returncode:
        raise NoImage(built.stderr)
    # The one that had the tag before.
    run_docker(host, "image", "prune", "--force", "--filter", f"label={TITLE}")
    return TAG


def pip_secrets(folder: Path) -> Sequence[str]:
    """The options that give the build this machine's package index and certificate authorities."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], check=True, capture_output=True, text=True
    ).stdout
    found = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        found[name.rsplit(".", 1)[-1]] = value.strip("'")
    kept = {
        name: found[name]
        for name in ("index-url", "extra-index-url", "trusted-host", "proxy")
        if name in found and "file:" not in found[name]
    }
    options = []
    bundle = found.get("cert") or os.environ.get("REQUESTS_CA_BUNDLE")
    if bundle:
        kept["cert"] = "/run/secrets/ca_bundle"
        options += ["--secret", f"id=ca_bundle,src={bundle}"]
    if kept:
        configuration = configparser.RawConfigParser()
        configuration["global"] = kept
        with (folder / "pip.conf").open("w") as file:
            configuration.write(file)
        options += ["--secret", f"id=pip_conf,src={folder / 'pip.conf'}"]
    return options
