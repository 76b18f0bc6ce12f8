"""Signatures are those that botocore makes."""

from datetime import UTC, datetime

import botocore.auth
import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import given
from hypothesis import strategies as st

from skincare.sqs.signing import Signer

TYPE = "application/x-amz-json-1.0"
NOW = datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC)


def botocores(
    endpoint: str, region: str, body: bytes, credentials: ReadOnlyCredentials, target: str
) -> dict[str, str]:
    request = AWSRequest(
        method="POST",
        url=endpoint,
        data=body,
        headers={"Content-Type": TYPE, "X-Amz-Target": target},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.auth, "get_current_datetime", lambda: NOW.replace(tzinfo=None))
        botocore.auth.SigV4Auth(credentials, "sqs", region).add_auth(request)
    return dict(request.headers.items())


@given(
    endpoint=st.sampled_from(
        [
            "https://sqs.eu-west-1.amazonaws.com/",
            "http://127.0.0.1:4566/",
            "https://sqs.example.com:443/",
            "http://sqs.example.com:80/",
            "https://vpce-1.sqs.ap-southeast-3.vpce.amazonaws.com/path/",
        ]
    ),
    region=st.sampled_from(["eu-west-1", "ap-southeast-3"]),
    body=st.binary(max_size=200),
    secret=st.text("abcDEF123+/", min_size=1, max_size=40),
    token=st.none() | st.text("abcDEF123+/=", min_size=1, max_size=80),
    action=st.sampled_from(["ReceiveMessage", "DeleteMessageBatch"]),
)
def test_a_request_has_the_signature_that_botocore_gives_it(
    endpoint: str, region: str, body: bytes, secret: str, token: str | None, action: str
) -> None:
    credentials = ReadOnlyCredentials("AKIDEXAMPLE", secret, token, None)
    target = f"AmazonSQS.{action}"

    headers = Signer(endpoint, region).headers(
        body, credentials, content_type=TYPE, target=target, now=NOW
    )

    assert headers == botocores(endpoint, region, body, credentials, target)


def test_the_key_is_of_its_day_and_its_credentials() -> None:
    signer = Signer("https://sqs.eu-west-1.amazonaws.com/", "eu-west-1")

    def signature(secret: str, now: datetime) -> str:
        credentials = ReadOnlyCredentials("AKIDEXAMPLE", secret, None, None)
        headers = signer.headers(b"{}", credentials, content_type=TYPE, target="t", now=now)
        return headers["Authorization"].rpartition("=")[2]

    tomorrow = NOW.replace(day=2)
    first = signature("a", NOW)
    assert len({first, signature("b", NOW), signature("a", tomorrow)}) == 3
    assert signature("a", NOW) == first
