"""Observes the Python that runs while a step is traced: each instruction that reads or writes an object, with its operands.

The observer gets an event before each instruction of the code that scope.py names (events.py). Tables by code and offset say which
instructions matter. Everything else runs at full speed.
"""
from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import sys
import types
from typing import Any, Iterator

import torch
import torch.distributed

from ...errors import CaptureError
from . import calls
from .attributes import read_function
from .events import events
from .files import opened
from .instructions import Handler, table_of
from .operand_stack import function_id, function_of, is_layout_known, operands
from .records import Records
from .scope import is_called_to_trace, is_observed, is_of_python


class Observer:
    """Records what the code of one trace reads and writes."""

    def __init__(self, records: Records):
        self.records = records
        self.failure: BaseException | None = None
        self.seen: set[tuple[int, str]] = set()  # attributes that were read, by the ids of objects
        self._functions: set[int] = set()  # ids of those that have run
        self._tables: dict[int, tuple[types.CodeType, dict[int, tuple[Handler, Any]] | None]] = {}
        self._frame: types.FrameType | None = None
        records.line = self._line
        records.frame = lambda: self._frame

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """While entered, the code of this thread is observed."""
        if not is_supported():
            version = ".".join(map(str, sys.version_info[:3]))
            raise CaptureError(f"Python {version} is not supported: the capture cannot observe the reads of a step\n  hint: "
                               "use CPython 3.11, 3.12 or 3.13")
        try:
            with opened(self._open), events(self):
                yield
        finally:
            self._frame = None

    def table_of(self, frame: types.FrameType) -> dict[int, tuple[Handler, Any]] | None:
        """As Watcher.table_of (events.py)."""
        code = frame.f_code
        known = self._tables.get(id(code))
        if known is None:
            known = self._tables[id(code)] = (code, table_of(code) if is_observed(code.co_filename, frame.f_globals, code.co_name) else None)
        if known[1] is not None and (number := function_id(frame)) not in self._functions:
            if is_of_python(code.co_filename) and is_called_to_trace(frame):
                return known[1]
            self._functions.add(number)
            self._frame = frame
            read_function(self.records, function_of(frame))
        return known[1]

    def handle(self, frame: types.FrameType, found: tuple[Handler, Any]) -> None:
        """As Watcher.handle: an observer that raises would be removed."""
        self._frame = frame
        try:
            found[0](self, frame, found[1])
        except Exception as error:
            self.failure = self.failure or error

    def _open(self, path: str, frame: types.FrameType) -> None:
        self._frame = frame
        self.records.read_file(path)

    def _line(self) -> tuple[types.CodeType, int]:
        return (self._frame.f_code, self._frame.f_lasti)

    def call(self, frame: types.FrameType, function: Any, args: list[Any]) -> None:
        """The code of a frame calls a function. Nothing is to be said of a function that is observed itself."""
        if function is torch.distributed.get_rank:
            self.records.note_rank(frame)
        elif function is globals:
            self.records.register(frame.f_globals, "globals()")
        elif isinstance(function, (types.FunctionType, types.MethodType)):
            inner = function.__func__ if isinstance(function, types.MethodType) else function
            if not isinstance(inner, types.FunctionType):
                calls.call(self.records, inner, [function.__self__, *args])
            elif function is inspect.getattr_static:
                calls.call(self.records, getattr, args)
            elif not is_observed(inner.__code__.co_filename, inner.__globals__):
                calls.read_by_others(self.records, inner, args)
        else:
            calls.call(self.records, function, args)


@functools.cache
def is_supported() -> bool:
    """Whether the frames of this Python are as operand_stack.py reads them: on a known function."""
    found: list[Any] = []

    def probe(owner: Any) -> Any:
        return [1, owner.__doc__]

    class Probe:
        """Looks at one instruction."""

        def table_of(self, frame: types.FrameType) -> dict[int, Any] | None:
            return {i.offset: None if i.opname != "LOAD_ATTR" else i for i in dis.get_instructions(frame.f_code)} \
                if frame.f_code is probe.__code__ else None

        def handle(self, frame: types.FrameType, _: Any) -> None:
            found.append((operands(frame, 2), function_of(frame)))

    if not is_layout_known():
        return False
    with events(Probe()):
        probe(found)
    return len(found) == 1 and found[0][0][0] == 1 and found[0][0][1] is found and found[0][1] is probe
