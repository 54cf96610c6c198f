"""Compares what a step would read at the beginning of a call with what it read when it was traced."""
from __future__ import annotations

import collections
import dis
import math
import types
import weakref
from typing import Any, NamedTuple

from ...errors import Frame
from ..device_meshes import is_made_of_meshes
from .fast_check import FastCheck, Place
from .places import READERS, Kind, Read, path_of
from .records import Holder, Records
from .scope import is_of_torch
from .values import ABSENT, BOUND, CODE, CONTAINERS, TENSOR, is_leaf, kept, same_leaf


class Difference(NamedTuple):
    """A place where a call finds something else."""

    path: str
    before: Any
    now: Any
    frame: Frame

    def __str__(self) -> str:
        now, before = (repr(value) if is_leaf(value) else "another object" for value in (self.now, self.before))
        return f"'{self.path}' is {now}, it was {before}" if now != before else f"'{self.path}' is another object"


class ReadGuards:
    """Those of one program: places, and what was read there."""

    def __init__(self, records: Records | None = None):
        self.is_repeatable = records is None or records.is_repeatable  # False: these guards hold for one call
        self._places: list[Place] = []
        self._origins: list[tuple[Holder, Read]] = []
        self._of: dict[int, list[Place]] = {}
        self._written: set[int] = set()  # the ids of objects that the step writes to: another object has its own program
        for holder in records.holders.values() if records is not None else ():
            if holder.is_gone():
                continue
            owner = holder.get()
            if holder.written and not isinstance(owner, (list, collections.deque)):  # a list is found where it is (grown_lists.py)
                self._written.add(id(owner))
            for read, value in holder.reads.items():
                if not _was_replaced_by_the_trace(holder, read, owner, value):
                    self._places.append(place := Place(owner, read.kind, read.key, value))
                    self._origins.append((holder, read))
                    self._of.setdefault(id(owner), []).append(place)
        self._fast: FastCheck | None = None

    def __len__(self) -> int:
        return len(self._places)

    def table(self) -> list[dict[str, Any]]:
        """The numbers, texts and flags that the step has read, each with its place and the line that read it first: constants of the graph."""
        rows = []
        for place, (holder, read) in zip(self._places, self._origins):
            if is_leaf(place.value) and place.value is not ABSENT and place.value is not TENSOR:
                frame = _frame_of(holder, read)
                value = place.value if type(place.value) in (bool, int, str) or type(place.value) is float and math.isfinite(place.value) \
                    else repr(place.value)
                rows.append({"path": path_of(holder.label, read), "value": value, "file": frame.file, "line": frame.line})
        return rows

    def difference(self) -> Difference | None:
        """The first place where a call would read something else; None if there is none."""
        if self._fast is None:
            self._fast = FastCheck(self._places)
        try:
            suspects = self._fast()
        except Exception:  # an entry or an attribute is gone
            suspects = range(len(self._places))
        for number in suspects:
            place = self._places[number]
            try:
                now = place.now()
            except Exception:
                now = ABSENT
            if not self._is_same(place.value, now, set()):
                holder, read = self._origins[number]
                return Difference(path_of(holder.label, read), place.value, now, _frame_of(holder, read))
            if is_leaf(now):
                self._fast.take(number, now)
        return None

    def is_like(self, other: ReadGuards) -> bool:
        """Whether these guards hold wherever others do."""
        values = {(id(place.owner), place.kind, repr(place.key)): place.value for place in other._places}
        return all((where := (id(place.owner), place.kind, repr(place.key))) in values and self._is_same(place.value, values[where], set())
                   for place in self._places)

    def _is_same(self, before: Any, now: Any, compared: set[tuple[int, int]]) -> bool:
        """Whether the step reads the same of two values: equal leaves, or objects of one class whose places that were read are the same."""
        now = kept(now)
        if before is now:
            return True
        if (before is None or before is ABSENT) and is_made_of_meshes(now):
            return True  # made once, at the capture, and kept (device_meshes.py)
        if before is TENSOR or now is TENSOR or before is ABSENT or now is ABSENT:
            return False
        if is_leaf(before) or is_leaf(now):
            return same_leaf(before, now)
        pair = (id(before), id(now))
        if pair in compared:  # of a circle, or compared before
            return True
        compared.add(pair)
        return self._are_alike(before, now, compared)

    def _are_alike(self, before: Any, now: Any, compared: set[tuple[int, int]]) -> bool:
        if type(before) is not type(now):
            return False
        if isinstance(before, tuple):
            return len(before) == len(now) and all(self._is_same(a, b, compared) for a, b in zip(before, now))
        if isinstance(before, types.MethodType):
            return self._is_same(before.__func__, now.__func__, compared) and self._is_same(before.__self__, now.__self__, compared)
        if isinstance(before, BOUND) and not isinstance(before.__self__, (types.ModuleType, type(None))):
            return before.__name__ == now.__name__ and self._is_same(before.__self__, now.__self__, compared)
        if isinstance(before, types.FunctionType):
            cells = zip(before.__closure__ or (), now.__closure__ or ())
            return before.__code__ is now.__code__ and self._is_same(before.__defaults__, now.__defaults__, compared) \
                and self._is_same(before.__kwdefaults__, now.__kwdefaults__, compared) \
                and all(a is b or self._is_same(READERS[Kind.CELL](a, None), READERS[Kind.CELL](b, None), compared) for a, b in cells)
        if isinstance(before, CODE) or id(before) in self._written:
            return False
        if isinstance(before, weakref.ref):
            return before() is not None and self._is_same(before(), now(), compared)
        places = self._of.get(id(before), ())
        if not places and not isinstance(before, CONTAINERS) and not hasattr(before, "__dict__"):  # which only code in C can read
            return _are_equal(before, now)
        if not places and is_of_torch(type(before).__module__):  # which code that is not observed may read
            return vars(before).keys() == vars(now).keys() and all(self._is_same(value, vars(now)[name], compared)
                                                                   for name, value in vars(before).items())
        return all(self._is_same(place.value, READERS[place.kind](now, place.key), compared) for place in places)


def _are_equal(a: Any, b: Any) -> bool:
    try:
        return (a == b) is True
    except Exception:  # of objects that cannot be compared
        return False


def _was_replaced_by_the_trace(holder: Holder, read: Read, owner: Any, value: Any) -> bool:
    """Whether the trace itself had put something else there: after the trace it is another value, and the step has not written it."""
    if read.key in holder.written or None in holder.written:
        return False
    try:
        now = READERS[read.kind](owner, read.key)
    except Exception:
        return True
    return now is not value and not ReadGuards()._is_same(value, now, set())


def _frame_of(holder: Holder, read: Read) -> Frame:
    code, offset = holder.lines[read]
    return Frame(code.co_filename, line_of(code, offset), code.co_name)


def line_of(code: types.CodeType, offset: int) -> int:
    line = code.co_firstlineno
    for start, number in dis.findlinestarts(code):
        if start > offset:
            break
        line = number or line
    return line
