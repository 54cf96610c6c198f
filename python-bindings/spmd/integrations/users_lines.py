"""The user's lines, for errors of a trainer's loop."""
from __future__ import annotations

from typing import Any

from ..capture.errors import Frame, where


def line_of(function: Any) -> str:
    """Where a function is defined, as Python prints it."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return where([] if code is None else [Frame(code.co_filename, code.co_firstlineno, code.co_name)])


def is_overridden(owner: Any, name: str, base: type) -> bool:
    """Whether another class than `base`, or the object itself, defines a method of an object or a class."""
    found = getattr(owner, name, None)
    return found is not None and getattr(found, "__func__", found) is not getattr(base, name, None)


def overridden(owner: Any, names: tuple[str, ...], base: type) -> list[tuple[str, Any]]:
    """The methods, of those that `base` has, which another class or the object itself defines."""
    return [(name, getattr(owner, name)) for name in names if is_overridden(owner, name, base)]


class Methods:
    """Some methods of a class, to find objects that override one of them, in a few microseconds before each batch. No result is
    kept: a method may be replaced at any time, in the object, its class or the base."""

    def __init__(self, base: type, *names: str):
        self._functions = [(name, getattr(base, name)) for name in names]

    def is_overridden_by(self, owner: Any) -> bool:
        """Whether an object has another method than the base in place of one of these."""
        kind, own = type(owner), owner.__dict__
        return any([getattr(kind, name) is not function or name in own for name, function in self._functions])
