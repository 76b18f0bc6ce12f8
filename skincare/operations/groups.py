"""The two groups of people: `operator` looks, retries and redrives; `finance` decides on money."""

from typing import Any, Final

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
    "payments.view_payment",
    "payments.view_paymentnotification",
    "payments.view_paymentrefund",
)
PERMISSIONS: Final[dict[str, tuple[str, ...]]] = {
    OPERATOR: (
        *_SEEN_BY_BOTH,
        "events.replay_event",
        "events.skip_event",
        "events.redrive_dead_letters",
        "events.discard_dead_letters",
    ),
    FINANCE: (
        *_SEEN_BY_BOTH,
        "orders.release_order",
        "payments.request_acceptance",
        "payments.accept_held",
        "payments.dismiss_held",
        "payments.match_notification",
    ),
}


def make_groups(apps: Any) -> None:
    """Make both groups with their permissions; repeatable. `apps` is a registry of models.

    Permissions themselves are made after all migrations, so they are made here first.
    """
    for label in ("events", "orders", "payments"):
        config = apps.get_app_config(label)
        # A migration's registry has no such module, and is asked for it.
        models_module = getattr(config, "models_module", None)
        config.models_module = models_module or True
        create_permissions(config, apps=apps, verbosity=0)
        config.models_module = models_module
    group_model = apps.get_model("auth", "Group")
    permission_model = apps.get_model("auth", "Permission")
    for name, permissions in PERMISSIONS.items():
        group, _ = group_model.objects.get_or_create(name=name)
        for permission in permissions:
            label, _, codename = permission.partition(".")
            group.permissions.add(
                permission_model.objects.get(content_type__app_label=label, codename=codename)
            )
