"""The order of the tests that share one deployment."""

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what is marked `ecs(last=True)` last: it removes what the others look at."""

    def is_last(item: pytest.Item) -> bool:
        marker = item.get_closest_marker("ecs")
        return bool(marker and marker.kwargs.get("last"))

    items.sort(key=is_last)
