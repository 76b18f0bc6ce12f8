"""The folder into which Django's file backend writes emails, read as its addressee would."""

import email
import email.policy
from collections import Counter
from email.message import EmailMessage
from pathlib import Path

BETWEEN_EMAILS = b"\n" + b"-" * 79 + b"\n"
"""What django.core.mail.backends.filebased writes after each."""


class Mailbox:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def emails(self) -> list[EmailMessage]:
        parts = [p for f in self.folder.glob("*.log") for p in f.read_bytes().split(BETWEEN_EMAILS)]
        return [
            email.message_from_bytes(part, policy=email.policy.default)
            for part in parts
            if part.strip()
        ]

    def kinds(self) -> Counter[str]:
        """How many there are of each kind, which is part of the Message-ID."""
        return Counter(kind_of(message) for message in self.emails())

    def count(self, *, to: str = "", kind: str = "") -> int:
        return sum(to in message["To"] and kind in kind_of(message) for message in self.emails())


def kind_of(message: EmailMessage) -> str:
    """`receipt` for the Message-ID <….receipt@skincare.example>."""
    return str(message["Message-ID"]).partition(".")[2].partition("@")[0]
