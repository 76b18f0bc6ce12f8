"""The mailbox reads what Django's own file backend writes."""

from pathlib import Path

import pytest
from django.core.mail import EmailMultiAlternatives, get_connection

from skincare.local.mailbox import Mailbox


def send(folder: Path, *mails: tuple[str, str]) -> None:
    """Write one file with these emails: (addressee, kind)."""
    backend = "django.core.mail.backends.filebased.EmailBackend"
    messages = []
    for to, kind in mails:
        headers = {"Message-ID": f"<0b7c-5e.{kind}@skincare.example>"}
        message = EmailMultiAlternatives("Pesanan", "Halo", to=[to], headers=headers)
        message.attach_alternative("<hr>" + "-" * 79, "text/html")
        messages.append(message)
    get_connection(backend, file_path=str(folder)).send_messages(messages)


@pytest.fixture
def mailbox(tmp_path: Path) -> Mailbox:
    return Mailbox(tmp_path)


def test_a_folder_that_does_not_exist_yet_holds_no_emails(tmp_path: Path) -> None:
    assert Mailbox(tmp_path / "later").count() == 0


def test_emails_are_counted_by_addressee_and_kind(mailbox: Mailbox) -> None:
    send(mailbox.folder, ("ayu@buyer.example", "receipt"), ("ayu@buyer.example", "refund"))
    send(mailbox.folder, ("budi@buyer.example", "receipt"))

    assert mailbox.count() == 3
    assert mailbox.count(to="ayu@buyer.example") == 2
    assert mailbox.count(to="ayu@buyer.example", kind="receipt") == 1
    assert mailbox.kinds() == {"receipt": 2, "refund": 1}
