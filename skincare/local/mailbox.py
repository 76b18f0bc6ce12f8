"""The folder that holds the shop's emails, read as their addressees would."""

import email
import email.policy
from collections import Counter
from email.message import EmailMessage
from pathlib import Path

BETWEEN_EMAILS = b"\n" + b"-" * 79 + b"\n"
"""What django.core.mail.backends.filebased writes after each."""


class Mailbox:
    """A folder of .eml files, or of the .log files that Django's file backend writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def emails(self) -> list[EmailMessage]:
        parts = [p for f in self.folder.glob("*.log") for p in f.read_bytes().split(BETWEEN_EMAILS)]
        parts += [file.read_bytes() for file in sorted(self.folder.glob("[!.]*.eml"))]
        return [read(part) for part in parts if part.strip()]

    def kinds(self) -> Counter[str]:
        """How many there are of each kind, which is part of the Message-ID."""
        return Counter(kind_of(message) for message in self.emails())

    def count(self, *, to: str = "", kind: str = "") -> int:
        return sum(to in message["To"] and kind in kind_of(message) for message in self.emails())


def read(content: bytes) -> EmailMessage:
    return email.message_from_bytes(content, policy=email.policy.default)


def kind_of(message: EmailMessage) -> str:
    """`receipt` for the Message-ID <….receipt@skincare.example>."""
    return str(message["Message-ID"]).partition(".")[2].partition("@")[0]
