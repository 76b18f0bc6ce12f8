"""manage.py seed_catalogue: fill the shop with products."""

from typing import Any

from django.core.management.base import BaseCommand

from orders.catalogue import seed


class Command(BaseCommand):
    help = "Create the demonstration products, or update their texts and prices. Repeatable."

    def handle(self, *args: Any, **options: Any) -> None:
        seeded = seed()
        self.stdout.write(f"{seeded.created} products created, {seeded.updated} updated")
