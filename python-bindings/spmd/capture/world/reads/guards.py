"""Compares what a step would read at the beginning of a call with what it read when it was traced."""
from __future__ import annotations

import dis
import types
from typing import Any, Callable, NamedTuple

from ...errors import Frame
from .records import READERS, Holder, Kind, Read, Records, path_of
from .values import ABSENT, CODE, TENSOR, TRACED, is_leaf, kept, same_leaf


class Difference(NamedTuple):
    """A guard that does not hold."""

    path: str
    before: Any
    now: Any
    frame: Frame

    def __str__(self) -> str:
        now, before = (repr(value) if is_leaf(value) else "another value" for value in (self.now, self.before))
        return f"'{self.path}' is {now}, it was {before}"


class ReadGuards:
    """Those of one program."""

    def __init__(self, records: Records | None = None):
        self._holders: list[Holder] = []
        self._by_id: dict[int, Holder] = {}
        self._keep: list[Any] = []
        if records is not None:
            for holder in records.holders.values():
                value = holder.get()
                if value is None or not holder.reads:
                    continue
                reads = {read: result for read, result in holder.reads.items()
                         if not _is_explained_by_the_trace(holder, read, value, result)}
                if reads:
                    holder.reads = reads
                    self._holders.append(holder)
                    self._by_id[id(value)] = holder
                    self._keep.append(value)

    def __len__(self) -> int:
        return sum(len(holder.reads) for holder in self._holders)

    def difference(self) -> Difference | None:
        """The first guard that does not hold; None if all hold."""
        for holder in self._holders:
            value = holder.get()
            if value is None:
                continue
            for read, result in holder.reads.items():
                now = READERS[read.kind](value, read.key)
                if now is result:
                    continue
                if not self._is_same(result, now, {}):
                    code, offset = holder.lines[read]
                    return Difference(path_of(holder.label, read), result, now, Frame(code.co_filename, _line_of(code, offset), code.co_name))
        return None

    def _is_same(self, before: Any, now: Any, compared: dict[tuple[int, int], bool]) -> bool:
        """Whether the step reads the same of two values: equal leaves, or objects of one class whose places that were read are the same."""
        now = kept(now)
        if before is now:
            return True
        if before is TENSOR or now is TENSOR or before is ABSENT or now is ABSENT:
            return False
        if is_leaf(before) or is_leaf(now):
            return same_leaf(before, now)
        pair = (id(before), id(now))
        if pair in compared:
            return compared[pair]
        compared[pair] = True  # of a circle
        same = compared[pair] = self._are_alike(before, now, compared)
        return same

    def _are_alike(self, before: Any, now: Any, compared: dict[tuple[int, int], bool]) -> bool:
        if type(before) is not type(now):
            return False
        if isinstance(before, tuple):
            return len(before) == len(now) and all(self._is_same(a, b, compared) for a, b in zip(before, now))
        if isinstance(before, types.MethodType):
            return self._is_same(before.__func__, now.__func__, compared) and self._is_same(before.__self__, now.__self__, compared)
        if isinstance(before, types.FunctionType):
            cells = zip(before.__closure__ or (), now.__closure__ or ())
            return before.__code__ is now.__code__ and self._is_same(before.__defaults__, now.__defaults__, compared) \
                and all(self._is_same(a, b, compared) for a, b in cells)
        if isinstance(before, CODE):
            return False
        holder = self._by_id.get(id(before))
        if holder is None:
            return True
        return all(self._is_same(result, READERS[read.kind](now, read.key), compared) for read, result in holder.reads.items())


def _is_explained_by_the_trace(holder: Holder, read: Read, value: Any, result: Any) -> bool:
    """What differs after the trace although the step has not written it: the trace itself had put something in its place."""
    if read.key in holder.written or None in holder.written:
        return False
    try:
        now = READERS[read.kind](value, read.key)
    except Exception:
        return True
    return now is not result and not ReadGuards()._is_same(result, now, {})


def _line_of(code: types.CodeType, offset: int) -> int:
    line = code.co_firstlineno
    for start, number in dis.findlinestarts(code):
        if start > offset:
            break
        line = number or line
    return line
