"""SQS calls from the event loop: signed, timed, answered exactly once, raising nothing."""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from botocore.credentials import ReadOnlyCredentials
from botocore.httpsession import get_cert_path
from botocore.session import Session
from kombu.asynchronous import Hub

from skincare.sqs.client import make_client
from skincare.sqs.credentials import Credentials
from skincare.sqs.http import HttpClient, Reply
from skincare.sqs.policy import Wiring
from skincare.sqs.signing import Signer

log = logging.getLogger(__name__)

#: SQS speaks this since 2023. https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-json-faqs.html
_CONTENT_TYPE = "application/x-amz-json-1.0"

#: Codes that say that AWS does not take our credentials, not that they lack a permission.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
_CREDENTIAL_CODES = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSecurity",
        "InvalidSignatureException",
        "InvalidToken",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "NotAuthorized",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_DENIED_CODES = frozenset({"AccessDenied", "AccessDeniedException", "KMS.AccessDeniedException"})

#: Seconds between two looks whether new credentials are there, and in all.
_CREDENTIALS_PAUSE = 0.05
_CREDENTIALS_WAIT = 5.0
#: Seconds by which an answer may be later than its call's timeout; after that, it was lost.
LATE = _CREDENTIALS_WAIT + 5.0

NO_CREDENTIALS = "NoCredentials"
NOT_SENT = "NotSent"
NO_ANSWER = "NoAnswer"
GARBAGE = "Garbage"


@dataclass(frozen=True)
class SQSError:
    """Why a call has no result. `status` is 0 where no HTTP answer came."""

    status: int
    code: str
    message: str = ""

    @property
    def denied(self) -> bool:
        """Whether our role lacks the permission."""
        return is_denied(self.code)

    @property
    def credentials_refused(self) -> bool:
        """Whether AWS does not take our credentials, whatever they allow."""
        return self.code in _CREDENTIAL_CODES


def is_denied(code: str) -> bool:
    return code in _DENIED_CODES


Result = dict[str, Any] | SQSError


class AsyncSQS:
    """Calls SQS for a worker. The blocking client finds the endpoint; credentials are looked up
    for every call."""

    def __init__(self, hub: Hub, wiring: Wiring) -> None:
        client = make_client(
            region=wiring.region, endpoint_url=wiring.endpoint_url, policy=wiring.policy
        )
        self._hub = hub
        self._endpoint = client.meta.endpoint_url.rstrip("/") + "/"
        self._signer = Signer(self._endpoint, wiring.region)
        self._credentials = Credentials()
        self._http = HttpClient(
            hub,
            connect_timeout=wiring.policy.connect_timeout,
            ca_bundle=Session().get_config_variable("ca_bundle") or get_cert_path(True),
        )

    def call(
        self,
        action: str,
        arguments: Mapping[str, Any],
        *,
        timeout: float,
        done: Callable[[Result], None],
        sent: Callable[[], None] = lambda: None,
    ) -> None:
        """Call `action`; `done` gets the answer or an SQSError, from the loop.

        `timeout` (seconds) counts from when it is sent, and `sent` is called then. A call that
        cannot be sent is answered before this returns. While refused credentials are being
        replaced, it waits for the new ones, but not for long.
        """
        self._call_when_possible(action, arguments, timeout, done, sent, _CREDENTIALS_WAIT)

    def _call_when_possible(
        self,
        action: str,
        arguments: Mapping[str, Any],
        timeout: float,
        done: Callable[[Result], None],
        sent: Callable[[], None],
        max_wait: float,
    ) -> None:
        if self._credentials.renewing:
            if max_wait <= 0:
                done(SQSError(0, NO_CREDENTIALS, "refused, and no new ones yet"))
                return
            left = max_wait - _CREDENTIALS_PAUSE
            again = partial(self._call_when_possible, action, arguments, timeout, done, sent, left)
            self._hub.call_later(_CREDENTIALS_PAUSE, again)
            return
        credentials = self._credentials.current()
        if credentials is None:
            self._credentials.renew()
            done(SQSError(0, NO_CREDENTIALS, "the default chain has no credentials"))
            return
        try:
            sent()
            self._post(credentials, action, arguments, timeout=timeout, done=done)
        except Exception as error:  # raised in a timer, it would end the polling
            log.exception("call_not_sent", extra={"action": action})
            done(SQSError(0, NOT_SENT, type(error).__name__))

    def _post(
        self,
        credentials: ReadOnlyCredentials,
        action: str,
        arguments: Mapping[str, Any],
        *,
        timeout: float,
        done: Callable[[Result], None],
    ) -> None:
        body = json.dumps(arguments).encode()
        headers = self._signer.headers(
            body, credentials, content_type=_CONTENT_TYPE, target=f"AmazonSQS.{action}"
        )

        def answered(reply: Reply) -> None:
            result = parse_reply(reply)
            try:
                if isinstance(result, SQSError) and result.credentials_refused:
                    self._credentials.renew()
            finally:
                done(result)

        self._http.post(self._endpoint, headers, body, timeout=timeout, done=answered)

    def close(self) -> None:
        """Drop all calls; those that wait are never answered."""
        self._http.close()


def parse_reply(reply: Reply) -> Result:
    """Read an HTTP answer of the JSON protocol. Total: any answer has a result."""
    if reply.status == 0:
        return SQSError(0, NO_ANSWER, reply.error)
    try:
        document = json.loads(reply.body) if reply.body else {}
    except (ValueError, RecursionError):
        document = None
    if reply.status == 200 and isinstance(document, dict):
        return document
    if reply.status == 200 or not isinstance(document, dict):
        return SQSError(reply.status, GARBAGE, "the answer is not what SQS sends")
    return SQSError(reply.status, *_code_and_message(document))


def _code_and_message(document: dict[str, Any]) -> tuple[str, str]:
    # "com.amazonaws.sqs#QueueDoesNotExist", some servers without the name space
    code = str(document.get("__type") or "Unknown").rpartition("#")[2]
    message = document.get("message") or document.get("Message") or ""
    return code, str(message)
