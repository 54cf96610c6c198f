"""A function made of guards, which compares identities: most guards hold because nothing was touched, and a call checks all of them.

A place whose object is another one is looked at again by guards.py, which compares values.
"""
from __future__ import annotations

import operator
import types
from typing import Any, Callable, Sequence

import torch

from .places import READERS, Kind, contents
from .values import ABSENT, TENSOR, Digest


def _has(container: Any, entries: tuple[Any, ...]) -> bool:
    """Whether a container has these very objects, in this order."""
    now = contents(container)
    return len(now) == len(entries) and all(map(operator.is_, now, entries))


class Place:
    """One place that a guard reads: the object, what is read of it, and what it was."""

    __slots__ = ("owner", "kind", "key", "value")

    def __init__(self, owner: Any, kind: Kind, key: Any, value: Any):
        self.owner, self.kind, self.key, self.value = owner, kind, key, value

    def now(self) -> Any:
        """What is there now."""
        return READERS[self.kind](self.owner, self.key)


class FastCheck:
    """Gives the numbers of the places whose object is no longer the one that it was."""

    def __init__(self, places: Sequence[Place]):
        self._names: dict[str, Any] = {"Tensor": torch.Tensor, "KeyError": KeyError}
        self._run = self._compiled(places)

    def __call__(self) -> list[int]:
        """The numbers of those places; raises where a place is gone."""
        return self._run()

    def take(self, number: int, value: Any) -> None:
        """`value` is equal to what was at a place."""
        self._names[f"v{number}"] = value

    def _compiled(self, places: Sequence[Place]) -> Callable[[], list[int]]:
        lines, owners = ["def check():", "    bad = []"], {}
        last = None
        for number, place in enumerate(places):
            owner = owners.setdefault(id(place.owner), f"o{len(owners)}")
            self._names[owner], self._names[f"v{number}"] = place.owner, place.value
            if place.kind is Kind.ATTRIBUTE and last != owner:
                lines.append(f"    d = {owner}.__dict__")
                last = owner
            lines.append(f"    if {self._test(place, owner, number)}: bad.append({number})")
        exec(compile("\n".join([*lines, "    return bad"]), "<guards>", "exec"), self._names)
        return self._names["check"]

    def _test(self, place: Place, owner: str, number: int) -> str:
        """An expression that is true where the place has another object."""
        key = repr(place.key) if type(place.key) in (str, int, bool, types.NoneType) else self._constant(place.key)
        table = "d" if place.kind is Kind.ATTRIBUTE else owner
        if place.kind in (Kind.ATTRIBUTE, Kind.GLOBAL, Kind.ITEM) and not (place.kind is Kind.ITEM and place.value is ABSENT):
            if place.value is ABSENT:
                return f"{key} in {table}"
            if place.value is TENSOR:
                return f"not isinstance({table}[{key}], Tensor)"
            if not isinstance(place.value, Digest):
                return f"{table}[{key}] is not v{number}"
        if place.kind is Kind.CELL and place.value is not ABSENT and place.value is not TENSOR and not isinstance(place.value, Digest):
            return f"{owner}.cell_contents is not v{number}"
        if place.kind is Kind.CLASS:
            return f"type({owner}) is not v{number}"
        if place.kind is Kind.SIZE:
            return f"len({owner}) != v{number}"
        if place.kind is Kind.CONTAINED:
            return f"({key} in {owner}) is not v{number}"
        if place.kind is Kind.CONTENTS and not any(entry is TENSOR or isinstance(entry, Digest) for entry in place.value):
            self._names["has"] = _has
            return f"not has({owner}, v{number})"
        self._names[f"r{number}"] = place.now
        return f"r{number}() is not v{number}"

    def _constant(self, key: Any) -> str:
        name = f"k{len(self._names)}"
        self._names[name] = key
        return name
