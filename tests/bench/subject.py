"""A checkout of this project whose programs are measured: this one, or one of another commit.

Everything of it is used from outside, as an operator does: its commands, its environment variables,
its HTTP. So the same measurement fits commits that have moved what is inside.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from skincare.local.supervised import ProgramError

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Subject:
    """`name` tells it apart in tables; `root` is its folder, with its environment in .venv."""

    name: str
    root: Path
    programs: Path

    @property
    def python(self) -> str:
        return str(self.programs / "python")

    @property
    def celery(self) -> str:
        return str(self.programs / "celery")

    def manage(self, environment: Mapping[str, str], *arguments: str) -> None:
        """Run one of Django's commands. Raises ProgramError with its output when it fails."""
        done = subprocess.run(
            [self.python, "manage.py", *arguments],
            cwd=self.root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ProgramError(f"manage.py {arguments[0]} failed\n{done.stdout}")


HERE = Subject("here", ROOT, Path(sys.executable).parent)


@contextmanager
def commit(name: str) -> Iterator[Subject]:
    """Check a commit out below var/, install what it pins, and remove it in the end."""
    digest = _git("rev-parse", "--short=12", f"{name}^{{commit}}")
    root = ROOT / "var" / "bench" / digest
    if root.exists():
        _remove(root)
    root.parent.mkdir(parents=True, exist_ok=True)
    _git("worktree", "add", "--detach", "--force", str(root), digest)
    try:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
        subprocess.run(["make", "-s", "setup"], cwd=root, env=environment, check=True)
        yield Subject(digest, root, root / ".venv" / "bin")
    finally:
        _remove(root)


def _remove(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    _git("worktree", "prune")


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()
