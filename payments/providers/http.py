"""Calls to the gateways' APIs: bounded in time and in size, proven by TLS, and never followed.

urllib3, because production has it already (botocore stands on it), it is released often, and it
does without hesitation what a call about money needs: no retry and no redirect of its own, and an
answer that is read piece by piece.
"""

import base64
import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import structlog
import urllib3
from django.conf import settings

from payments.exceptions import GatewayUnavailable, Malformed
from payments.providers.document import load_json
from skincare.telemetry import metrics

log = structlog.get_logger(__name__)

_MAX_BYTES: Final = 256 * 1024  # of an answer; the largest documented ones have some kilobytes
_CHUNK: Final = 16 * 1024
_LONGEST_WAIT: Final = 3600.0  # seconds, that a gateway may ask of us

_pool: urllib3.PoolManager | None = None


@dataclass(frozen=True)
class Answer:
    """What the gateway said: HTTP status and JSON, numbers with a point as Decimal."""

    status: int
    document: Any

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def object(self) -> dict[str, Any]:
        """The document where it is a JSON object, else an empty one."""
        return self.document if isinstance(self.document, dict) else {}


def call(
    method: str,
    url: str,
    *,
    provider: str,
    action: str,
    key: str,
    json: Mapping[str, Any] | None = None,
    query: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    expects: type = dict,
) -> Answer:
    """Call a gateway and return its answer, whatever its status below 500 but 429 is.

    key: the user of HTTP Basic, with an empty password. expects: what a good answer is made of,
    `dict` for a JSON object, `list`.
    Raises `GatewayUnavailable` where there is no answer, or none to rely on: it may have been done.
    """
    started = time.monotonic()
    try:
        answer = _call(
            method, url, provider=provider, key=key, json=json, query=query, more=headers
        )
        if answer.is_ok and not isinstance(answer.document, expects):
            raise GatewayUnavailable(provider, "the answer is not of the documented kind")
    except GatewayUnavailable as error:
        metrics.count("GatewayCallsFailed", provider=provider)
        log.warning(
            "gateway_call_failed",
            provider=provider,
            action=action,
            error=error.reason,
            duration_ms=round((time.monotonic() - started) * 1000),
        )
        raise
    log.info(
        "gateway_called",
        provider=provider,
        action=action,
        status=answer.status,
        duration_ms=round((time.monotonic() - started) * 1000),
    )
    return answer


def _call(
    method: str,
    url: str,
    *,
    provider: str,
    key: str,
    json: Mapping[str, Any] | None,
    query: Mapping[str, str] | None,
    more: Mapping[str, str] | None,
) -> Answer:
    connect, read = settings.GATEWAY_CONNECT_SECONDS, settings.GATEWAY_READ_SECONDS
    deadline = time.monotonic() + connect + read
    basic = base64.b64encode(f"{key}:".encode()).decode()
    headers = {
        "Accept": "application/json",
        "Accept-Encoding": "identity",  # a small answer cannot unfold into a large one
        "Authorization": f"Basic {basic}",
        "User-Agent": f"skincare/{settings.RELEASE}",
        **(more or {}),
    }
    try:
        response = _connections().request(
            method,
            f"{url}?{urlencode(query)}" if query else url,
            headers=headers,
            json=dict(json) if json is not None else None,
            timeout=urllib3.Timeout(connect=connect, read=read),
            retries=False,
            redirect=False,
            preload_content=False,
            decode_content=False,
        )
        try:
            body = _read(response, deadline, provider)
        finally:
            response.close()  # a connection that was kept could be closed under the next call
    except (urllib3.exceptions.HTTPError, OSError) as error:
        # Not its text: it may hold an address with what we sent.
        host = urlsplit(url).hostname
        raise GatewayUnavailable(provider, f"{type(error).__name__} ({host})") from None
    if response.status >= 500 or response.status == 429:
        raise GatewayUnavailable(
            provider, f"HTTP {response.status}", retry_after=wait_asked_for(response.headers)
        )
    if 300 <= response.status < 400:
        raise GatewayUnavailable(provider, f"HTTP {response.status}: redirects are not followed")
    try:
        return Answer(response.status, load_json(body))
    except Malformed as error:
        raise GatewayUnavailable(provider, f"the answer {error.rule}") from None


def _read(response: urllib3.BaseHTTPResponse, deadline: float, provider: str) -> bytes:
    """Return the whole body. A server that sends a byte now and then does not hold us."""
    parts: list[bytes] = []
    size = 0
    while chunk := response.read1(_CHUNK):
        parts.append(chunk)
        size += len(chunk)
        if size > _MAX_BYTES:
            raise GatewayUnavailable(provider, f"an answer of more than {_MAX_BYTES} bytes")
        if time.monotonic() > deadline:
            raise GatewayUnavailable(provider, "the answer took too long")
    declared = response.headers.get("Content-Length", "")
    if declared.isdecimal() and size != int(declared):
        raise GatewayUnavailable(provider, "the answer was cut off")
    return b"".join(parts)


def wait_asked_for(headers: Mapping[str, str]) -> float | None:
    """Return the seconds, up to an hour, that a gateway asks us to wait; None where it does not."""
    for name in ("Retry-After", "Rate-Limit-Reset"):
        try:
            seconds = float(headers.get(name, ""))
        except ValueError:
            continue
        if math.isfinite(seconds):
            return min(max(seconds, 0.0), _LONGEST_WAIT)
    return None


def _connections() -> urllib3.PoolManager:
    global _pool
    if _pool is None:
        _pool = urllib3.PoolManager(num_pools=4, maxsize=8)
    return _pool


def _forget_after_fork() -> None:
    global _pool
    _pool = None


os.register_at_fork(after_in_child=_forget_after_fork)
