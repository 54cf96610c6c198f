"""What the Python of a step has read and written: the holder of each value, the place in it, and the value at the beginning of the step.

A holder is an object that existed before the trace: an instance, a class, a dict, a list, a module's globals, a cell of a closure.
Objects that the step makes itself are holders, too, until they are gone: nothing that is read from them can change before the next call.
"""
from __future__ import annotations

import array
import collections
import random
import sys
import types
import weakref
from typing import Any, Callable, Iterator

import torch

from ...errors import Frame
from .files import File
from .places import READERS, Kind, Read, contents, look_up, path_of
from .scope import is_of_python
from .values import ABSENT, BOUND, CONTAINERS, LEAVES, TRACED, is_leaf, kept


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


class Records:
    """The holders of one trace."""

    def __init__(self, is_ignored: Callable[[Any], bool]):
        self._is_ignored = is_ignored
        self.holders: dict[int, Holder] = {}
        self.line: Callable[[], tuple[types.CodeType, int]] = lambda: (compile("", "", "exec"), 0)
        self.frame: Callable[[], types.FrameType | None] = lambda: None  # of the code that reads
        self._containers: dict[int, tuple[Any, str]] = {}  # that objects lead to which may have been there before the trace
        self._owners: dict[int, Any] = {}  # objects, by the id of their __dict__
        self._objects: dict[int, Any] = {}  # that were there before the trace
        self.is_repeatable = True  # False: the step puts an object that it makes where it reads; each call has to run its Python
        self.fresh: set[int] = set()  # the ids of cells that the step makes
        self.with_modes: frozenset[int] = frozenset()  # the ids of modules whose train() or eval() is in the key of a call
        self.rank: Frame | None = None  # where the step asks for the number of its process
        self.taken: list[tuple[Any, str, tuple[types.CodeType, int]]] = []  # iterators that the step moves on
        self._files: dict[str, File] = {}

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
            elif isinstance(value, BOUND) and not isinstance(value.__self__, types.ModuleType) and depth < 4 and not _is_shared(value.__self__):
                self.register(value.__self__, label, was_there, depth + 1)
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

    def read_file(self, path: str, what: str = "contents") -> None:
        """The step reads a file or a folder; `what`: a method of File."""
        file = self._files.setdefault(path, File(path))
        self.read(file, Read(Kind.FILE, what), getattr(file, what)(), lambda: path)

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


def _is_shared(generator: Any) -> bool:
    """The generator of the functions of `random` and `numpy.random`; what a step draws of it, side_effects.py knows."""
    numpy = sys.modules.get("numpy")
    return generator is random.random.__self__ or numpy is not None and generator is getattr(numpy.random.rand, "__self__", None)  # type: ignore[attr-defined]


def _is_random(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return isinstance(value, random.Random) or numpy is not None and isinstance(value, (numpy.random.Generator, numpy.random.RandomState))


def _name_of(value: Any) -> str:
    return value.__name__ if isinstance(value, (type, types.ModuleType)) else type(value).__name__
