"""Whom to run a server as that refuses root, and which folders that user can reach.

PostgreSQL refuses to run as root, as containers and CI often do. Then it runs as an account that
the system already has. Folders that are not ours keep their modes: what that user cannot reach is
copied to where it can.
"""

import hashlib
import os
import pwd
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

ACCOUNTS = ("postgres", "nobody")
"""Accounts without rights that Linux distributions and macOS ship, the fitting one first."""

REACHABLE_BY_ALL = Path("/var/tmp")  # noqa: S108 what is found there is checked


@dataclass(frozen=True)
class User:
    name: str
    uid: int
    gid: int

    def can_read_below(self, folder: Path) -> bool:
        """Whether this user, without supplementary groups, can enter and list `folder`."""
        resolved = folder.resolve()
        enter = all(self._has(stat.S_IXUSR, parent) for parent in (resolved, *resolved.parents))
        return enter and self._has(stat.S_IRUSR, resolved)

    def _has(self, owner_bit: int, path: Path) -> bool:
        status = path.stat()
        if status.st_uid == self.uid:
            wanted = owner_bit
        elif status.st_gid == self.gid:
            wanted = owner_bit >> 3
        else:
            wanted = owner_bit >> 6
        return bool(status.st_mode & wanted)


def unprivileged_user() -> User | None:
    """The account to run as when we are root, else None: as ourselves.

    Raises LookupError when root finds none of ACCOUNTS.
    """
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    for name in ACCOUNTS:
        if name in known:
            return User(name, known[name].pw_uid, known[name].pw_gid)
    raise LookupError(
        "PostgreSQL refuses to run as root, and there is no account to run it as "
        f"({' or '.join(ACCOUNTS)}): be another user, or set DATABASE_URL to a server you have."
    )


def private_folder(prefix: str, user: User | None) -> Path:
    """A new folder with mode 0700 that belongs to `user` (None: to us) and that it can reach.

    Raises LookupError when the user can reach neither TMPDIR nor /tmp nor /var/tmp.
    """
    for parent in (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")):  # noqa: S108 mkdtemp
        if user is None or (parent.is_dir() and user.can_read_below(parent)):
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
            if user:
                os.chown(folder, user.uid, user.gid)
            return folder
    raise LookupError(f"user {user.name if user else ''} can reach no folder for temporary files")


def kept_folder(path: Path, user: User | None) -> Path:
    """The folder `path` with mode 0700, which belongs to `user` (None: to us); made if need be.

    Where that user cannot reach it, as below /root, it is a link to a folder in /var/tmp. Raises
    LookupError when that one is somebody else's.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = path.resolve()
    if user and not user.can_read_below(path.parent):
        digest = hashlib.sha256(str(path.parent.resolve() / path.name).encode()).hexdigest()
        folder = REACHABLE_BY_ALL / f"skincare-{digest[:16]}"
    owner = user.uid if user else os.geteuid()
    if not folder.exists():
        folder.mkdir(mode=0o700)
        if user:
            os.chown(folder, user.uid, user.gid)
    if folder.is_symlink() or folder.stat().st_uid != owner:
        raise LookupError(f"{folder} belongs to somebody else: remove it")
    if folder != path.resolve():
        path.symlink_to(folder)
    return folder
