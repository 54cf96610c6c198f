"""Caches of functions (functools.lru_cache) that a step's code reaches: what a trace has put there is no value.

A mask or an angle that is computed once for each size would be a fake in every later call, compiled or eager. A cache may
forget at any time, so that one that a trace has filled forgets.
"""
from __future__ import annotations

import contextlib
import functools
import gc
from typing import Any, Iterable, Iterator

from ...torch_api.tracing import FakeTensor, pytree


CachedFunction = type(functools.lru_cache(len))


@contextlib.contextmanager
def forgetting_fakes(caches: Iterable[Any]) -> Iterator[None]:
    """When this is left, no fake that came meanwhile is in one of these caches."""
    before = [(cache, cache.cache_info().misses) for cache in caches]
    try:
        yield
    finally:
        for cache, misses in before:
            if cache.cache_info().misses != misses and _has_fakes(cache):
                cache.cache_clear()


def _has_fakes(cache: Any) -> bool:
    entries = [entry for part in gc.get_referents(cache) if isinstance(part, dict) for entry in part.values()]
    # Of a cache that may be full, entries are links of a list.
    found = [value for entry in entries for value in (gc.get_referents(entry) if "lru_list" in type(entry).__name__ else (entry,))]
    return any(isinstance(leaf, FakeTensor) for leaf in pytree.tree_leaves(found))
