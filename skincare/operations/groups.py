"""The two groups of people: `operator` looks, retries and redrives; `finance` decides on money."""

from typing import Any, Final

from django.apps import AppConfig
from django.apps import apps as global_apps
from django.contrib.auth.management import create_permissions

OPERATOR: Final = "operator"
FINANCE: Final = "finance"

_SEEN_BY_BOTH: Final = (
    "events.view_outboxevent",
    "events.view_processedevent",
    "events.view_operations",
    "orders.view_order",
    "orders.view_orderline",
    "orders.view_ordertransition",
    "orders.view_product",
    "orders.view_stockmovement",
    "payments.view_acceptance",
    "payments.view_hold",
    "payments.view_payment",
    "payments.view_paymentnotification",
    "payments.view_paymentrefund",
    "payments.view_refundrequest",
)
PERMISSIONS: Final[dict[str, tuple[str, ...]]] = {
    OPERATOR: (
        *_SEEN_BY_BOTH,
        "events.replay_event",
        "events.skip_event",
        "events.redrive_dead_letters",
        "events.discard_dead_letters",
        "orders.ship_order",
        "orders.receive_goods",
    ),
    FINANCE: (
        *_SEEN_BY_BOTH,
        "orders.release_order",
        "orders.ship_order",
        "payments.request_acceptance",
        "payments.accept_held",
        "payments.dismiss_held",
        "payments.match_notification",
        "payments.request_refund",
        "payments.agree_refund",
    ),
}


def update_groups(sender: AppConfig, apps: Any = global_apps, **_: Any) -> None:
    """Give both groups their permissions of the app `sender`, which has just been migrated.

    Sent for each app after every migrate, so a permission that a release adds reaches databases
    that exist already. One that a person has taken away comes back; one that a person has added
    stays. A permission whose migration is still to come is left out until then.
    """
    wanted = {
        name: {codename for label, codename in map(_parts, permissions) if label == sender.label}
        for name, permissions in PERMISSIONS.items()
    }
    if not any(wanted.values()):
        return
    try:
        groups = apps.get_model("auth", "Group").objects
        permissions = apps.get_model("auth", "Permission").objects
    except LookupError:  # nobody has migrated django.contrib.auth yet
        return
    # Django's own receiver, which makes the permissions, may come after this one.
    create_permissions(sender, apps=apps, verbosity=0)
    for name, codenames in wanted.items():
        group, _created = groups.get_or_create(name=name)
        group.permissions.add(
            *permissions.filter(content_type__app_label=sender.label, codename__in=codenames)
        )


def _parts(permission: str) -> tuple[str, str]:
    label, _, codename = permission.partition(".")
    return label, codename
