"""What `make run` keeps from one start to the next: keys, the admin's password, ports.

So sessions, signatures and the lines in a developer's other terminals stay right. `make clean`
forgets it, and the database with it.
"""

import json
import secrets
from pathlib import Path

from skincare.local.sqs import free_port


class Kept:
    """A JSON file that only its owner can read. Each name is made when it is first asked for."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._values: dict[str, str | int] = json.loads(file.read_text()) if file.exists() else {}

    def secret(self, name: str, *, size: int = 16) -> str:
        """The secret of this name: `size` random bytes, as letters and digits."""
        if name not in self._values:
            self._save(name, secrets.token_urlsafe(size))
        return str(self._values[name])

    def port(self, name: str, *, preferred: int = 0) -> int:
        """A free port of 127.0.0.1: last time's, at first `preferred`; any if that is taken."""
        port = free_port(preferred=int(self._values.get(f"{name} port", preferred)))
        self._save(f"{name} port", port)
        return port

    def _save(self, name: str, value: str | int) -> None:
        self._values[name] = value
        half = self._file.with_suffix(".new")
        half.touch(mode=0o600)
        half.write_text(json.dumps(self._values, indent=2))
        half.rename(self._file)
