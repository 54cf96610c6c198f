"""Samples: tests whose cases are many run some of them in the suite, and all by `scripts/test --all`."""
from __future__ import annotations

import collections
import os
import random

import pytest

WHOLE = bool(os.environ.get("SPMD_TEST_ALL"))


@pytest.fixture(scope="session")
def whole() -> bool:
    """Whether a test that trains at length does so, or takes a part of it."""
    return WHOLE


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test that is marked with sample(every) runs one of so many of its cases. The test's name seeds the draw, so each run has
    the same ones. Every n-th case instead would leave out values of a parameter that has a multiple of n values."""
    if WHOLE:
        return
    cases: dict[object, list[pytest.Item]] = collections.defaultdict(list)
    for item in items:
        if item.get_closest_marker("sample"):
            cases[item.function].append(item)
    left: set[pytest.Item] = set()
    for function, own in cases.items():
        every = own[0].get_closest_marker("sample").args[0]
        kept = random.Random(function.__name__).sample(own, -(-len(own) // every))
        left.update(set(own) - set(kept))
    if left:
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = [item for item in items if item not in left]
