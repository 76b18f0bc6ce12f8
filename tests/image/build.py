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
DOCKERFILE = PROJECT / "docker" / "Dockerfile"
ARM64_DOCKERFILE = PROJECT / "tests" / "image" / "arm64" / "Dockerfile"
STAND_INS = PROJECT / "tests" / "image" / "stand-ins" / "Dockerfile"
DEFAULT_BASE = "python:3.13-slim"
DEBIAN_BASE = "python-from-debian:trixie"
DEBIAN_BASE_FILE = 'FROM scratch\nADD root.tar /\nCMD ["python"]\n'
ARM64 = "linux/arm64"
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
    return debian_base(host)


def arm64_base_image(host: str, base: str) -> str:
    """The base image for ARM64 that goes with the one for this machine. Raises NoImage."""
    return debian_base(host, "arm64") if base == DEBIAN_BASE else base  # a registry has both


def debian_base(host: str, architecture: str = "") -> str:
    """The base image of Debian packages, made where it is not there yet. Raises NoImage.

    architecture: Debian's name; default: this machine's.
    """
    tag = f"{DEBIAN_BASE}-{architecture}" if architecture else DEBIAN_BASE
    if run_docker(host, "image", "inspect", tag).returncode == 0:
        return tag
    print(f"\nNo registry answers: making {tag} with debootstrap, once", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        root = subprocess.run(
            [PROJECT / "tests/image/debian-base", f"{folder}/root.tar", architecture],
            check=False,
            capture_output=True,
            text=True,
        )
        if root.returncode:
            raise NoImage(f"no base image: no registry answers, and without one:\n{root.stderr}")
        Path(folder, "Dockerfile").write_text(DEBIAN_BASE_FILE)
        platform = ("--platform", f"linux/{architecture}") if architecture else ()
        made = run_docker(host, "build", *platform, "--tag", tag, folder, seconds=BUILD_SECONDS)
    if made.returncode:
        raise NoImage(made.stderr)
    return tag


def build_image(host: str, base: str) -> str:
    """Build docker/Dockerfile for this machine; return the image's tag. Raises NoImage."""
    return _build(host, base, DOCKERFILE, tag=TAG)


def build_arm64_image(host: str, base: str) -> str:
    """Make the image for ARM64 of this machine's; return its tag. Raises NoImage."""
    return _build(
        host,
        base,
        ARM64_DOCKERFILE,
        *("--platform", ARM64, "--build-arg", f"IMAGE={TAG}"),
        *("--build-arg", f"ARM64_BASE_IMAGE={arm64_base_image(host, base)}"),
        tag=f"{TAG}-arm64",
    )


def build_stand_in(host: str, base: str, name: str) -> str:
    """Build what stands for the image of this service of docker/compose.yaml. Raises NoImage."""
    return _build(host, base, STAND_INS, "--target", name, tag=f"skincare-stand-in:{name}")


def _build(host: str, base: str, file: Path, *options: str, tag: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        built = run_docker(
            host,
            *("build", "--network=host", "--tag", tag, *options),
            *("--build-arg", f"BASE_IMAGE={base}"),
            *pip_secrets(Path(folder)),
            *("--file", file, PROJECT),
            seconds=BUILD_SECONDS,
        )
    if built.returncode:
        raise NoImage(built.stderr)
    # The one that had the tag before.
    run_docker(host, "image", "prune", "--force", "--filter", f"label={TITLE}")
    return tag


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
