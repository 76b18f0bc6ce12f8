"""The transport replaces inner parts of kombu, Celery and billiard: it is checked against these
versions."""

from types import ModuleType

import billiard
import celery
import kombu
import pycurl
import pytest

CHECKED_AGAINST = {celery: "5.7.0", kombu: "5.7.0", billiard: "4.3.2"}


@pytest.mark.parametrize("package", CHECKED_AGAINST, ids=lambda package: package.__name__)
def test_the_installed_version_is_the_one_that_was_checked(package: ModuleType) -> None:
    name, version = package.__name__, package.__version__
    assert version == CHECKED_AGAINST[package], (
        f"skincare.sqs was checked against {name} {CHECKED_AGAINST[package]}, installed is "
        f"{version}. Read what changed in its SQS transport, hub, worker, request and pool, run "
        "the tests in tests/integration/sqs, and then change CHECKED_AGAINST."
    )


def test_libcurl_looks_names_up_beside_the_event_loop() -> None:
    """Without this feature a name server that hangs would stop the whole worker."""
    features = pycurl.version_info()[4]

    assert features & pycurl.VERSION_ASYNCHDNS
