"""What a connection of this transport knows about its application, carried in its options."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from skincare.sqs.decoder import BareMessageAdapter
from skincare.sqs.policy import SQSPolicy

#: The key of the wiring in Celery's `broker_transport_options`.
OPTION = "skincare_sqs"


@dataclass(frozen=True)
class Wiring:
    """Made once by `configure`; every connection and channel of the application reads it."""

    policy: SQSPolicy
    #: URL of each queue by its name in Celery.
    queues: Mapping[str, str]
    region: str
    #: None means the endpoint of the region at AWS.
    endpoint_url: str | None
    #: How a bare document becomes a task; None quarantines bare documents.
    adapter: BareMessageAdapter | None
    #: Returns the application's tasks by name. Asked late: to list them, Celery loads them all.
    tasks: Callable[[], Mapping[str, Any]]
