"""Samples: tests whose cases are many run some of them in the suite, and all by `scripts/test --all`."""
from __future__ import annotations

import collections
import os

import pytest

WHOLE = bool(os.environ.get("SPMD_TEST_ALL"))


@pytest.fixture(scope="session")
def whole() -> bool:
    """Whether a test that trains at length does so, or takes a part of it."""
    return WHOLE


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    numbers: collections.Counter[object] = collections.Counter()
    kept, left = [], []
    for item in items:
        marker = item.get_closest_marker("sample")
        number = numbers[item.function]
        numbers[item.function] += 1
        (left if marker and not WHOLE and number % marker.args[0] else kept).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept
