"""Notices that the shop's code has changed."""

from collections.abc import Iterable
from pathlib import Path

FOLDERS = ("skincare", "orders", "payments")
KINDS = frozenset({".py", ".html", ".txt", ".css", ".js", ".mo", ".json"})


class CodeWatch:
    """The times of change of all files that the API or the worker reads when it starts."""

    def __init__(self, project: Path, folders: Iterable[str] = FOLDERS) -> None:
        self._project = project
        self._folders = [project / name for name in folders]
        self._seen = self._look()

    def changed(self) -> list[Path]:
        """Which files came, went or changed since the last call, below the project's folder."""
        before, self._seen = self._seen, self._look()
        return sorted(
            file.relative_to(self._project)
            for file in before.keys() | self._seen.keys()
            if before.get(file) != self._seen.get(file)
        )

    def _look(self) -> dict[Path, int]:
        times = {}
        for folder in self._folders:
            for file in folder.rglob("*"):
                if file.suffix in KINDS:
                    try:
                        times[file] = file.stat().st_mtime_ns
                    except FileNotFoundError:  # an editor has just replaced it
                        continue
        return times
