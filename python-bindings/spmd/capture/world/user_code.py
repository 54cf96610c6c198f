"""Which code is the user's: defined neither in PyTorch nor in an installed library, Python's own included."""
from __future__ import annotations

import csv
import dis
import functools
import glob
import inspect
import os
import sys
import sysconfig
import types
from typing import Any

from ..errors import is_user_file

_STDLIB = sysconfig.get_paths()["stdlib"] + os.sep


def is_users_file(path: str) -> bool:
    """Defined neither in PyTorch nor in an installed library, Python's own included."""
    return is_user_file(path) and "site-packages" not in path and not path.startswith(_STDLIB) and not _is_installed(path)


@functools.lru_cache(maxsize=None)
def _is_installed(path: str) -> bool:
    """Whether pip has put the file where it is: `pip install --target` makes folders of libraries with other names."""
    folder = os.path.dirname(path)
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder = os.path.dirname(folder)
    return os.path.isabs(path) and os.path.relpath(path, folder) in _installed_files(folder)


@functools.lru_cache(maxsize=None)
def _installed_files(folder: str) -> frozenset[str]:
    """The files that pip's records in a folder list."""
    found: list[str] = []
    for record in glob.glob(os.path.join(glob.escape(folder), "*.dist-info", "RECORD")):
        with open(record, newline="", encoding="utf-8") as file:
            found += (os.path.normpath(row[0]) for row in csv.reader(file) if row)
    return frozenset(found)


def is_library_file(path: str) -> bool:
    """Code of PyTorch, of an installed package or of Python; code that was typed at a prompt is the user's."""
    return path.startswith("<frozen") or not path.startswith("<") and not is_users_file(path)


def is_library_class(cls: type) -> bool:
    """A class that a library defines, by the file of its module: a class made at run time belongs to its module, which
    is_users_class() does not find."""
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    return cls.__module__ != "__main__" if file is None else is_library_file(file)


def is_users_function(value: Any) -> bool:
    """A function or method that is defined in the user's code."""
    code = getattr(inspect.unwrap(value), "__code__", None) if callable(value) else None
    return isinstance(code, types.CodeType) and is_users_file(code.co_filename)


@functools.lru_cache(maxsize=4096)
def is_users_class(cls: type) -> bool:
    """A class that is defined in the user's code."""
    try:
        file = inspect.getsourcefile(cls) or "<"
    except (TypeError, OSError):  # a class made at run time, or built in
        return False
    return is_users_file(file)


def has_users_class(value: Any) -> bool:
    """An instance of a class that is defined neither in PyTorch nor in an installed library."""
    if not hasattr(value, "__dict__") and not hasattr(type(value), "__slots__"):
        return False
    return is_users_class(type(value))


@functools.lru_cache(maxsize=65536)
def global_names(code: types.CodeType) -> tuple[str, ...]:
    """The globals that code reads or writes, functions defined in it included. Not `co_names`, which has the names of
    attributes, too: optimizer.step() does not read a global `step`."""
    names = [i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL")]
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            names += global_names(inner)
    return tuple(dict.fromkeys(names))
