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
    """Of n cases of a test that is marked with sample(every) it leaves n / every, rounded up: drawn by the test's name, so that
    they are the same ones in each run, and no value of one parameter goes with those of another."""
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
