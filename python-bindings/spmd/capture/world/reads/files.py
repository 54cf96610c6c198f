"""Files that a step reads: a call finds them with what they had when the step was traced, or has another program.

While a step is traced, the functions that open files and list folders are replaced. An audit hook would see them all, but it stays until
the process ends, and slows each id() down from then on.
"""
from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import os
import stat
import sys
import threading
import time
import types
from typing import Any, Callable, Iterator

from ...observe import patches
from .scope import FILE_READERS, is_called_to_trace, is_observed, is_of_python, is_of_torch
from .values import ABSENT

_METADATA = os.path.join("importlib", "metadata")  # looks for the version of a package in each folder of sys.path
_LARGEST = 1 << 24  # bytes; of a larger file its size and its time count
_TICK = 100_000_000  # nanoseconds; a file may change twice in one tick of its clock
_CHANGING = ("/proc/", "/sys/", "/dev/")  # what the system tells of itself is new at each look


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


def _is_read(mode: str, flags: int) -> bool:
    return mode[:1] == "r" and not flags & (os.O_WRONLY | os.O_CREAT | os.O_TRUNC)


def _reader(frame: types.FrameType | None) -> types.FrameType | None:
    """The frame of observed code for which a file is opened; None where a module is imported, a warning is shown, or something is traced."""
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith("<frozen importlib") or path.endswith(("linecache.py", "tokenize.py")) or _METADATA in path or is_of_python(path) and is_called_to_trace(frame):
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
    own = threading.get_ident()

    def hear(path: Any) -> None:
        path = "." if path is None else path
        if threading.get_ident() != own or not isinstance(path, (str, bytes, os.PathLike)):
            return
        frame = _reader(sys._getframe(2))
        path = os.path.abspath(os.fsdecode(path))
        if frame is not None and not path.startswith(_CHANGING):
            note(path, frame)

    @functools.wraps(io.open)
    def open_(file: Any, mode: Any = "r", *args: Any, **options: Any) -> Any:
        if isinstance(mode, str) and _is_read(mode, 0):
            hear(file)
        return open_.__wrapped__(file, mode, *args, **options)

    @functools.wraps(os.open)
    def os_open(path: Any, flags: int, *args: Any, **options: Any) -> Any:
        if _is_read("r", flags):
            hear(path)
        return os_open.__wrapped__(path, flags, *args, **options)

    @functools.wraps(os.listdir)
    def listdir(path: Any = None) -> Any:
        hear(path)
        return listdir.__wrapped__(path)

    @functools.wraps(os.scandir)
    def scandir(path: Any = None) -> Any:
        hear(path)
        return scandir.__wrapped__(path)

    with patches.replaced({patches.OS_OPEN: os_open, patches.LISTDIR: listdir, patches.SCANDIR: scandir}
                          | dict.fromkeys(patches.OPEN, open_)):
        yield
