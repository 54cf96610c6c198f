"""What a function's bytecode reads: `self.config.temperature`, `OPTIONS["scale"]`, `args.alpha`."""
from __future__ import annotations

import dis
import functools
import types
from typing import Any, Iterator, NamedTuple

_NOTHING = object()


class Item(NamedTuple):
    """The step of a path that reads an entry."""

    key: Any


@functools.lru_cache(maxsize=4096)
def read_paths(code: types.CodeType) -> tuple[tuple[Any, ...], ...]:
    """What code reads, functions defined in it included: ((False, "self"), "config", "temperature"), ((True,
    "OPTIONS"), Item("scale")). First is whether the name is a global, and the name; a local that has a global's name is
    none."""
    found = dict.fromkeys(_own_paths(code))
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            found.update((path, None) for path in read_paths(inner) if path[0][0] or path[0][1] in inner.co_freevars)
    return tuple(found)


def _own_paths(code: types.CodeType) -> Iterator[tuple[Any, ...]]:
    path: tuple[Any, ...] = ()
    constant: Any = _NOTHING
    aliases: dict[str, tuple[Any, ...]] = {}  # locals that stand for a path: config = self.config
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name == "STORE_FAST":
            aliases.pop(instruction.argval, None)
            if path and constant is _NOTHING:
                aliases[instruction.argval] = path
            elif path:
                yield path
            path, constant = (), _NOTHING
            continue
        if name in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW"):
            if path:
                yield path
            path, constant = ((name in ("LOAD_GLOBAL", "LOAD_NAME"), instruction.argval),), _NOTHING
            if path[0][1] in aliases and not path[0][0]:
                path = aliases[path[0][1]]
        elif name in ("LOAD_ATTR", "LOAD_METHOD") and path and constant is _NOTHING:
            path += (instruction.argval,)
        elif name in ("LOAD_CONST", "LOAD_SMALL_INT") and path:
            constant = instruction.argval if constant is _NOTHING else constant  # others follow: a default
        elif path[-1:] in (("get",), ("getenv",)) and isinstance(constant, str) and name in ("PRECALL", "CALL"):
            owner = (*path[:-1], "environ") if path[-1] == "getenv" else path[:-1]
            path, constant = (*owner, Item(constant)), _NOTHING
        elif path and constant is not _NOTHING and (name == "BINARY_SUBSCR" or instruction.argrepr == "[]"):
            if isinstance(constant, (str, int)):
                path += (Item(constant),)
            constant = _NOTHING
        elif name not in ("PUSH_NULL", "NOP", "CACHE", "EXTENDED_ARG", "PRECALL"):
            if path:
                yield path
            path, constant = (), _NOTHING
    if path:
        yield path
