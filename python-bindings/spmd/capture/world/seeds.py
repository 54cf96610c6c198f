"""Random generators of Python and numpy that a step seeds before it draws of them: what it draws is the same in every step.

transformers' BigBird does so in every forward, to choose its random blocks. Its numbers are constants of the graph then;
where eager would leave the generator, each call leaves it, too.
"""
from __future__ import annotations

import contextlib
import functools
import random
import sys
from typing import Any, Callable, Iterator

from ..observe import patches
from .host_state import host_generator_states


class SeededGenerators:
    """Those of one trace, by the name of their library."""

    def __init__(self) -> None:
        self._seeded: set[str] = set()
        self._put: list[Callable[[], None]] = []

    def __contains__(self, library: str) -> bool:
        return library in self._seeded

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """While entered, seeding a generator of which nothing was drawn so far is noted."""
        generators: list[tuple[str, patches.Patch, Callable, Callable]] = [
            ("random", patches.SEED, random.getstate, random.setstate)]
        if (numpy := sys.modules.get("numpy")) is not None:
            generators.append(("numpy", patches.SEED_OF_NUMPY, numpy.random.get_state, numpy.random.set_state))
        before = host_generator_states()

        def noting(library: str, original: Callable) -> Callable:
            def seed(*args: Any, **options: Any) -> Any:
                values = (*args, *options.values())
                if values and values[0] is not None and host_generator_states()[library] == before[library]:
                    self._seeded.add(library)
                return original(*args, **options)
            return seed

        with patches.replaced({patch: noting(library, patch.value()) for library, patch, *_ in generators}):
            yield
        self._put = [functools.partial(put, state()) for library, _, state, put in generators if library in self._seeded]

    def put(self) -> None:
        """Leaves the generators where eager's step does."""
        for put in self._put:
            put()
