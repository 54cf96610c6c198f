"""What the Python of a step has read and written: the holder of each value, the place in it, and the value at the beginning of the step.

A holder is an object that existed before the trace: an instance, a class, a dict, a list, a module's globals, a cell of a closure.
Objects that the step makes itself are holders, too, until they are gone: nothing that is read from them can change before the next call.
"""
from __future__ import annotations

import array
import collections
import enum
import random
import sys
import types
import warnings
import weakref
from typing import Any, Callable, Iterator, NamedTuple

import torch

from ...errors import Frame
from .scope import is_of_python
from .values import ABSENT, CONTAINERS, LEAVES, MAPPINGS, TRACED, is_leaf, kept


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


class Read(NamedTuple):
    """A place in a holder."""

    kind: Kind
    key: Any


class Holder:
    """An object, what was read of it, and what was written. `label`: how errors name it."""

    __slots__ = ("_get", "label", "reads", "written", "before", "begun", "addends", "lines", "written_at")

    def __init__(self, value: Any, label: str):
        self.label = label
        self.reads: dict[Read, Any] = {}
        self.written: set[Any] = set()  # keys; None: its entries as a whole
        self.before: tuple[Any, ...] | None = None  # its entries before the first write
        self.written_at: tuple[types.CodeType, int] | None = None
        self.begun: dict[tuple[Kind, Any], Any] = {}  # what the step writes, as it was before
        self.addends: dict[tuple[Kind, Any], list[Any]] = {}  # what the step only adds to a number
        self.lines: dict[Read, tuple[types.CodeType, int]] = {}
        try:
            self._get: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            self._get = lambda: value

    def get(self) -> Any:
        """The object; None if it is gone."""
        return self._get()

    def is_gone(self) -> bool:
        """Whether only this holder has the object: the step has made it."""
        owner = self._get()
        return owner is None or isinstance(owner, types.CellType) and sys.getrefcount(owner) <= 3  # here, its holder and the call


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
}


class Records:
    """The holders of one trace."""

    def __init__(self, is_ignored: Callable[[Any], bool]):
        self._is_ignored = is_ignored
        self.holders: dict[int, Holder] = {}
        self.line: Callable[[], tuple[types.CodeType, int]] = lambda: (compile("", "", "exec"), 0)
        self._containers: dict[int, tuple[Any, str]] = {}  # that objects lead to which may have been there before the trace
        self._owners: dict[int, Any] = {}  # objects, by the id of their __dict__
        self._objects: dict[int, Any] = {}  # that were there before the trace
        self.is_repeatable = True  # False: the step puts an object that it makes where it reads; each call has to run its Python
        self.fresh: set[int] = set()  # the ids of cells that the step makes
        self.with_modes: frozenset[int] = frozenset()  # the ids of modules whose train() or eval() is in the key of a call
        self.rank: Frame | None = None  # where the step asks for the number of its process
        self.taken: list[tuple[Any, str, tuple[types.CodeType, int]]] = []  # iterators that the step moves on

    def holder(self, value: Any, label: Callable[[], str]) -> Holder:
        """That of an object; makes one where there is none."""
        found = self.holders.get(id(value))
        if found is None or found.get() is not value:
            known = self._objects.get(id(value))
            found = self.holders[id(value)] = Holder(value, label() if known is None else known[1])
        return found

    def is_known(self, container: Any) -> bool:
        """A container that was there before the trace, or shows one that was."""
        return id(container) in self._containers or type(container) is types.MappingProxyType

    def note_table(self, owner: Any, table: dict[str, Any]) -> None:
        """`table` is the __dict__ of `owner`."""
        self._owners[id(table)] = owner
        self._containers[id(table)] = (table, _name_of(owner))

    def owner_of(self, table: Any) -> Any:
        """The object whose __dict__ a dict is; None for other dicts."""
        return self._owners.get(id(table))

    def register(self, value: Any, label: str, was_there: bool = True, depth: int = 0) -> None:
        """Notes what an object leads to, which `was_there` before the trace or is not known to; what is inside of tuples, too."""
        if isinstance(value, tuple) and depth < 4:
            for entry in value:
                self.register(entry, label, was_there, depth + 1)
        elif not isinstance(value, (*LEAVES, *TRACED)):
            if isinstance(value, CONTAINERS):
                self._containers.setdefault(id(value), (value, label))
            if was_there:
                self._objects.setdefault(id(value), (value, label))

    def was_there(self, owner: Any, kind: Kind) -> bool:
        """Whether an object was there before the trace: the step does not make what it reaches from its function and its arguments."""
        return kind in (Kind.GLOBAL, Kind.MEMBER, Kind.CONTEXT) or kind is Kind.CELL and id(owner) not in self.fresh or id(owner) in self._objects

    def is_iterator(self, value: Any) -> bool:
        """An iterator of C, or a generator of random numbers, that was there before the trace."""
        return id(value) in self._objects and (_is_random(value) or not isinstance(look_up(type(value), "__next__"), (types.FunctionType, type(ABSENT))))

    def changed_containers(self) -> Iterator[tuple[str, tuple[types.CodeType, int]]]:
        """Lists, arrays and ordered dicts of numbers and texts that the step has changed. A set or a dict may be a cache, which a step fills once."""
        for holder in self.holders.values():
            owner = holder.get()
            if holder.before is not None and isinstance(owner, _ORDERED) and self.was_there(owner, Kind.CONTENTS):
                now = contents(owner)
                if all(isinstance(value, LEAVES) for value in (*now, *holder.before)) and now != holder.before:
                    yield holder.label, holder.written_at

    def note_rank(self, frame: types.FrameType) -> None:
        """The step asks for the number of its process."""
        self.rank = self.rank or Frame(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)

    def is_constant(self, value: Any) -> bool:
        """A value that each call can put in a place again: a number, a text, or a function, class or object that was there before."""
        return is_leaf(value) or isinstance(value, types.FunctionType) and not value.__closure__ or id(value) in self._objects and not isinstance(value, (*CONTAINERS, torch.nn.Module, torch.optim.Optimizer))

    def note_taken(self, iterator: Any) -> None:
        """The step moves an iterator on. Python's own library counts objects so (weakref.finalize)."""
        if self.is_iterator(iterator) and not is_of_python(self.line()[0].co_filename):
            self.taken.append((iterator, self._objects[id(iterator)][1], self.line()))

    def read(self, value: Any, read: Read, result: Any, label: Callable[[], str]) -> None:
        """`read` of the object `value` gave `result`."""
        holder = self.holder(value, label)
        if read in holder.reads:
            return
        if used := [place for place in holder.addends if place.key == read.key]:  # the number is used
            for place in used:
                holder.reads[place] = kept(holder.begun[place])
                holder.lines.setdefault(place, self.line())
            return
        is_new = not holder.written or read.key not in holder.written and (None not in holder.written or read.kind in _OF_OBJECTS)
        if is_new:
            if result is not ABSENT and self._is_ignored(result):
                return
            self.register(result, path_of(holder.label, read), self.was_there(value, read.kind))
            holder.reads[read] = kept(result)
            holder.lines[read] = self.line()
        elif holder.before is not None and read.kind in (Kind.CONTENTS, Kind.ITEM, Kind.SIZE):
            everything = Read(Kind.CONTENTS, None)  # what it was before the step has written to it
            holder.reads.setdefault(everything, holder.before)
            holder.lines.setdefault(everything, self.line())

    def read_contents(self, container: Any) -> None:
        """Everything in a container was read, at any depth."""
        owner = self.owner_of(container)
        label = self._containers.get(id(container), (None, _name_of(container)))[1]
        entries = contents(container)
        if owner is not None:
            for name, value in list(container.items()):
                self.read(owner, Read(Kind.ATTRIBUTE, name), value, lambda: label)
            return
        known = self.holders.get(id(container))
        if known is not None and Read(Kind.CONTENTS, None) in known.reads:
            return
        self.read(container, Read(Kind.CONTENTS, None), tuple(map(kept, entries)), lambda: label)
        if len(entries) <= 256:
            for number, entry in enumerate(entries):
                self.register(entry, f"{label}[{number}]", self.was_there(container, Kind.CONTENTS))
                if self.is_known(entry) and entry is not container:
                    self.read_contents(entry)

    def write(self, value: Any, key: Any, label: Callable[[], str]) -> None:
        """The entry or attribute `key` of an object is about to be written; None: any of its entries."""
        holder = self.holder(value, label)
        if isinstance(value, CONTAINERS) and holder.before is None and (key is None or not isinstance(value, dict)):
            holder.before = tuple(map(kept, contents(value)))
            holder.written_at = self.line()
            key = None
        holder.written.add(key)

    def write_place(self, owner: Any, read: Read, label: Callable[[], str], addend: Any = None) -> None:
        """A value is about to be put in a place; `addend`: the sum of it and the number that is there."""
        holder = self.holder(owner, label)
        if read not in holder.begun:
            holder.begun[read] = READERS[read.kind](owner, read.key)
            holder.lines.setdefault(read, self.line())
            if addend is not None and read not in holder.reads and type(holder.begun[read]) in (int, float):
                holder.addends[read] = [addend]
        elif addend is not None and read in holder.addends:
            holder.addends[read].append(addend)
        elif addend is None:
            holder.addends.pop(read, None)
        holder.written.add(read.key)


_OF_OBJECTS = (Kind.ATTRIBUTE, Kind.COMPUTED, Kind.MEMBER)


_ORDERED = (list, collections.deque, collections.OrderedDict, bytearray, array.array)


def _is_random(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return isinstance(value, random.Random) or numpy is not None and isinstance(value, (numpy.random.Generator, numpy.random.RandomState))


def _name_of(value: Any) -> str:
    return value.__name__ if isinstance(value, (type, types.ModuleType)) else type(value).__name__


def path_of(label: str, read: Read) -> str:
    """How errors name a place."""
    if read.kind in (Kind.ATTRIBUTE, Kind.COMPUTED, Kind.MEMBER):
        return f"{label}.{read.key}"
    if read.kind in (Kind.ITEM, Kind.CONTAINED):
        return f"{label}[{read.key!r}]"
    if read.kind is Kind.GLOBAL:
        return str(read.key)
    prefix = {Kind.SIZE: 'the size of ', Kind.CLASS: 'the class of '}.get(read.kind, '')
    return f'{prefix}{label}'
