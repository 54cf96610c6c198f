"""The user's lines, for errors of a trainer's loop."""
from __future__ import annotations

import linecache
from typing import Any


def line_of(function: Any) -> str:
    """Where a function is defined, as Python prints it."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        return "  (a method without a line)"
    file, line = code.co_filename, code.co_firstlineno
    return f'  File "{file}", line {line}, in {code.co_name}\n    {linecache.getline(file, line).strip()}'


def overridden(owner: Any, names: tuple[str, ...], base: type) -> list[tuple[str, Any]]:
    """The methods of an object or class, of those that `base` has, which another class or the object itself defines."""
    return [(name, found) for name in names
            if getattr(found := getattr(owner, name, None), "__func__", found) is not getattr(base, name, None)
            and found is not None]
