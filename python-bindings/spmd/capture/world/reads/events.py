"""An event before each instruction of observed code: sys.settrace in Python 3.11, sys.monitoring in later versions.

Both give a handler the frame. `Settrace` is a trace function, which observe/dispatch_mode.py turns off while an operator is traced.
`Monitoring` instruments the code objects that are observed; all other code runs as it is.
"""
from __future__ import annotations

import contextlib
import sys
import threading
import types
from typing import Any, Callable, Iterator, Mapping, Protocol

from ...errors import CaptureError
from .operand_stack import VERSION

_Table = Mapping[int, Any]


class Watcher(Protocol):
    """What gets the events."""

    def table_of(self, frame: types.FrameType) -> _Table | None:
        """Called when a function begins to run: the instructions that matter, by offset; None where the code is not observed."""

    def handle(self, frame: types.FrameType, found: Any) -> None:
        """An instruction of the table is about to run. Does not raise."""


@contextlib.contextmanager
def settrace(watcher: Watcher) -> Iterator[None]:
    """While entered, the watcher gets the events of this thread, and of threads that begin meanwhile."""
    def begin(frame: types.FrameType, event: str, _: Any) -> Callable | None:
        table = watcher.table_of(frame)
        if table is None:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False

        def local(frame: types.FrameType, event: str, _: Any) -> Any:
            if event == "opcode":
                found = table.get(frame.f_lasti)
                if found is not None:
                    watcher.handle(frame, found)
            return local
        return local

    before, of_threads = sys.gettrace(), threading.gettrace()
    threading.settrace(begin)
    sys.settrace(begin)
    try:
        yield
    finally:
        sys.settrace(before)
        threading.settrace(of_threads)


@contextlib.contextmanager
def monitoring(watcher: Watcher) -> Iterator[None]:
    """While entered, the watcher gets the events of this thread, and of threads that begin meanwhile."""
    monitor, others = sys.monitoring, {one.ident for one in threading.enumerate()} - {threading.get_ident()}
    tool = next((number for number in (4, 3) if monitor.get_tool(number) is None), None)
    if tool is None:
        raise CaptureError("the capture needs a free identifier of sys.monitoring to observe the step, but none is free\n  "
                           f"hint: end the tools {monitor.get_tool(3)!r} or {monitor.get_tool(4)!r}")
    tables: dict[int, tuple[types.CodeType, _Table]] = {}

    def begin(code: types.CodeType, offset: int) -> Any:
        if threading.get_ident() in others:
            return None
        table = watcher.table_of(sys._getframe(1))
        if table is None:
            return monitor.DISABLE
        if id(code) not in tables:
            tables[id(code)] = (code, table)
            monitor.set_local_events(tool, code, monitor.events.INSTRUCTION)
        return None

    def instruction(code: types.CodeType, offset: int) -> Any:
        known = tables.get(id(code))
        found = known and known[1].get(offset)
        if found is None:
            return monitor.DISABLE
        if threading.get_ident() not in others:
            watcher.handle(sys._getframe(1), found)
        return None

    monitor.use_tool_id(tool, "spmd")
    try:
        monitor.register_callback(tool, monitor.events.PY_START, begin)
        monitor.register_callback(tool, monitor.events.INSTRUCTION, instruction)
        monitor.restart_events()  # what an earlier capture has disabled
        monitor.set_events(tool, monitor.events.PY_START)
        yield
    finally:
        monitor.set_events(tool, 0)
        for code, _ in tables.values():
            monitor.set_local_events(tool, code, 0)
        monitor.free_tool_id(tool)


events = settrace if VERSION <= (3, 11) else monitoring
