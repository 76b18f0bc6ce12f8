"""Local servers beside the shop, each a program of its own: a mail server, the gateways, a window.

To add one, write its class and name it in `Stack.servers`.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class LocalServer(Protocol):
    name: str
    """Of its log file too."""

    ports: tuple[int, ...]
    """Of 127.0.0.1, at which it listens when it is ready."""

    def command(self) -> Sequence[str]:
        """What is run; with the shop's environment, and ended with the stack."""

    def environment(self) -> dict[str, str]:
        """What the shop has to know of it, as variables of its settings."""

    def directions(self) -> dict[str, str]:
        """What a developer has to know of it: a name and an address."""


class MailServer:
    """Keeps the shop's emails in a folder and shows them (mail_server.py)."""

    name = "mail"

    def __init__(self, folder: Path, *, smtp_port: int, page_port: int) -> None:
        self.folder = folder
        self.ports: tuple[int, ...] = (smtp_port, page_port)
        self.smtp_port = smtp_port
        self.page_url = f"http://127.0.0.1:{page_port}/"
        self._page_port = page_port

    def command(self) -> Sequence[str]:
        return (
            *(sys.executable, "-m", "skincare.local.mail_server", "--folder", str(self.folder)),
            *("--smtp-port", str(self.smtp_port), "--page-port", str(self._page_port)),
        )

    def environment(self) -> dict[str, str]:
        return {"EMAIL_URL": f"smtp://127.0.0.1:{self.smtp_port}"}

    def directions(self) -> dict[str, str]:
        return {"emails": self.page_url}


class Gateways:
    """Midtrans and Xendit, simulated (skincare.local.gateways); they call the shop's webhooks."""

    name = "gateways"

    def __init__(self, *, port: int, web_url: str) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.ports: tuple[int, ...] = (port,)
        self._port = port
        self._web_url = web_url

    def command(self) -> Sequence[str]:
        webhooks = f"{self._web_url}/v1/webhooks"
        return (
            *(sys.executable, "-m", "skincare.local.gateways", "--port", str(self._port)),
            *("--midtrans-webhook", f"{webhooks}/midtrans"),
            *("--xendit-webhook", f"{webhooks}/xendit"),
        )

    def environment(self) -> dict[str, str]:
        return {
            "MIDTRANS_SNAP_URL": f"{self.url}/midtrans/snap/v1",
            "MIDTRANS_API_URL": f"{self.url}/midtrans",
            "XENDIT_API_URL": f"{self.url}/xendit",
            "PROVIDERS_ASKED": "midtrans,xendit",
        }

    def directions(self) -> dict[str, str]:
        return {"payment gateways": f"{self.url}/control/state"}


class ShopWindow:
    """The page that buyers use (skincare.local.window): SHOP_URL leads to it."""

    name = "window"

    def __init__(self, *, port: int, web_url: str, mail_url: str) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.ports: tuple[int, ...] = (port,)
        self._port = port
        self._web_url = web_url
        self._mail_url = mail_url

    def command(self) -> Sequence[str]:
        return (
            *(sys.executable, "-m", "skincare.local.window", "--port", str(self._port)),
            *("--api-url", self._web_url, "--mail-url", self._mail_url),
        )

    def environment(self) -> dict[str, str]:
        return {"SHOP_URL": self.url, "CORS_ALLOWED_ORIGINS": self.url}

    def directions(self) -> dict[str, str]:
        return {"shop window": f"{self.url}/  <- buy here first"}
