"""The two groups are brought up to date after every migrate."""

import pytest
from django.apps import apps as global_apps
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import AlterModelOptions
from django.db.models.signals import post_migrate

from orders.models import Order
from skincare.operations import groups
from skincare.operations.groups import FINANCE, OPERATOR, PERMISSIONS

pytestmark = pytest.mark.django_db


def permissions_of(name: str) -> set[str]:
    found = Permission.objects.filter(group__name=name).select_related("content_type")
    return {f"{one.content_type.app_label}.{one.codename}" for one in found}


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> str:
    """The permission that a release adds to those of the operators."""
    permission = "orders.wrap_order"
    added = {**PERMISSIONS, OPERATOR: (*PERMISSIONS[OPERATOR], permission)}
    monkeypatch.setattr(groups, "PERMISSIONS", added)
    return permission


def migrated(*, adding_it: bool) -> None:
    """Do what `migrate` does at its end, after the migration that adds the permission or before."""
    state = MigrationLoader(connection).project_state()
    if adding_it:
        known = Order._meta.permissions
        options = {"permissions": [*known, ("wrap_order", "Can wrap an order")]}
        AlterModelOptions("order", options).state_forwards("orders", state)
    for config in global_apps.get_app_configs():
        post_migrate.send(
            config, app_config=config, verbosity=0, interactive=False, using="default",
            apps=state.apps, plan=[],
        )  # fmt: skip


@pytest.mark.parametrize("name", [OPERATOR, FINANCE])
def test_an_empty_database_gets_both_groups(name: str) -> None:
    assert permissions_of(name) == set(PERMISSIONS[name])


def test_a_new_permission_reaches_a_database_that_exists(added: str) -> None:
    assert added not in permissions_of(OPERATOR)

    migrated(adding_it=True)

    assert permissions_of(OPERATOR) == {*PERMISSIONS[OPERATOR], added}
    assert permissions_of(FINANCE) == set(PERMISSIONS[FINANCE])


def test_a_new_permission_is_in_an_empty_database_too(added: str) -> None:
    Group.objects.all().delete()
    Permission.objects.all().delete()

    migrated(adding_it=True)

    assert permissions_of(OPERATOR) == {*PERMISSIONS[OPERATOR], added}


def test_a_permission_whose_migration_is_still_to_come_stops_no_migrate(added: str) -> None:
    Group.objects.all().delete()
    Permission.objects.all().delete()

    migrated(adding_it=False)

    assert permissions_of(OPERATOR) == set(PERMISSIONS[OPERATOR])


def test_what_a_person_added_to_a_group_stays() -> None:
    wanted = Permission.objects.get(codename="add_product")
    Group.objects.get(name=OPERATOR).permissions.add(wanted)

    call_command("migrate", verbosity=0)

    assert "orders.add_product" in permissions_of(OPERATOR)
