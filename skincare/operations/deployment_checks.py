"""What must be right before an API or a worker starts: each check is one line, OK or the fix."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings
from django.core.checks import ERROR, run_checks
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor

from payments.checks import missing_webhook_secrets
from skincare.connections import is_local
from skincare.events.database_sessions import (
    LimitedTransactions,
    limits_in_force,
    limits_of,
    prepare_session,
    socket_options_in_force,
)
from skincare.events.queue_client import open_dead_letter_queue, sqs_client
from skincare.sqs.client import error_code
from skincare.sqs.dead_letters import NoDeadLetterQueue, Unreachable
from skincare.sqs.queues import queue_problems

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

Role = Literal["api", "worker"]
Action = Literal["SendMessage", "ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility"]

#: What a role does with the queue, and with its dead-letter queue (the admin looks through it).
_ON_QUEUE: Final[dict[Role, tuple[Action, ...]]] = {
    "api": ("SendMessage",),
    "worker": ("ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility"),
}
_ON_DLQ: Final[dict[Role, tuple[Action, ...]]] = {
    "api": ("ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility"),
    "worker": (),
}
_DENIED: Final = frozenset({"AccessDenied", "AccessDeniedException", "InvalidClientTokenId"})


_TLS_FIX: Final = "Remove sslmode from DATABASE_URL: it is verify-full then, in production."


@dataclass(frozen=True)
class Finding:
    """One check: `problem` is empty where it is well, else it says what is wrong and the fix.

    `note` says what was found where it is well.
    """

    name: str
    problem: str = ""
    note: str = ""

    @property
    def is_ok(self) -> bool:
        return not self.problem

    def __str__(self) -> str:
        return f"{self.name}: {self.problem or ', '.join(filter(None, ('OK', self.note)))}"


def check_deployment(role: Role) -> Iterator[Finding]:
    """Yield the findings for a role, each as soon as it is known. Changes nothing, anywhere."""
    yield from _settings(role)
    yield from _database(role)
    yield from _queue(role)
    yield from _dead_letter_queue(role)
    if role == "worker":
        yield _health_file()


def _settings(role: Role) -> Iterator[Finding]:
    found = [*run_checks(), *(missing_webhook_secrets() if role == "api" else ())]
    wrong = [check for check in found if check.level >= ERROR and not check.is_silenced()]
    for check in wrong:
        yield Finding(f"settings {check.id}", f"{check.msg} {check.hint or ''}".strip())
    if not wrong:
        yield Finding("settings")


def _database(role: Role) -> Iterator[Finding]:
    try:
        connection.ensure_connection()
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
        limits = _limits(role)
    except DatabaseError as error:
        yield Finding(
            "database",
            f"does not answer ({type(error).__name__}): see DATABASE_URL, its security group, and "
            "whether the server is up",
        )
        return
    yield limits
    if not is_local(connection.settings_dict["HOST"]):
        yield _database_tls()
    names = ", ".join(f"{migration.app_label} {migration.name}" for migration, _ in missing)
    fix = f"not applied: {names}. Run manage.py migrate."
    yield Finding("migrations", fix if missing else "")


def _limits(role: Role) -> Finding:
    """Read back which limits are really in force, in a transaction of the role and outside."""
    prepare_session(connection=connection, service=role)
    wanted = limits_of(role)
    outside = limits_in_force(wanted)
    with transaction.atomic():
        inside = limits_in_force(wanted)
    wrong = dict.fromkeys(
        f"{name} is {found[name]}, not {wanted[name]}"
        for found in (inside, outside)
        for name in wanted
        if found[name] != wanted[name]
    )
    options = connection.settings_dict["OPTIONS"]
    deaf = [
        f"{name} is {value}, not {options[name]}"
        for name, value in socket_options_in_force().items()
        if name in options and value != int(options[name])
    ]
    if deaf:
        return Finding(
            "database",
            f"{'; '.join(deaf)}: a server that went away without a word would be waited for. See "
            "what DATABASE_URL asks for, and whether the kernel takes it",
        )
    if wrong:
        return Finding(
            "database",
            f"{'; '.join(wrong)}: what is between us and PostgreSQL loses the settings of a "
            "transaction. Use a pooler in transaction or session mode",
        )
    is_pooled = any(isinstance(one, LimitedTransactions) for one in connection.execute_wrappers)
    note = "through a pooler: the limits are set in each transaction" if is_pooled else ""
    return Finding("database", note=note)


def _database_tls() -> Finding:
    """Say what this very connection negotiated, not what the settings ask for."""
    name, host = "database TLS", connection.settings_dict["HOST"]
    is_checked = connection.settings_dict["OPTIONS"].get("sslmode") == "verify-full"
    if not connection.connection.pgconn.ssl_in_use:
        return Finding(name, f"none: passwords and orders go to {host} in the clear. {_TLS_FIX}")
    if not is_checked:
        return Finding(name, f"encrypted, but the certificate of {host} is unchecked. {_TLS_FIX}")
    with connection.cursor() as cursor:
        cursor.execute("SELECT ssl, version, cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        is_tls, version, cipher = cursor.fetchone() or (False, None, None)
    # A pooler ends our connection and has one of its own to the server.
    seen = f"{version} {cipher}" if is_tls else "PostgreSQL itself sees none, behind a pooler"
    return Finding(name, note=f"the certificate is {host}'s; {seen}")


def _queue(role: Role) -> Iterator[Finding]:
    url = settings.ORDER_EVENTS_QUEUE_URL
    client = sqs_client()
    name = f"queue {url.rsplit('/', 1)[-1]}"
    try:
        problems = queue_problems(client, url, settings.SQS_POLICY)
    except (ClientError, BotoCoreError, OSError) as error:
        yield Finding(
            name,
            f"its attributes cannot be read ({_code(error)}): see ORDER_EVENTS_QUEUE_URL, "
            "AWS_REGION, the network, and that the role has sqs:GetQueueAttributes",
        )
        return
    yield Finding(name, " ".join(problems))
    for action in _ON_QUEUE[role]:
        yield _permission(client, url, name, action)


def _dead_letter_queue(role: Role) -> Iterator[Finding]:
    try:
        queue = open_dead_letter_queue()
    except (Unreachable, NoDeadLetterQueue):
        return  # the check of the queue reports it
    name = f"dead-letter queue {queue.name}"
    try:
        queue.depth()
    except Unreachable as error:
        if _ON_DLQ[role]:
            yield Finding(name, f"{error}: see that it exists, and sqs:GetQueueAttributes on it")
        return
    for action in _ON_DLQ[role]:
        yield _permission(sqs_client(), queue.url, name, action)


def _permission(client: "SQSClient", url: str, name: str, action: Action) -> Finding:
    """Ask whether a call is denied with one that SQS cannot carry out.

    A batch without entries, a receive of 11 messages, an invalid receipt handle: no message is
    touched. What is known then is "not denied".
    """
    name = f"{name}, sqs:{action}"
    try:
        match action:
            case "SendMessage":
                client.send_message_batch(QueueUrl=url, Entries=[])
            case "ReceiveMessage":
                client.receive_message(QueueUrl=url, MaxNumberOfMessages=11)
            case "DeleteMessage":
                client.delete_message(QueueUrl=url, ReceiptHandle="preflight")
            case "ChangeMessageVisibility":
                client.change_message_visibility(
                    QueueUrl=url, ReceiptHandle="preflight", VisibilityTimeout=0
                )
    except ClientError as error:
        if _code(error).rsplit(".", 1)[-1] in _DENIED:
            return Finding(name, f"denied ({_code(error)}): allow it in the task role's policy")
        return Finding(name)
    except (BotoCoreError, OSError) as error:
        return Finding(name, f"no answer ({_code(error)}): try again")
    return Finding(name)


def _health_file() -> Finding:
    folder = Path(settings.SQS_POLICY.health_file).parent
    if folder.is_dir() and os.access(folder, os.W_OK):
        return Finding("health file")
    return Finding(
        "health file",
        f"{folder} cannot be written: mount a volume there, or set SQS_HEALTH_FILE",
    )


def _code(error: Exception) -> str:
    if isinstance(error, ClientError):
        return error_code(error) or "unknown"
    return type(error).__name__
