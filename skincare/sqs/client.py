"""The blocking SQS client, for everything outside the worker's event loop."""

from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from skincare.sqs.policy import SQSPolicy

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


def make_client(
    *, region: str, endpoint_url: str | None, policy: SQSPolicy, attempts: int | None = None
) -> "SQSClient":
    """Return a boto3 SQS client that gives up when the policy says so.

    Credentials come from boto3's default chain. `attempts` replaces the policy's number of tries.
    botocore's own defaults are 60 s for the connection, 60 s for the answer, and 5 tries.
    """
    # A session of its own: boto3's shared default session is not safe to use from several threads.
    session = boto3.session.Session(region_name=region)
    return session.client(
        "sqs",
        endpoint_url=endpoint_url,
        config=Config(
            connect_timeout=policy.connect_timeout,
            read_timeout=policy.read_timeout,
            retries={"mode": "standard", "total_max_attempts": attempts or policy.attempts},
        ),
    )
