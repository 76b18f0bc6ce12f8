"""The order of the tests that share one deployment."""

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what is marked `ecs(last=True)` last of its module: it removes what the others look at.

    Behind another module's tests the deployment would be made once more, for this test alone.
    """
    for item in [item for item in items if _is_last(item)]:
        end = max(n for n, other in enumerate(items) if other.path == item.path)
        items.remove(item)
        items.insert(end, item)


def _is_last(item: pytest.Item) -> bool:
    marker = item.get_closest_marker("ecs")
    return bool(marker and marker.kwargs.get("last"))
