"""What `make run` keeps from one start to the next."""

import stat
from pathlib import Path

import pytest

from skincare.local import unprivileged
from skincare.local.kept import Kept
from skincare.local.unprivileged import User, kept_folder


def test_a_secret_is_made_once_and_stays(tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    first = Kept(file)
    key = first.secret("key")

    assert key != first.secret("another key")
    assert Kept(file).secret("key") == key
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_port_stays_as_long_as_nobody_takes_it(tmp_path: Path) -> None:
    file = tmp_path / "kept.json"

    port = Kept(file).port("SQS")

    assert Kept(file).port("SQS") == port


def test_a_folder_of_ours_is_private_and_stays(tmp_path: Path) -> None:
    folder = kept_folder(tmp_path / "run" / "database", None)

    assert folder == tmp_path / "run" / "database"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert kept_folder(tmp_path / "run" / "database", None) == folder


def test_what_the_servers_user_cannot_reach_is_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As below /root, whose mode is 0700."""
    owner = tmp_path.stat()
    user = User("postgres", owner.st_uid, owner.st_gid)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(User, "can_read_below", lambda *_: False)
    monkeypatch.setattr(unprivileged, "REACHABLE_BY_ALL", elsewhere)

    folder = kept_folder(tmp_path / "run" / "database", user)

    assert folder.parent == elsewhere
    assert (tmp_path / "run" / "database").resolve() == folder
    assert kept_folder(tmp_path / "run" / "database", user) == folder
