"""All settings of the API and the worker: environment variables, the numbers, then Django.

Every environment variable is documented in `.env.example`. A wrong value stops the process at boot
with the fix in the message: what one variable can get wrong is checked here, the numbers below and
what several must agree on in the apps' checks.
"""

import os
import tempfile
from datetime import timedelta
from pathlib import Path

import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from django.http.request import validate_host

from payments.providers import choosable
from skincare import addresses, connections
from skincare.environment import (
    Environment,
    check_hosts,
    check_region,
    check_secret,
    check_secret_key,
    is_repeated,
)
from skincare.sqs.policy import SQSPolicy
from skincare.telemetry.logs import configure_logging
from skincare.telemetry.redaction import keep_secret

BASE_DIR = Path(__file__).resolve().parent.parent

env = Environment(os.environ, empty_is_unset=True)
if env_file := env.text("ENV_FILE"):
    if not Path(env_file).is_file():
        raise ImproperlyConfigured(
            f"ENV_FILE is {env_file!r}, which is not there: correct it, or remove it."
        )
    environ.Env.read_env(env_file)
elif "ENV_FILE" not in os.environ:
    environ.Env.read_env(BASE_DIR / ".env")

# -- Environment ---------------------------------------------------------------------------------

# Production unless something says otherwise: a forgotten variable must not weaken a server. A local
# SQS server says so.
SQS_ENDPOINT_URL = env.text("SQS_ENDPOINT_URL") or None
APP_ENV = env.choice(
    "APP_ENV",
    ("development", "test", "production"),
    default="development" if SQS_ENDPOINT_URL else "production",
)
IN_PRODUCTION = APP_ENV == "production"
# Elsewhere empty means not set, as the lines of a copied .env.example are.
env = Environment(os.environ, empty_is_unset=not IN_PRODUCTION)
RELEASE = env.text("RELEASE", default="development")
LOG_LEVEL = env.text("LOG_LEVEL", default="INFO").upper()
if LOG_LEVEL not in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"):
    raise ImproperlyConfigured(
        f"LOG_LEVEL is {LOG_LEVEL[:40]!r}: set it to DEBUG, INFO, WARNING, ERROR or CRITICAL."
    )
LOGGING_CONFIG = None  # Django's own; ours comes first, to report what is wrong with the rest
# Two of production in one account are told apart by it: in metrics, logs and reports of errors.
ENVIRONMENT_NAME = env.text("ENVIRONMENT_NAME") or APP_ENV
configure_logging(
    level=LOG_LEVEL, console=APP_ENV == "development", environment=ENVIRONMENT_NAME, release=RELEASE
)


def required(name: str, *, development: str) -> str:
    """Return a variable that production must set itself; elsewhere `development` stands in."""
    return env.required(name, default="" if IN_PRODUCTION else development)


SECRET_KEY = required("SECRET_KEY", development="only-for-development-" + "0" * 40)
if IN_PRODUCTION:
    check_secret_key("SECRET_KEY", SECRET_KEY)
DEBUG = env.flag("DEBUG", default=APP_ENV == "development")
if DEBUG and IN_PRODUCTION:
    raise ImproperlyConfigured("DEBUG is on in production: remove DEBUG from the environment.")
ALLOWED_HOSTS = env.words(
    "ALLOWED_HOSTS", default=[] if IN_PRODUCTION else ["127.0.0.1", "localhost"]
)
if IN_PRODUCTION and not ALLOWED_HOSTS:
    raise ImproperlyConfigured(
        "ALLOWED_HOSTS is empty: list the API's host names, comma-separated."
    )
if IN_PRODUCTION:
    check_hosts("ALLOWED_HOSTS", ALLOWED_HOSTS)

# The admin answers on these hosts alone; in production on none where none is named.
ADMIN_HOSTS = env.words("ADMIN_HOSTS", default=[] if IN_PRODUCTION else ["*"])
if IN_PRODUCTION:
    check_hosts("ADMIN_HOSTS", ADMIN_HOSTS)
if not all(
    validate_host(host.removeprefix(".").lower(), ALLOWED_HOSTS)
    for host in set(ADMIN_HOSTS) - {"*"}
):
    raise ImproperlyConfigured("ADMIN_HOSTS names a host that is not in ALLOWED_HOSTS: add it.")
# Whether everybody in the admin needs a code of an authenticator, not only those who have a device.
ADMIN_REQUIRES_CODE = env.flag("ADMIN_REQUIRES_CODE", default=False)

# How many proxies of one's own a request passes; the client's address is what the first of them
# saw. In production the load balancer is one: it also ends TLS.
TRUSTED_PROXY_COUNT = env.number(
    "TRUSTED_PROXY_COUNT",
    default=1 if IN_PRODUCTION else 0,
    least=1 if IN_PRODUCTION else 0,
    most=5,
)

# DATABASE_URL, or DATABASE_HOST, _PORT, _USER, _PASSWORD and _NAME.
DATABASES = {
    "default": connections.database(
        env,
        default_url="" if IN_PRODUCTION else "postgresql://skincare@127.0.0.1:5432/skincare",
        ca_bundle=BASE_DIR / "docker" / "rds-ca-bundle.pem",
        in_production=IN_PRODUCTION,
    )
}
DATABASES["default"].update(
    CONN_MAX_AGE=300,
    CONN_HEALTH_CHECKS=True,
    DISABLE_SERVER_SIDE_CURSORS=True,  # a pooler in transaction mode loses them
)
# A host that went away without a word is noticed within seconds; a server that is a reader since a
# failover is no server of ours. The limits of a session: skincare.events.database_sessions.
for option, value in {
    "tcp_user_timeout": 10_000,  # milliseconds
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "target_session_attrs": "read-write",
}.items():
    DATABASES["default"]["OPTIONS"].setdefault(option, value)

AWS_REGION = required("AWS_REGION", development="ap-southeast-3")
check_region("AWS_REGION", AWS_REGION)
if SQS_ENDPOINT_URL:
    connections.check_endpoint_url("SQS_ENDPOINT_URL", SQS_ENDPOINT_URL)
if SQS_ENDPOINT_URL and IN_PRODUCTION and not SQS_ENDPOINT_URL.startswith("https://"):
    raise ImproperlyConfigured(
        "SQS_ENDPOINT_URL is plain http in production: remove it (it is only for local servers)."
    )
ORDER_EVENTS_QUEUE_URL = required(
    "ORDER_EVENTS_QUEUE_URL",
    development="http://127.0.0.1:4566/000000000000/skincare-order-events",
)
connections.check_queue_url(
    "ORDER_EVENTS_QUEUE_URL",
    ORDER_EVENTS_QUEUE_URL,
    region=AWS_REGION,
    at_aws=IN_PRODUCTION and SQS_ENDPOINT_URL is None,
)

PAYMENT_PROVIDERS = env.words(
    "PAYMENT_PROVIDERS",
    default=choosable(in_production=IN_PRODUCTION),
)
if not PAYMENT_PROVIDERS:
    raise ImproperlyConfigured(
        "PAYMENT_PROVIDERS is empty, so nobody could pay: name midtrans, xendit or both."
    )
if len(set(PAYMENT_PROVIDERS)) < len(PAYMENT_PROVIDERS):
    raise ImproperlyConfigured("PAYMENT_PROVIDERS names one twice: name each once.")
unknown_providers = set(PAYMENT_PROVIDERS) - set(choosable(in_production=False))
if unknown_providers:
    raise ImproperlyConfigured(
        f"PAYMENT_PROVIDERS names {', '.join(sorted(unknown_providers))[:80]}: "
        f"known are {', '.join(choosable(in_production=IN_PRODUCTION))}."
    )
for local_only in set(PAYMENT_PROVIDERS) - set(choosable(in_production=IN_PRODUCTION)):
    raise ImproperlyConfigured(
        f"PAYMENT_PROVIDERS enables {local_only} in production, where anyone could pay so. "
        "Remove it."
    )


def provider_secret(
    provider: str, name: str, *, development: str, only_for_webhooks: bool = False
) -> str:
    """Return a secret of a provider; empty only where it is disabled.

    With one that is empty or can be guessed anybody could forge a payment, so either stops the
    process in production. What is `only_for_webhooks` only the API needs, whose checks ask for it
    (payments.checks). A disabled provider keeps its secret where that is set: the orders that were
    made with it may still be paid.
    """
    if provider in PAYMENT_PROVIDERS and not (only_for_webhooks and IN_PRODUCTION):
        secret = required(name, development=development)
    else:
        secret = env.text(name)
    if IN_PRODUCTION and secret:
        check_secret(name, secret)
    return secret


MIDTRANS_SERVER_KEY = provider_secret(
    "midtrans", "MIDTRANS_SERVER_KEY", development="SB-Mid-server-development"
)
XENDIT_CALLBACK_TOKEN = provider_secret(
    "xendit",
    "XENDIT_CALLBACK_TOKEN",
    development="xendit-development-token",
    only_for_webhooks=True,
)

# The secrets before these, which stay valid while both are in use.
MIDTRANS_SERVER_KEY_PREVIOUS = env.text("MIDTRANS_SERVER_KEY_PREVIOUS")
XENDIT_CALLBACK_TOKEN_PREVIOUS = env.text("XENDIT_CALLBACK_TOKEN_PREVIOUS")
if IN_PRODUCTION:
    for name in ("MIDTRANS_SERVER_KEY_PREVIOUS", "XENDIT_CALLBACK_TOKEN_PREVIOUS"):
        if vars()[name]:
            check_secret(name, vars()[name])
XENDIT_SECRET_KEY = provider_secret(
    "xendit", "XENDIT_SECRET_KEY", development="xnd_development_local"
)

MIDTRANS_ENVIRONMENT = env.choice(
    "MIDTRANS_ENVIRONMENT",
    ("sandbox", "production"),
    default="production" if IN_PRODUCTION else "sandbox",
)
if IN_PRODUCTION:
    addresses.check_midtrans_key(MIDTRANS_SERVER_KEY, chosen=MIDTRANS_ENVIRONMENT)
    addresses.check_xendit_key(XENDIT_SECRET_KEY, chosen=MIDTRANS_ENVIRONMENT)
_snap_url, _core_url = addresses.MIDTRANS_URLS[MIDTRANS_ENVIRONMENT]
MIDTRANS_SNAP_URL = addresses.gateway_url(
    env, "MIDTRANS_SNAP_URL", gateways_own=_snap_url, local=not IN_PRODUCTION
)
MIDTRANS_API_URL = addresses.gateway_url(
    env, "MIDTRANS_API_URL", gateways_own=_core_url, local=not IN_PRODUCTION
)
XENDIT_API_URL = addresses.gateway_url(
    env, "XENDIT_API_URL", gateways_own=addresses.XENDIT_URL, local=not IN_PRODUCTION
)
# Where buyers look at their order: <it>/orders/<id>.
SHOP_URL = addresses.shop_url(
    env, default="" if IN_PRODUCTION else "http://127.0.0.1:8000/shop", local=not IN_PRODUCTION
)
# Whom the worker asks before anything follows from a notification; see payments.confirmation.
PROVIDERS_ASKED = env.words("PROVIDERS_ASKED", default=choosable(in_production=True))
PROVIDERS_ASKED = [] if PROVIDERS_ASKED == ["none"] else PROVIDERS_ASKED
for unknown in set(PROVIDERS_ASKED) - set(choosable(in_production=True)):
    raise ImproperlyConfigured(
        f"PROVIDERS_ASKED names {unknown[:40]}: it may name "
        f"{' and '.join(choosable(in_production=True))}, or be none."
    )

# What buyers' tokens are signed with: the newer secret, then the one before it; none: only guests.
BUYER_TOKEN_SECRETS = env.words("BUYER_TOKEN_SECRETS", default=[])
if any(len(secret) < 32 or is_repeated(secret) for secret in BUYER_TOKEN_SECRETS):
    raise ImproperlyConfigured(
        "BUYER_TOKEN_SECRETS has one of less than 32 characters, or one that repeats itself: use "
        "the 32 random bytes or more that HS256 asks for."
    )
# Which origins' pages may call /v1 from a browser; none: CORS is off.
CORS_ALLOWED_ORIGINS = env.words("CORS_ALLOWED_ORIGINS", default=[])
addresses.check_origins("CORS_ALLOWED_ORIGINS", CORS_ALLOWED_ORIGINS, local=not IN_PRODUCTION)

SENTRY_DSN = env.text("SENTRY_DSN")
if SENTRY_DSN:
    connections.check_sentry_dsn("SENTRY_DSN", SENTRY_DSN)

# EMAIL_URL, or EMAIL_HOST, _PORT, _USER, _PASSWORD and _SECURITY.
vars().update(
    connections.email(
        env,
        default_url="" if IN_PRODUCTION else "consolemail://",
        in_production=IN_PRODUCTION,
    )
)
EMAIL_TIMEOUT = 10  # seconds; three tries stay far below the soft time limit
DEFAULT_FROM_EMAIL = env.text(
    "DEFAULT_FROM_EMAIL", default="Toko Skincare <pesanan@skincare.example>"
)
connections.check_sender("DEFAULT_FROM_EMAIL", DEFAULT_FROM_EMAIL)

# How the emails look and where the shop is, beside the name and address of DEFAULT_FROM_EMAIL. The
# letters on the colour are white: WCAG asks for a contrast of 4.5.
SHOP_COLOUR = "#a3385a"
SHOP_POSTAL_ADDRESS = "Jalan Contoh 1, Jakarta 10110"

# -- The numbers: each has its one home here; queues and templates are tested against them ---------

SQS_POLICY = SQSPolicy(
    visibility_timeout=120,
    soft_time_limit=75,
    hard_time_limit=90,
    stop_timeout=120,
    long_poll=15,
    max_receive_count=5,
    backoff=(10, 30, 60, 120),
    backoff_jitter=0.2,
    concurrency=env.number("WORKER_CONCURRENCY", default=5, least=1, most=64),
    connect_timeout=2,
    read_timeout=5,
    attempts=2,
    health_file=env.required(
        "SQS_HEALTH_FILE", default=f"{tempfile.gettempdir()}/skincare-worker-health.json"
    ),
)
if not Path(SQS_POLICY.health_file).is_absolute():
    raise ImproperlyConfigured(
        "SQS_HEALTH_FILE is not a whole path: the check that reads it may run in another folder. "
        "Start it with a /."
    )
if not Path(SQS_POLICY.health_file).parent.is_dir():
    raise ImproperlyConfigured(
        "SQS_HEALTH_FILE is in a folder that is not there, so a worker would be taken for dead: "
        "name a folder that exists."
    )
CLAIM_LEASE_SECONDS = 100
# service → seconds that a statement may wait for a lock, and take in all. Commands have no limit.
DATABASE_TIMEOUTS = {"api": (2, 4), "worker": (10, 30), "relay": (5, 30)}
EMAIL_TRIES = 3
EMAIL_RETRY_WAIT_SECONDS = (0.25, 0.5)
# An email that the provider did not take goes through the outbox again: first, longest wait, end.
PUT_OFF_SECONDS = (10.0, 3600.0)
PUT_OFF_ENDS_AFTER_SECONDS = 24 * 3600
# How long an order keeps its stock unpaid: until its buyer opens a payment page, and by the way to
# pay from then on; "" is a page with all ways.
# https://docs.midtrans.com/docs/snap-advanced-feature (expiry of each method)
ORDER_WINDOW_MINUTES = 30
PAYMENT_WINDOW_MINUTES = {
    "qris": 15,
    "ewallet": 15,
    "card": 30,
    "virtual_account": 24 * 60,
    "counter": 24 * 60,
    "": 24 * 60,
}
UNPAID_ORDER_EXPIRES_HOURS = 24  # of an order of the release before, which has no window
UNPAID_ORDER_SWEEP_SECONDS = 60.0
# A notification whose order is not there is tried again so often, and so long.
UNMATCHED_RETRY_SECONDS = 60.0
UNMATCHED_RETRY_DAYS = 7
# Whether orders, payments and stock agree is looked at four times a day.
MONEY_CHECK_SECONDS = 6 * 3600.0
# A shop makes one refund at a time, or a few; a person looks at more.
REFUNDS_PER_NOTIFICATION = 20
EMAILS_PER_ORDER_AND_HOUR = 5
# Midtrans wants an answer within 5 s: a webhook that waits longer for its order is called again.
WEBHOOK_LOCK_TIMEOUT_SECONDS = 3
# To connect, and for the answer; no transaction is open meanwhile.
GATEWAY_CONNECT_SECONDS = 3
GATEWAY_READ_SECONDS = 10
# Xendit takes 60 calls a minute to one address with a test key and 600 with a live one; asking for
# a paid invoice takes two. https://developers.xendit.co/api-reference/#rate-limits
# All processes of the shop share the pace; what workers ask for events comes on top.
GATEWAY_ASKS_PER_MINUTE = 30
RECONCILE_SWEEP_SECONDS = 10.0
# After that an order that was not there yet, or a database that did not answer, may be there.
WEBHOOK_RETRY_AFTER_SECONDS = 60
# A client has so long to send its whole request, and to read the whole answer. A request that
# waited longer for a thread is refused, because its client has given up.
WEB_READ_SECONDS = 15
WEB_WRITE_SECONDS = 60
WEB_QUEUE_SECONDS = 10
WEB_RETRY_AFTER_SECONDS = 5  # Retry-After of requests refused because too many wait already
RELAY_IN_PROCESS = True  # a process that publishes also relays; off in tests
RELAY_SWEEP_SECONDS = 5.0
RELAY_PAUSE_SECONDS = 0.2  # between looks in a rush: what comes meanwhile goes out in one call
RELAY_ROWS = 500  # rows leased at a time, sent in batches of ten
RELAY_LEASE_SECONDS = 30  # then another relay sends what is not marked sent
RELAY_BATCHES_IN_FLIGHT = 8  # while there is a backlog; one after the other otherwise
RELAY_BACKOFF_SECONDS = (0.5, 20.0)  # first and longest wait while SQS fails
EVENT_MAX_BYTES = 64 * 1024
CELERY_APP = "skincare.celery.app"
CHECKOUT_MAX_LINES = 50
CHECKOUT_MAX_QUANTITY = 99
IDEMPOTENCY_KEY_MAX_LENGTH = 255
# Whether the bounds below hold; off where one address plays many buyers.
LIMIT_BUYERS = env.flag("LIMIT_BUYERS", default=True)
if IN_PRODUCTION and not LIMIT_BUYERS:
    raise ImproperlyConfigured(
        "LIMIT_BUYERS is off in production, where one client could set all stock aside: "
        "remove LIMIT_BUYERS from the environment. A load test runs with APP_ENV=test."
    )
# What a buyer may have set aside without paying; behind one address may be a mobile network.
UNPAID_BY_EMAIL = {"orders": 5, "pieces": 200, "share": 0.25}
UNPAID_BY_SESSION = {"orders": 5, "pieces": 200, "share": 0.25}  # of who is signed in
UNPAID_BY_NETWORK = {"orders": 50, "pieces": 1_000, "share": 0.5}
# Emails to one address about orders that nobody paid: what a stranger can have sent to it.
UNPAID_EMAILS_PER_ADDRESS_AND_DAY = 20
# Requests of one address to one process, by kind.
REQUEST_LIMITS = {
    "orders": "60/minute",
    "webhooks": "3000/minute",
    "logins": "30/minute",
    "pages": "1200/minute",
}
# The operations page turns red, and `manage.py status` fails, where an event waits longer for a
# worker.
OLDEST_EVENT_WARNING_SECONDS = 120
# `manage.py prune` deletes what is older. A processed event makes a late repeat harmless, so it
# stays longer than any queue keeps a message; skincare.events.checks holds the days to that.
PRUNE_OUTBOX_DAYS = 30
PRUNE_PROCESSED_EVENTS_DAYS = 90
PRUNE_NOTIFICATIONS_DAYS = 730
PRUNE_CHECKOUT_REQUESTS_DAYS = 30
PRUNE_LOGINS_DAYS = 30  # wrong passwords, with the address they came from, and ended sessions

# -- Django ----------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "skincare.operations",  # before the admin, whose frame it extends
    "skincare.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "axes",
    "corsheaders",
    "django_otp",
    "django_otp.plugins.otp_static",
    "django_otp.plugins.otp_totp",
    "ninja",
    "skincare.events",
    "orders",
    "payments",
]
MIDDLEWARE = [
    "skincare.telemetry.request_id.RequestIdMiddleware",
    "skincare.telemetry.health.HealthMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "skincare.front_door.FrontDoorMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "skincare.json_errors.JsonErrorsMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "skincare.operations.language.EnglishAdminMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django_otp.middleware.OTPMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "skincare.admin_door.AdminDoorMiddleware",
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "skincare.urls"
WSGI_APPLICATION = "skincare.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
# Wrong passwords of one person from one address, and of all persons from it, until all from it are
# refused for a while, before any hashing.
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AXES_FAILURE_LIMIT = 8
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"], "ip_address"]
AXES_RESET_ON_SUCCESS = True
AXES_DISABLE_ACCESS_LOG = True
AXES_LOCKOUT_CALLABLE = "skincare.admin_door.locked_out"
OTP_TOTP_ISSUER = "Skincare"
SESSION_COOKIE_AGE = 12 * 3600  # seconds: a working day
SESSION_COOKIE_SAMESITE = "Lax"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATA_UPLOAD_MAX_MEMORY_SIZE = 256 * 1024  # bytes; carts and forms are a few kilobytes
#: Bytes of a gateway's notification. They are a few kilobytes, but what a proven sender says is
#: stored, and a signature inside of it can be looked at only once it was read.
WEBHOOK_MAX_BYTES = 2 * 1024 * 1024

CORS_URLS_REGEX = r"^/v1/"
CORS_ALLOW_HEADERS = (
    *("accept", "accept-language", "authorization", "content-type"),
    *("idempotency-key", "x-request-id"),
)
CORS_EXPOSE_HEADERS = ("Allow", "Content-Language", "Location", "Retry-After", "X-Request-ID")
CORS_PREFLIGHT_MAX_AGE = 86_400  # seconds

LANGUAGE_CODE = "id"
LANGUAGES = [("id", "Bahasa Indonesia"), ("en", "English")]
FORMAT_MODULE_PATH = "skincare.operations.formats"  # of the admin; emails say theirs themselves
TIME_ZONE = "Asia/Jakarta"
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
WHITENOISE_USE_FINDERS = not IN_PRODUCTION
COLLECTED_STATIC_FILES = "whitenoise.storage.CompressedManifestStaticFilesStorage"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": COLLECTED_STATIC_FILES
        if IN_PRODUCTION
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}

if IN_PRODUCTION:
    # The load balancer ends TLS and sets X-Forwarded-Proto itself.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = True
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True

keep_secret(  # from all lines and reports
    [
        SECRET_KEY,
        MIDTRANS_SERVER_KEY,
        XENDIT_CALLBACK_TOKEN,
        MIDTRANS_SERVER_KEY_PREVIOUS,
        XENDIT_CALLBACK_TOKEN_PREVIOUS,
        *BUYER_TOKEN_SECRETS,
        XENDIT_SECRET_KEY,
        str(DATABASES["default"].get("PASSWORD", "")),
        str(vars().get("EMAIL_HOST_PASSWORD", "")),
    ]
)
if SENTRY_DSN:
    from skincare.telemetry.errors import start_sentry

    start_sentry(dsn=SENTRY_DSN, environment=ENVIRONMENT_NAME, release=RELEASE)
