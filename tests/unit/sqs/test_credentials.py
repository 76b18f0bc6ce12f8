"""Credentials are looked up without making the event loop wait."""

import threading

from botocore.credentials import Credentials as StaticCredentials
from botocore.credentials import ReadOnlyCredentials

from skincare.local.deadline import wait_until
from skincare.sqs.credentials import Credentials


def keys(access_key: str) -> StaticCredentials:
    return StaticCredentials(access_key, "secret")


def test_the_chain_is_searched_at_the_start() -> None:
    current = Credentials(lambda: keys("first")).current()

    assert current == ReadOnlyCredentials("first", "secret", None, None)


def test_refused_credentials_are_searched_for_anew_in_the_background() -> None:
    may_answer = threading.Event()
    answers = iter([keys("old"), keys("new")])

    def search() -> StaticCredentials:
        found = next(answers)
        if found.access_key == "new":
            may_answer.wait(5)
        return found

    credentials = Credentials(search)
    credentials.renew()
    credentials.renew()

    assert credentials.renewing
    assert credentials.current().access_key == "old"  # type: ignore[union-attr]
    may_answer.set()
    wait_until(lambda: not credentials.renewing, seconds=5, what="the new credentials")
    assert credentials.current().access_key == "new"  # type: ignore[union-attr]


def test_a_search_that_fails_leaves_the_old_ones() -> None:
    answers = iter([keys("old")])

    credentials = Credentials(lambda: next(answers))
    credentials.renew()

    wait_until(lambda: not credentials.renewing, seconds=5, what="the end of the search")
    assert credentials.current().access_key == "old"  # type: ignore[union-attr]


def test_a_chain_without_credentials_has_none() -> None:
    assert Credentials(lambda: None).current() is None
