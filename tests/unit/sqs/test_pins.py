"""The transport replaces inner parts of kombu and Celery: it is checked against these versions."""

import celery
import kombu
import pycurl
import pytest

CHECKED_AGAINST = "5.7.0"


@pytest.mark.parametrize("package", [celery, kombu], ids=lambda package: package.__name__)
def test_the_installed_version_is_the_one_that_was_checked(package: object) -> None:
    name, version = package.__name__, package.__version__  # type: ignore[attr-defined]
    assert version == CHECKED_AGAINST, (
        f"skincare.sqs was checked against {name} {CHECKED_AGAINST}, installed is {version}. Read "
        "what changed in its SQS transport, hub, worker and request, run the tests in "
        "tests/integration/sqs, and then change CHECKED_AGAINST."
    )


def test_libcurl_looks_names_up_beside_the_event_loop() -> None:
    """Without this feature a name server that hangs would stop the whole worker."""
    features = pycurl.version_info()[4]

    assert features & pycurl.VERSION_ASYNCHDNS
