"""AWS Signature Version 4 for the calls of a worker, which makes hundreds a second.

botocore's signer derives the signing key for each call and builds a request object around it; here
the key is derived once for a day and a set of credentials.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

import hashlib
import hmac
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import urlsplit

from botocore.credentials import ReadOnlyCredentials

_SERVICE = "sqs"


class Signer:
    """Signs POSTs to one endpoint."""

    def __init__(self, endpoint: str, region: str) -> None:
        parts = urlsplit(endpoint)
        self._host = parts.netloc.rpartition("@")[2]
        if (parts.scheme, parts.port) in (("http", 80), ("https", 443)):
            self._host = self._host.rpartition(":")[0]  # as HTTP clients send it
        self._path = parts.path or "/"
        self._region = region

    def headers(
        self,
        body: bytes,
        credentials: ReadOnlyCredentials,
        *,
        content_type: str,
        target: str,
        now: datetime | None = None,
    ) -> dict[str, str]:
        """Return all headers of the request, `Authorization` among them."""
        time = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
        signed = {
            "content-type": content_type,
            "host": self._host,
            "x-amz-date": time,
            **({"x-amz-security-token": credentials.token} if credentials.token else {}),
            "x-amz-target": target,
        }
        names = ";".join(signed)
        canonical = "\n".join(
            [
                "POST",
                self._path,
                "",
                *(f"{name}:{value}" for name, value in signed.items()),
                "",
                names,
                hashlib.sha256(body).hexdigest(),
            ]
        )
        scope = f"{time[:8]}/{self._region}/{_SERVICE}/aws4_request"
        hashed = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{time}\n{scope}\n{hashed}"
        key = _signing_key(credentials.secret_key, time[:8], self._region)
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        return {
            "Content-Type": content_type,
            "X-Amz-Target": target,
            "X-Amz-Date": time,
            **({"X-Amz-Security-Token": credentials.token} if credentials.token else {}),
            "Authorization": (
                f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, "
                f"SignedHeaders={names}, Signature={signature}"
            ),
        }


@lru_cache(maxsize=4)
def _signing_key(secret_key: str, day: str, region: str) -> bytes:
    key = f"AWS4{secret_key}".encode()
    for part in (day, region, _SERVICE, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
