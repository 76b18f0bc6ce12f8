"""PostgreSQL, the email provider and the queue: given as a URL or in parts, checked at boot.

In a URL, user name and password are percent-encoded. In parts (`DATABASE_HOST`, `DATABASE_USER`, …)
they are taken as they are, so a generated password goes in without any encoding. What is wrong is
told by the variable's name and the fix, never by the value.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.errors import HeaderParseError, ObsoleteHeaderDefect
from email.headerregistry import AddressHeader, Group, HeaderRegistry
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import psycopg
from django.core.exceptions import ImproperlyConfigured
from psycopg.conninfo import make_conninfo

from skincare.environment import HOST_NAME, Environment

_ENCODE: Final = (
    "percent-encode the special characters of user name and password (/ is %2F, # is %23, ? is "
    "%3F, @ is %40, % is %25)"
)
_POSTGRESQL: Final = frozenset({"postgres", "postgresql", "psql", "pgsql"})
#: What belongs before the question mark.
_NOT_OPTIONS: Final = frozenset(
    {"user", "password", "passfile", "host", "hostaddr", "port", "dbname", "service"}
)
_SSL_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_LOCAL: Final = frozenset({"127.0.0.1", "::1", "localhost"})
#: scheme → how the connection to the email provider is encrypted.
_SMTP: Final[Mapping[str, str]] = {
    "smtp": "none",
    "smtp+tls": "starttls",
    "smtps": "starttls",
    "submission": "starttls",
    "smtp+ssl": "tls",
}
_HTTP: Final = ("http", "https")
_SMTP_PORTS: Final[Mapping[str, int]] = {"none": 25, "starttls": 587, "tls": 465}
_NOT_SENDING: Final[Mapping[str, str]] = {
    "consolemail": "console",
    "filemail": "filebased",
    "memorymail": "locmem",
    "dummymail": "dummy",
}
#: RFC 5321, 4.5.3.1.1, in characters.
_LONGEST_LOCAL_PART: Final = 64
#: RFC 5322, 3.2.3, in ASCII.
_DOT_ATOM: Final = re.compile(r"[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*", re.ASCII)
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html
_QUEUE_PATH: Final = re.compile(r"/[0-9]{12}/[A-Za-z0-9_-]{1,80}")
# https://docs.aws.amazon.com/general/latest/gr/sqs-service.html and its VPC endpoints
_QUEUE_HOST: Final = re.compile(
    r"(?:[a-z0-9-]+\.)?sqs(?:-fips)?\.([a-z0-9-]+)(?:\.vpce)?\.(?:amazonaws\.com(?:\.cn)?|api\.aws)"
    r"|([a-z0-9-]+)\.queue\.amazonaws\.com"
)


#: What `database` and `email` read: the URL, or its parts.
DATABASE_PARTS: Final = (
    *("DATABASE_HOST", "DATABASE_PORT", "DATABASE_NAME", "DATABASE_USER", "DATABASE_PASSWORD"),
    "DATABASE_CA_BUNDLE",
)
EMAIL_PARTS: Final = ("EMAIL_HOST", "EMAIL_PORT", "EMAIL_USER", "EMAIL_PASSWORD", "EMAIL_SECURITY")


@dataclass(frozen=True)
class _Server:
    """What a URL or the parts say. `path` and `options` are of the URL alone."""

    scheme: str
    host: str
    port: int | None
    user: str
    password: str
    path: str = ""
    options: tuple[tuple[str, str], ...] = ()


def is_host(text: str) -> bool:
    """Whether this is a host name, an IP address, or the folder of a socket."""
    try:
        ip_address(text)
    except ValueError:
        return bool(HOST_NAME.fullmatch(text)) or text.startswith("/")
    return True


def is_local(host: str) -> bool:
    """Whether the host is this machine: a loopback address, or the folder of a socket."""
    return not host or host in _LOCAL or host.startswith("/")


def database(
    environment: Environment, *, default_url: str, ca_bundle: Path, in_production: bool
) -> dict[str, Any]:
    """Return Django's settings of the database, from DATABASE_URL or from DATABASE_HOST and so on.

    In production the server's certificate is verified against `ca_bundle` (or what the URL or
    DATABASE_CA_BUNDLE names), unless the server is on this machine. Raises ImproperlyConfigured.
    """
    server = _server(environment, "DATABASE", default_url)
    if server.scheme not in _POSTGRESQL:
        raise ImproperlyConfigured(
            "DATABASE_URL is not a PostgreSQL URL: the claim, the outbox and the search need it. "
            "Use postgresql://user:password@host:5432/name."
        )
    options: dict[str, Any] = dict(server.options)
    # The folder of a socket does not fit before the path.
    host = options.pop("host") if _is_folder(server, options) else server.host
    name = server.path.removeprefix("/") or environment.text("DATABASE_NAME")
    source = "DATABASE_URL" if not environment.is_set("DATABASE_HOST") else "DATABASE_NAME"
    if not name or "/" in name or "\0" in name:
        raise ImproperlyConfigured(
            f"{source} names no database: it ends with its name, as in "
            "postgresql://user:password@host:5432/name (or set DATABASE_NAME with DATABASE_HOST)."
        )
    if in_production and not server.user:
        raise ImproperlyConfigured(
            "DATABASE_URL or DATABASE_USER names no user: the database would be asked as whoever "
            "runs the process."
        )
    if in_production and not is_local(host):
        _verify_server(options, environment, ca_bundle)
    options.setdefault("connect_timeout", "5")  # seconds
    _check_options(options)
    _check_login("DATABASE", server)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": server.user,
        "PASSWORD": server.password,
        "HOST": host,
        "PORT": server.port or "",
        "OPTIONS": options,
    }


def _is_folder(server: _Server, options: Mapping[str, Any]) -> bool:
    """Whether the option `host` names the folder of a socket, where the URL names no host."""
    return not server.host and str(options.get("host", "")).startswith("/")


def _check_options(options: Mapping[str, Any]) -> None:
    """Raise ImproperlyConfigured for what PostgreSQL's client would refuse at each connection."""
    try:
        make_conninfo(**options)
    except psycopg.Error:
        are_known = False
    else:
        are_known = not _NOT_OPTIONS & set(options)
    if (
        not are_known
        or options.get("sslmode", "prefer") not in _SSL_MODES
        or not re.fullmatch(r"[1-9][0-9]{0,3}", str(options["connect_timeout"]))  # 0: for ever
        or any("\0" in str(value) for value in options.values())
    ):
        raise ImproperlyConfigured(
            "DATABASE_URL has an option after ? that PostgreSQL's client would not take there: see "
            "https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS"
        )


def _check_login(prefix: str, server: _Server, *, ascii_only: bool = False) -> None:
    """Raise ImproperlyConfigured for a login that the protocol cannot carry."""
    for text in (server.user, server.password):
        try:
            text.encode("ascii" if ascii_only else "utf-8")
        except UnicodeEncodeError:
            is_sendable = False
        else:
            is_sendable = "\0" not in text
        if not is_sendable:
            kind = "ASCII" if ascii_only else "UTF-8"
            raise ImproperlyConfigured(
                f"{prefix}_URL, or {prefix}_USER and {prefix}_PASSWORD, hold a character that "
                f"cannot be sent: use {kind} without NUL."
            )


def _verify_server(options: dict[str, Any], environment: Environment, ca_bundle: Path) -> None:
    if options.setdefault("sslmode", "verify-full") != "verify-full":
        raise ImproperlyConfigured(
            "DATABASE_URL sets an sslmode that does not check whose certificate it is: remove "
            "sslmode from it (it is verify-full then)."
        )
    given = environment.text("DATABASE_CA_BUNDLE")
    bundle = options.setdefault("sslrootcert", given or str(ca_bundle))
    if bundle != "system" and not _holds_certificates(Path(bundle)):
        source = "DATABASE_CA_BUNDLE" if bundle == given else "sslrootcert of DATABASE_URL"
        raise ImproperlyConfigured(
            f"{source} is not a file of certificates that can be read: set it to those that the "
            "database's own is checked against, in PEM form."
        )


def _holds_certificates(file: Path) -> bool:
    try:
        return b"-----BEGIN CERTIFICATE-----" in file.read_bytes()
    except (OSError, ValueError):
        return False


def email(environment: Environment, *, default_url: str, in_production: bool) -> dict[str, Any]:
    """Return Django's EMAIL_* settings, from EMAIL_URL or from EMAIL_HOST and so on.

    Raises ImproperlyConfigured, in production also for what sends nothing or sends in the clear.
    """
    server = _server(environment, "EMAIL", default_url)
    if server.scheme in _NOT_SENDING and not in_production:
        backend = f"django.core.mail.backends.{_NOT_SENDING[server.scheme]}.EmailBackend"
        # One slash or two: a path is absolute either way.
        path = {"EMAIL_FILE_PATH": "/" + server.path.lstrip("/")}
        return {"EMAIL_BACKEND": backend} | (path if server.scheme == "filemail" else {})
    security = environment.choice(
        "EMAIL_SECURITY", ("starttls", "tls", "none"), default=_SMTP.get(server.scheme, "none")
    )
    if server.scheme not in _SMTP or (in_production and security == "none"):
        raise ImproperlyConfigured(
            "EMAIL_URL sends no emails, or sends them unencrypted: use "
            "smtp+tls://user:password@host:587 (STARTTLS) or smtp+ssl://user:password@host:465, or "
            "EMAIL_HOST with EMAIL_SECURITY=starttls or tls."
        )
    if not server.host or bool(server.user) != bool(server.password):
        raise ImproperlyConfigured(
            "EMAIL_URL has no host, or only one of user name and password: write it as "
            f"smtp+tls://user:password@host:587 and {_ENCODE}, or set EMAIL_HOST, EMAIL_USER and "
            "EMAIL_PASSWORD."
        )
    _check_login("EMAIL", server, ascii_only=True)  # smtplib's, RFC 4954
    return {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": server.host,
        "EMAIL_PORT": server.port or _SMTP_PORTS[security],
        "EMAIL_HOST_USER": server.user,
        "EMAIL_HOST_PASSWORD": server.password,
        "EMAIL_USE_TLS": security == "starttls",
        "EMAIL_USE_SSL": security == "tls",
    }


def check_sender(name: str, value: str) -> None:
    """Raise ImproperlyConfigured for a sender that no email could be sent from."""
    try:
        header = HeaderRegistry()("from", value)
        groups: Sequence[Group] = header.groups if isinstance(header, AddressHeader) else ()
        addresses = [one for group in groups for one in group.addresses]
        is_one = len(addresses) == 1 and _is_mailable(addresses[0].addr_spec)
        is_one = is_one and all(group.display_name is None for group in groups)
        is_one = is_one and all(isinstance(d, ObsoleteHeaderDefect) for d in header.defects)
    except (HeaderParseError, ValueError, IndexError):
        is_one = False
    if not is_one:
        raise ImproperlyConfigured(
            f"{name} is not one address: write it as Toko Skincare <orders@shop.example.com>, and "
            'put a name with a comma or a dot between quotes, "Toko, Skincare" <…>.'
        )


def _is_mailable(address: str) -> bool:
    local_part, _, domain = address.rpartition("@")
    is_local_part = len(local_part) <= _LONGEST_LOCAL_PART and _DOT_ATOM.fullmatch(local_part)
    return bool(is_local_part and "." in domain and HOST_NAME.fullmatch(domain))


def check_queue_url(name: str, url: str, *, region: str, at_aws: bool) -> None:
    """Raise ImproperlyConfigured for what is not the URL of a standard queue.

    `at_aws`: AWS holds it, in `region`; else any host may.
    """
    form = "https://sqs.REGION.amazonaws.com/ACCOUNT/QUEUE, as `aws sqs get-queue-url` tells it"
    parts = _split(name, url, form)
    if parts.path.endswith(".fifo"):
        raise ImproperlyConfigured(
            f"{name} is a FIFO queue: its messages cannot wait one by one. Use a standard queue."
        )
    if "@" in parts.netloc:
        raise ImproperlyConfigured(
            f"{name} holds a login: remove it, the role of the task is what SQS asks for."
        )
    if not _QUEUE_PATH.fullmatch(parts.path) or parts.query or parts.scheme not in _HTTP:
        raise ImproperlyConfigured(f"{name} is not the URL of a queue: set it to {form}.")
    if not at_aws:
        return
    host = _QUEUE_HOST.fullmatch(parts.hostname or "")
    if parts.scheme != "https" or host is None or parts.port not in (None, 443):
        raise ImproperlyConfigured(f"{name} is not the URL of a queue at AWS: set it to {form}.")
    if region not in host.groups():
        raise ImproperlyConfigured(
            f"{name} is in another region than AWS_REGION: one of the two is wrong."
        )


def check_endpoint_url(name: str, url: str) -> None:
    """Raise ImproperlyConfigured for what is not the base URL of a server."""
    form = "one like http://127.0.0.1:4566"
    parts = _split(name, url, form)
    if (
        parts.scheme not in _HTTP
        or not parts.hostname
        or "@" in parts.netloc
        or parts.path not in ("", "/")
    ):
        raise ImproperlyConfigured(f"{name} is not the URL of a server: set it to {form}.")


def check_sentry_dsn(name: str, dsn: str) -> None:
    """Raise ImproperlyConfigured for what is not a DSN as Sentry shows it."""
    form = "in the form https://KEY@HOST/PROJECT, or remove it"
    if not re.fullmatch(r"https?://[^/\s:@]+(:[^/\s@]+)?@[^/\s@]+(/[^\s?#]*)?/[0-9]+", dsn):
        raise ImproperlyConfigured(
            f"{name} is not a DSN: copy it from the project's settings in Sentry, {form}."
        )
    _split(name, dsn, form)


def _server(environment: Environment, prefix: str, default_url: str) -> _Server:
    """Return what {prefix}_URL says, or {prefix}_HOST, _PORT, _USER, _PASSWORD and so on."""
    if not environment.is_set(f"{prefix}_HOST"):
        return _from_url(
            f"{prefix}_URL",
            environment.required(f"{prefix}_URL", default=default_url),
            parts=[f"{prefix}_{part}" for part in ("HOST", "USER", "PASSWORD")],
        )
    if environment.is_set(f"{prefix}_URL"):
        raise ImproperlyConfigured(
            f"{prefix}_URL and {prefix}_HOST are both set: remove one of them."
        )
    host = environment.text(f"{prefix}_HOST")
    if not is_host(host):
        raise ImproperlyConfigured(
            f"{prefix}_HOST is not a host name: no scheme, no port, no user belongs there."
        )
    has_port = environment.is_set(f"{prefix}_PORT")
    return _Server(
        scheme={"DATABASE": "postgresql", "EMAIL": "smtp+tls"}[prefix],
        host=host,
        port=environment.number(f"{prefix}_PORT", default=1, least=1, most=65_535)
        if has_port
        else None,
        user=environment.text(f"{prefix}_USER"),
        password=environment.raw(f"{prefix}_PASSWORD"),
    )


def _from_url(name: str, url: str, *, parts: Sequence[str]) -> _Server:
    fix = f"{_ENCODE}, or set {', '.join(parts)} instead"
    split = _split(name, url, fix)
    # What follows an unencoded / # or ? of a password ends up behind the host.
    if "@" in split.path + split.query + split.fragment or split.fragment:
        raise ImproperlyConfigured(f"{name} has a / # or ? before its host: {fix}.")
    try:
        user, password = (_decoded(text or "") for text in (split.username, split.password))
        path = _decoded(split.path)
    except ValueError:
        raise ImproperlyConfigured(f"{name} has a % that encodes no character: {fix}.") from None
    if split.scheme in _SMTP and (split.path not in ("", "/") or split.query):
        raise ImproperlyConfigured(
            f"{name} has a path or options, which no email provider has: {fix}."
        )
    try:
        options = parse_qsl(split.query, keep_blank_values=True, strict_parsing=bool(split.query))
    except ValueError:
        raise ImproperlyConfigured(f"{name} has options after ? without a value: {fix}.") from None
    return _Server(
        scheme=split.scheme,
        host=unquote(split.hostname or ""),
        port=split.port,
        user=user,
        password=password,
        path=path,
        options=tuple(options),
    )


def _decoded(text: str) -> str:
    """Return what percent-encoded `text` stands for. Raises ValueError for a % on its own."""
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise ValueError
    return unquote(text, errors="strict")


def _split(name: str, url: str, fix: str) -> SplitResult:
    """Return the parts of a URL, whose host and port are right. Raises ImproperlyConfigured."""
    problem = ImproperlyConfigured(f"{name} is not a URL that can be read: {fix}.")
    # urlsplit drops line breaks and tabs in silence.
    if re.search(r"[\s\x00-\x1f\x7f]", url) or "://" not in url:
        raise problem
    try:
        parts = urlsplit(url)
        port = parts.port
        host = unquote(parts.hostname or "")
    except ValueError:
        raise problem from None
    if port == 0 or (host and not is_host(host)):
        raise problem
    return parts
