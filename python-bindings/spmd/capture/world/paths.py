"""How a place in the user's objects is written and read: `self.teachers[0].scale`, `OPTIONS['rate']`.

Every walker, error and name of a constant uses this syntax:

    path      = [name] step*
    step      = "." name  |  "[" repr of a key or an index "]"  |  "[tensor " number "]"
"""
from __future__ import annotations

import functools
import re
from typing import Any, Callable, NamedTuple

import torch

_OPENING, _CLOSING, _QUOTES = "[({", "])}", "'\""


def attribute_path(path: str, name: str) -> str:
    """The attribute `name` of what is at `path`; an empty `path` is the model or the step itself."""
    return f"{path}.{name}" if path else name


def entry_path(path: str, key: Any, number: int = 0) -> str:
    """The entry of a container under `key`. A key that is a tensor is written as its `number` among the keys, because
    its repr would read its values."""
    return f"{path}[tensor {number}]" if isinstance(key, torch.Tensor) else f"{path}[{key!r}]"


def split_path(path: str) -> tuple[str, list[str]]:
    """The name that a path begins with, and its steps: "a.b['x.y']" gives ("a", [".b", "['x.y']"])."""
    begins, depth, quote, position = [], 0, "", 0
    while position < len(path):
        character = path[position]
        if quote:
            position += character == "\\"
            quote = "" if character == quote else quote
        elif depth and character in _QUOTES:
            quote = character
        elif not depth and character in ".[":
            begins.append(position)
            depth += character == "["
        elif depth:
            depth += (character in _OPENING) - (character in _CLOSING)
        position += 1
    ends = [*begins[1:], len(path)]
    return path[:begins[0]] if begins else path, [path[begin:end] for begin, end in zip(begins, ends)]


def root_of(path: str) -> str:
    """The name that a path begins with."""
    return split_path(path)[0]


def last_attribute(path: str) -> str | None:
    """The last attribute on a path; None for a path of entries."""
    return next((step[1:] for step in reversed(split_path(path)[1]) if step[0] == "."), None)


def is_below(path: str, outer: str) -> bool:
    """True for the path of a part of what is at `outer`."""
    return path.startswith((f"{outer}[", f"{outer}."))


def identifier(path: str) -> str:
    """The path as an identifier: "teacher" for "self.teacher", "teachers_0" for "teachers[0]"."""
    return re.sub(r"\W+", "_", path.removeprefix("self.")).strip("_") or "held"


class Place(NamedTuple):
    """A path, and how to find again what is there.

    `get` gives what is there now, or raises LookupError, AttributeError, TypeError or ValueError when the path leads
    nowhere. `containers` gives the lists and dicts on the path: code may read all entries of them. `others` are further
    ways to the same object (`self.current = self.weights[0]`); the code may take any of them.
    """

    path: str
    get: Callable[[], Any]
    containers: tuple[Callable[[], Any], ...] = ()
    others: tuple[Callable[[], Any], ...] = ()

    @classmethod
    def always(cls, path: str, value: Any) -> Place:
        """A place that keeps this value."""
        return cls(path, functools.partial(same, value))

    def __repr__(self) -> str:
        return f"Place({self.path!r})"

    def now(self) -> Any:
        """What is there now; None when the path leads nowhere, or another way leads to another object."""
        try:
            found = self.get()
            return found if all(other() is found for other in self.others) else None
        except (LookupError, AttributeError, ValueError, TypeError):
            return None

    def sizes(self) -> tuple[int, ...]:
        """How many entries the containers on the path have."""
        return tuple(len(container()) for container in self.containers)


def same(value: Any) -> Any:
    """The value itself: a getter of what never changes."""
    return value
