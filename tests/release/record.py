"""What this release sends and stores: `python tests/release/record.py FILE` in its tree writes it.

One file for each release, kept forever: messages of it may be on the queue, in the dead-letter
queue and in backups, and its hashes are in the database. Uses only names that every release since
the first has; what a release does not know yet (an event's type, a guest's scope) is left out.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, os.getcwd())

EVENTS: list[dict[str, Any]] = [
    {
        "event_id": f"sample-{event_type}",
        "event_type": event_type,
        "order_id": "0f3d4a52-8c3e-4b0e-9f0e-3a1b2c3d4e5f",
        "payment_id": ""
        if event_type == "order.confirmed"
        else "8c0e9f0e-4a52-4b0e-9f0e-3a1b2c3d4e5f",
        "user_id": "guest",
        "amount_rupiah": 189_000,
        "created_at": created_at,
        **extra,
    }
    for event_type, created_at, extra in [
        ("order.confirmed", "2026-11-11T00:00:01+07:00", {}),
        ("payment.processed", "2026-11-11T00:03:20.123456+07:00", {"request_id": "r-1"}),
        ("payment.failed", "2026-11-10T17:05:00Z", {"reason": "kartu ditolak ✗"}),
        ("payment.refunded", "2026-11-12T09:30:00+00:00", {"refund": {"key": "R1", "n": 1}}),
        ("order.expired", "2026-11-11T00:30:01.5+07:00", {}),
        ("payment.reported", "2026-11-11T00:03:19Z", {"notification": 7}),
    ]
]
NOTIFICATIONS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "notifications.json").read_text()
)
EVENT_IDS = [
    ["order.confirmed", "0f3d4a52-8c3e-4b0e-9f0e-3a1b2c3d4e5f"],
    ["midtrans", "57d5293c-e65f-4a29-95e4-5959c3fa335b", "settled", "ä"],
]
GUESTS = ["sari@buyer.example", "Sari@Buyer.Example", "kulit.cantik+ß@buyer.example"]
CHECKOUT: dict[str, Any] = {
    "items": [{"sku": "CLN-GEL-100", "quantity": 2}, {"sku": "SRM-VTC-030", "quantity": 1}],
    "email": "sari@buyer.example",
    "payment_method": "midtrans",
    "language": "id",
}


def recorded() -> dict[str, Any]:
    """Return the messages and the hashes of this tree's code."""
    from skincare.local.sqs import CLIENT_ENVIRONMENT, sqs_endpoint

    os.environ |= {**CLIENT_ENVIRONMENT, "DJANGO_SETTINGS_MODULE": "skincare.settings"}
    os.environ |= {"APP_ENV": "development", "ENV_FILE": "", "LOG_LEVEL": "ERROR"}
    with sqs_endpoint() as endpoint:
        os.environ["SQS_ENDPOINT_URL"] = endpoint
        import boto3

        client: Any = boto3.client("sqs", endpoint_url=endpoint, region_name="ap-southeast-3")
        url = client.create_queue(QueueName="skincare-order-events")["QueueUrl"]
        os.environ["ORDER_EVENTS_QUEUE_URL"] = url
        import django

        django.setup()
        from django.db.migrations.loader import MigrationLoader

        from orders import idempotency
        from orders.idempotency import body_hash
        from payments.providers import provider
        from skincare.events import schema
        from skincare.events.schema import parse_event, payload_hash

        known = [event for event in EVENTS if event["event_type"] in vars(schema).values()]
        scope_of = getattr(idempotency, "scope_of", None)
        return {
            "migrations": sorted(MigrationLoader(None).disk_migrations),
            "events": [
                {
                    "document": event,
                    "payload_hash": payload_hash(parse_event(event)),
                    "message": message,
                }
                for event, message in zip(known, sent(client, url, known), strict=True)
            ],
            "checkouts": [{"body": CHECKOUT, "body_hash": body_hash(CHECKOUT)}],
            "guests": [
                {"email": email, "scope": scope_of("guest", email)}
                for email in (GUESTS if scope_of else [])
            ],
            "event_ids": [
                {"parts": parts, "event_id": schema.new_event_id(*parts)} for parts in EVENT_IDS
            ],
            "notifications": [
                {
                    **sample,
                    "identity": provider(sample["provider"]).parse(sample["document"]).identity,
                }
                for sample in NOTIFICATIONS
            ],
        }


def sent(client: Any, url: str, events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Send each event as this tree's relay does, and yield what stands on the queue then."""
    from skincare.celery import app
    from skincare.events.routing import task_for
    from skincare.events.schema import parse_event

    for event in events:
        app.send_task(
            task_for(event["event_type"]),
            args=[parse_event(event).document()],
            task_id=event["event_id"],
        )
        (message,) = client.receive_message(
            QueueUrl=url, WaitTimeSeconds=5, MessageAttributeNames=["All"]
        )["Messages"]
        client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        attributes = message.get("MessageAttributes", {})
        yield {"Body": message["Body"], "MessageAttributes": attributes}


if __name__ == "__main__":
    text = json.dumps(recorded(), indent=2, ensure_ascii=False, sort_keys=True)
    Path(sys.argv[1]).write_text(f"{text}\n")
