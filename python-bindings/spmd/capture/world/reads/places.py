"""Places in objects, which a step reads or writes: which there are, how a place is read, and how errors name it."""
from __future__ import annotations

import collections
import enum
import warnings
from typing import Any, Callable, NamedTuple

from .values import ABSENT, MAPPINGS


class Kind(enum.Enum):
    """What is read of a holder."""

    ATTRIBUTE = enum.auto()  # the entry `key` of its __dict__
    COMPUTED = enum.auto()  # what getattr() gives for `key`: slots, and attributes that code of C computes
    MEMBER = enum.auto()  # what the class `holder`, or one of its bases, defines as `key`
    ITEM = enum.auto()  # the entry `key` of a dict, list or deque
    CONTAINED = enum.auto()  # whether `key` is in a dict
    CONTENTS = enum.auto()  # all entries, in their order
    SIZE = enum.auto()  # the number of entries
    CELL = enum.auto()  # the variable of a closure
    GLOBAL = enum.auto()  # the entry `key` of a module's globals
    CONTEXT = enum.auto()  # the value of a context variable
    CLASS = enum.auto()  # the class of an instance
    STATE = enum.auto()  # how far an iterator is
    FILE = enum.auto()  # what the method `key` of files.File tells of a path


class Read(NamedTuple):
    """A place in a holder."""

    kind: Kind
    key: Any


def look_up(cls: type, name: str) -> Any:
    """What a class or one of its bases defines, as it stands there: no descriptor is called."""
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return ABSENT


def _item(holder: Any, key: Any) -> Any:
    try:
        return holder.get(key, ABSENT) if type(holder) in (dict, collections.OrderedDict) else \
            dict.get(holder, key, ABSENT) if isinstance(holder, dict) else holder[key]
    except (LookupError, TypeError):
        return ABSENT


def contents(container: Any) -> tuple[Any, ...]:
    """The entries of a container, keys and values of a dict; of a large one the number of entries."""
    if len(container) > 10_000:  # data, not a configuration
        return (len(container),)
    if isinstance(container, MAPPINGS):
        return (*container.keys(), *container.values())
    return tuple(container)


def _attribute(holder: Any, key: str) -> Any:
    try:
        return getattr(holder, key)
    except Exception:  # an empty slot, or a class that raises another error
        return ABSENT


def _cell(holder: Any, key: Any) -> Any:
    try:
        return holder.cell_contents
    except ValueError:
        return ABSENT


def _state(iterator: Any) -> str:
    """What a copy of an iterator begins with, as text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that iterators will not be copied in later versions of Python
            return repr(iterator.__reduce__())
    except TypeError:
        return repr(iterator)


READERS: dict[Kind, Callable[[Any, Any], Any]] = {
    Kind.ATTRIBUTE: lambda holder, key: holder.__dict__.get(key, ABSENT),
    Kind.COMPUTED: _attribute,
    Kind.MEMBER: look_up,
    Kind.ITEM: _item,
    Kind.CONTAINED: lambda holder, key: key in holder,
    Kind.CONTENTS: lambda holder, key: contents(holder),
    Kind.SIZE: lambda holder, key: len(holder),
    Kind.CELL: _cell,
    Kind.GLOBAL: lambda holder, key: holder.get(key, ABSENT),
    Kind.CONTEXT: lambda holder, key: holder.get(ABSENT),
    Kind.CLASS: lambda holder, key: type(holder),
    Kind.STATE: lambda holder, key: _state(holder),
    Kind.FILE: lambda holder, key: getattr(holder, key)(),
}


def path_of(label: str, read: Read) -> str:
    """How errors name a place."""
    if read.kind in (Kind.ATTRIBUTE, Kind.COMPUTED, Kind.MEMBER):
        return f"{label}.{read.key}"
    if read.kind in (Kind.ITEM, Kind.CONTAINED):
        return f"{label}[{read.key!r}]"
    if read.kind is Kind.GLOBAL:
        return str(read.key)
    prefix = {Kind.SIZE: 'the size of ', Kind.CLASS: 'the class of ', Kind.FILE: 'the file '}.get(read.kind, '')
    return f'{prefix}{label}'
