"""Files that a step reads: a call finds them with what they had when the step was traced, or has another program.

Python tells audit hooks of each file that it opens and of each folder that it lists, whoever does it. An audit hook stays until
the process ends, so there is one, which does nothing unless a step is traced.
"""
from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import sys
import threading
import time
import types
from typing import Any, Callable, Iterator

from .scope import FILE_READERS, is_called_to_trace, is_observed, is_of_python, is_of_torch
from .values import ABSENT

_LARGEST = 1 << 24  # bytes; of a larger file its size and its time count
_TICK = 100_000_000  # nanoseconds; a file may change twice in one tick of its clock
_listeners: list[Callable[[str, tuple[Any, ...]], None]] = []


class File:
    """A path; one object for each, so that guards find it again."""

    def __init__(self, path: str):
        self.path = path
        self._known: tuple[os.stat_result, Any] | None = None

    def contents(self) -> Any:
        """A text that stands for what is in a file, or for the names in a folder; the same object while nothing changes."""
        try:
            found = os.stat(self.path)
        except OSError:
            return ABSENT
        if self._known is not None and _of_time(self._known[0]) == _of_time(found):
            return self._known[1]
        text = self._read(found)
        if self._known is not None and self._known[1] == text:
            text = self._known[1]
        if time.time_ns() - found.st_mtime_ns > _TICK:
            self._known = (found, text)
        return text

    def _read(self, found: os.stat_result) -> Any:
        try:
            if stat.S_ISDIR(found.st_mode):
                return repr(sorted(os.listdir(self.path)))
            if not stat.S_ISREG(found.st_mode):  # a device or a pipe
                return "no file"
            if found.st_size > _LARGEST:
                return f"{found.st_size} bytes of {found.st_mtime_ns}"
            with open(self.path, "rb") as stream:
                return hashlib.sha256(stream.read()).hexdigest()
        except OSError:
            return ABSENT

    def status(self) -> Any:
        """What os.stat() tells of a file; of a folder, whether it is there."""
        try:
            found = os.stat(self.path)
        except OSError:
            return ABSENT
        return "a folder" if stat.S_ISDIR(found.st_mode) else f"{found.st_size} bytes of {found.st_mtime_ns}"

    def kind(self) -> Any:
        """Whether there is a file or a folder."""
        try:
            return "a folder" if stat.S_ISDIR(os.stat(self.path).st_mode) else "a file"
        except OSError:
            return ABSENT


def _of_time(found: os.stat_result) -> tuple[int, ...]:
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


@functools.cache
def _add_hook() -> None:
    def hear(event: str, args: tuple[Any, ...]) -> None:
        if _listeners and event in ("open", "os.listdir", "os.scandir"):
            for listener in list(_listeners):
                listener(event, args)
    sys.addaudithook(hear)


def _is_read(event: str, args: tuple[Any, ...]) -> bool:
    if event != "open":
        return True
    mode, flags = args[1], args[2]
    return mode[:1] == "r" if isinstance(mode, str) else not flags & (os.O_WRONLY | os.O_CREAT | os.O_TRUNC)


def _reader(frame: types.FrameType | None) -> types.FrameType | None:
    """The frame of observed code for which a file is opened; None where a module is imported, a warning is shown, or something is traced."""
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith("<frozen importlib") or path.endswith(("linecache.py", "tokenize.py")) or is_of_python(path) and is_called_to_trace(frame):
            return None
        if not is_of_python(path) and is_observed(path, frame.f_globals):
            return frame
        name = str(frame.f_globals.get("__name__"))
        if (is_of_torch(name) or name.partition(".")[0] == "spmd") and name not in FILE_READERS:
            return None
        frame = frame.f_back
    return None


@contextlib.contextmanager
def opened(note: Callable[[str, types.FrameType], None]) -> Iterator[None]:
    """While entered, `note` gets each path that observed code reads, and its frame. Of other threads it gets none."""
    _add_hook()
    own = threading.get_ident()

    def listen(event: str, args: tuple[Any, ...]) -> None:
        path = args[0] if args[0] is not None else "."
        if isinstance(path, int) or threading.get_ident() != own or not _is_read(event, args):
            return
        frame = _reader(sys._getframe(2))
        if frame is not None:
            note(os.path.abspath(os.fsdecode(path)), frame)

    _listeners.append(listen)
    try:
        yield
    finally:
        _listeners.remove(listen)
