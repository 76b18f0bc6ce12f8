"""AWS credentials for the event loop, which must not wait for them."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from botocore.credentials import ReadOnlyCredentials
from botocore.session import Session

log = logging.getLogger(__name__)

#: Seconds after which the source is asked again. Temporary credentials are renewed by botocore
#: 15 minutes before they expire; asking costs nothing until then.
REFRESH_INTERVAL = 60.0


class Source(Protocol):
    """botocore's `Credentials` and `RefreshableCredentials`."""

    def get_frozen_credentials(self) -> ReadOnlyCredentials: ...


def default_chain() -> Source | None:
    """Search the default chain: environment, files, the task's or the instance's role."""
    return Session().get_credentials()


class Credentials:
    """The last known credentials, kept fresh by short-lived threads.

    botocore renews in the thread that asks, by HTTP calls that may take seconds.
    """

    def __init__(self, search: Callable[[], Source | None] = default_chain) -> None:
        self._search = search
        self._source: Source | None = None
        self._frozen: ReadOnlyCredentials | None = None
        self._busy = threading.Lock()
        self._asked = time.monotonic()
        #: Whether the answer to `renew` is still to come.
        self.renewing = False
        self._ask(search=True)

    def current(self) -> ReadOnlyCredentials | None:
        """Return the credentials to sign with, None where the chain has none. Never waits."""
        if time.monotonic() - self._asked > REFRESH_INTERVAL:
            self._ask_in_thread(search=self._frozen is None)
        return self._frozen

    def renew(self) -> None:
        """Search the whole chain again, because AWS does not take what we have."""
        if not self.renewing:
            self.renewing = True
            self._ask_in_thread(search=True)

    def _ask_in_thread(self, *, search: bool) -> None:
        self._asked = time.monotonic()
        thread = threading.Thread(
            target=self._ask, kwargs={"search": search}, name="sqs-credentials", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:  # no more threads: the old credentials may still do
            self.renewing = False
            log.warning("credentials_not_renewed", extra={"error": type(error).__name__})

    def _ask(self, *, search: bool) -> None:
        with self._busy:
            try:
                if search or self._source is None:
                    self._source = self._search()
                if self._source is not None:
                    self._frozen = self._source.get_frozen_credentials()
            except Exception as error:  # whatever a provider raises, the old ones may still do
                log.warning("credentials_not_renewed", extra={"error": type(error).__name__})
            if search:
                self.renewing = False
