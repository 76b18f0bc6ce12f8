"""Packages of npm, in folders of their own inside the environment, as their lock files pin them."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).parent
INSTALL_SECONDS = 300
LOCKED = ("package.json", "package-lock.json")


class Packages:
    """What `folder` beside this file describes; `program` is its script."""

    def __init__(self, folder: str, *, program: str) -> None:
        self._source = SOURCE / folder
        self.folder = Path(sys.prefix) / f"bench-{folder}"
        self.program = program

    def install(self) -> bool:
        """Install versions and hashes as locked, unless they are; False where npm cannot."""
        if all(self._is_installed(name) for name in self._files):
            return True
        npm = shutil.which("npm")
        if npm is None:
            print("npm is not installed.", file=sys.stderr)
            return False
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for name in LOCKED:
            shutil.copy(self._source / name, self.folder)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        try:
            subprocess.run(command, cwd=self.folder, check=True, timeout=INSTALL_SECONDS)
        except (subprocess.SubprocessError, OSError) as error:
            print(f"{self._source.name} cannot be installed: {error}", file=sys.stderr)
            return False
        shutil.copy(self._source / self.program, self.folder)  # last: it says that all is there
        return True

    @property
    def _files(self) -> Sequence[str]:
        return (*LOCKED, self.program)

    def _is_installed(self, name: str) -> bool:
        installed = self.folder / name
        return installed.exists() and installed.read_bytes() == (self._source / name).read_bytes()


SERVER = Packages("server", program="server.mjs")
SQS_CONSUMER = Packages("sqs-consumer", program="consumer.mjs")
NODE = SERVER.folder / "node_modules" / ".bin" / "node"
"""A Node that is new enough for both comes with the server."""
