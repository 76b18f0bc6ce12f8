"""The addresses of the gateways' APIs and of the shop's pages, checked at boot.

An error names the variable and the fix.
"""

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from skincare.environment import HOST_NAME, Environment

#: MIDTRANS_ENVIRONMENT → (Snap, Core API). https://docs.midtrans.com/reference/api-environment
MIDTRANS_URLS: Final = {
    "sandbox": ("https://app.sandbox.midtrans.com/snap/v1", "https://api.sandbox.midtrans.com"),
    "production": ("https://app.midtrans.com/snap/v1", "https://api.midtrans.com"),
}
#: One for test and live mode: the key decides.
XENDIT_URL: Final = "https://api.xendit.co"
_PATH: Final = re.compile(r"[A-Za-z0-9._~/-]*")
_SANDBOX_KEY: Final = "SB-Mid-server-"
_TEST_KEY: Final = "xnd_development_"


def gateway_url(environment: Environment, name: str, *, gateways_own: str, local: bool) -> str:
    """Return the base URL of a gateway's API, without a slash at its end.

    Money is asked for and confirmed there: it has to be https, at the host and port of
    `gateways_own`. Where `local`, another server may stand in. Raises ImproperlyConfigured.
    """
    value = environment.text(name) or gateways_own
    _web_address(name, value)
    if not local and urlsplit(value)[:2] != urlsplit(gateways_own)[:2]:
        raise ImproperlyConfigured(
            f"{name} is not the gateway's own: remove it (it is {gateways_own} then). Only outside "
            "production may another server stand in for it."
        )
    return value.rstrip("/")


def shop_url(environment: Environment, *, default: str, local: bool) -> str:
    """Return the address of the shop's pages, without a slash at its end.

    Emails and payment pages lead the buyer to `<it>/orders/<id>`. Raises ImproperlyConfigured.
    """
    value = environment.required("SHOP_URL", default=default)
    _web_address("SHOP_URL", value)
    if not local and not value.startswith("https://"):
        raise ImproperlyConfigured(
            "SHOP_URL is not https: buyers come back from their payment there. Set it to the "
            "address of the shop's pages, like https://shop.example.com."
        )
    return value.rstrip("/")


def check_origins(name: str, origins: Sequence[str], *, local: bool) -> None:
    """Raise ImproperlyConfigured for what is no origin of a page; plain http is for `local` ones.

    https://fetch.spec.whatwg.org/#origin-header: a scheme, a host, and a port that is not its own.
    """
    for number, origin in enumerate(origins, start=1):
        scheme, _, rest = origin.partition("://")
        host, colon, port = rest.partition(":")
        if (
            scheme not in (("http", "https") if local else ("https",))
            or not HOST_NAME.fullmatch(host)
            or (colon and (not re.fullmatch(r"[0-9]{1,5}", port) or not 0 < int(port) < 65_536))
        ):
            raise ImproperlyConfigured(
                f"{name}: entry {number} is not an origin: list origins like "
                "https://shop.example, comma-separated, without a path; in production https alone."
            )


def check_midtrans_key(key: str, *, chosen: str) -> None:
    """Raise ImproperlyConfigured for the client's key, and for one of the sandbox in production."""
    if "-client-" in key.lower():
        raise ImproperlyConfigured(
            "MIDTRANS_SERVER_KEY is the client key, which proves nothing: copy the server key."
        )
    if chosen == "production" and key.startswith(_SANDBOX_KEY):
        raise ImproperlyConfigured(
            "MIDTRANS_SERVER_KEY is a key of the sandbox: set MIDTRANS_ENVIRONMENT to sandbox, or "
            "copy the key from the dashboard of the production environment."
        )


def check_xendit_key(key: str, *, chosen: str) -> None:
    """Raise ImproperlyConfigured for a key of the test mode beside a gateway that takes money."""
    if chosen == "production" and key.startswith(_TEST_KEY):
        raise ImproperlyConfigured(
            "XENDIT_SECRET_KEY is a key of Xendit's test mode, in which orders are paid without "
            "money: copy the live key, or set MIDTRANS_ENVIRONMENT to sandbox to try the shop."
        )


def _web_address(name: str, value: str) -> None:
    """Raise ImproperlyConfigured for what is not the http(s) address of a server."""
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        parts, host = None, ""
    if (
        parts is None
        or parts.scheme not in ("http", "https")
        or not HOST_NAME.fullmatch(host)
        or set("?#") & set(value)
        or not _PATH.fullmatch(parts.path)
        or ".." in parts.path
        or parts.username is not None
    ):
        raise ImproperlyConfigured(
            f"{name} is not the address of a server: write it as https://host/path, without a "
            "user, a question mark or a hash, and with letters, digits and - . _ ~ in the path."
        )
