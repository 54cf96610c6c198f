"""What calls of functions in C read of the objects that they get: such functions run no instruction that could be observed."""
from __future__ import annotations

import builtins
import contextvars
import functools
import operator
import os
import pickle
import types
from typing import Any, Callable

import torch

from ...errors import Frame, error_at
from .attributes import label_of, read_attribute
from .entries import read_all, read_contained, read_item, read_size, write_attribute, write_item
from .guards import line_of
from .places import READERS, Kind, Read
from .records import Records
from .scope import is_of_python
from .values import ABSENT, BOUND, CONTAINERS, LEAVES, MAPPINGS, TRACED


def read_by_others(records: Records, function: types.FunctionType, args: list[Any]) -> None:
    """Code that is not observed gets these arguments: it may read all that is in containers, and, but for PyTorch's and our own, in objects."""
    of_objects = function.__module__ is None or function.__module__.partition(".")[0] not in ("torch", "spmd")
    for value in args:
        read_all(records, value)
        if of_objects and records.was_there(value, Kind.ATTRIBUTE) and not isinstance(value, _OPAQUE):
            _instance(records, [value])


_OPAQUE = (*TRACED, *CONTAINERS, torch.nn.Module, torch.optim.Optimizer, type, types.FunctionType, types.MethodType, types.ModuleType)


def call(records: Records, function: Any, args: list[Any]) -> None:
    """The step calls a function that is not written in Python."""
    if isinstance(function, BOUND) and (owner := function.__self__) is not None and not isinstance(owner, types.ModuleType):
        function, args = getattr(type(owner), function.__name__, function), [owner, *args]  # a bound method
    known = _KNOWN.get(function) if isinstance(function, _HASHED) else None
    if known is not None:
        known(records, args)
        return
    if isinstance(function, _HASHED) and function.__name__ in _COPIES:  # of a class of its own
        _instance(records, args)
        return
    if isinstance(function, types.MethodDescriptorType) and isinstance(function.__objclass__, type):
        reader = _METHODS.get((_family(function.__objclass__), function.__name__))
        if reader is not None:
            reader(records, args)
            return
    if isinstance(function, torch.nn.Module):
        read_attribute(records, function, "forward")
        return
    if isinstance(function, operator.attrgetter):
        for path in function.__reduce__()[1]:
            _read_path(records, args[0], path)
        return
    if isinstance(function, operator.itemgetter):
        for key in function.__reduce__()[1]:
            read_item(records, args[0], key)
        return
    if isinstance(function, functools.partial):
        records.read(function, Read(Kind.COMPUTED, "args"), function.args, lambda: label_of(function.func))
        records.read(function, Read(Kind.COMPUTED, "keywords"), function.keywords, lambda: label_of(function.func))
        records.read_contents(function.keywords)
        function = function.func
        if not isinstance(function, (types.FunctionType, types.MethodType)):
            call(records, function, args)
        return
    if any(value is getattr or isinstance(value, _GETTERS) for value in args):
        _apply(records, args)
    for value in args:
        if isinstance(value, BOUND) and isinstance(value.__self__, CONTAINERS):  # {…}.get, which is called later
            if _METHODS.get((_family(type(value.__self__)), value.__name__)) not in (_write_any, _write_one):
                read_all(records, value.__self__)
        read_all(records, value)
        records.note_taken(value)


def _apply(records: Records, args: list[Any]) -> None:
    """A function in C gets a function that reads attributes, and applies it (map, sorted, reduce)."""
    parts = [part for value in args for part in (value if isinstance(value, (list, tuple)) else (value,))]
    names = [part for part in parts if isinstance(part, str)]
    for part in parts:
        if not isinstance(part, (*_OPAQUE, *LEAVES)):
            _instance(records, [part])
            for name in names:
                read_attribute(records, part, name)


_GETTERS = (operator.attrgetter, operator.itemgetter, operator.methodcaller)
_COPIES = ("__reduce_ex__", "__reduce__", "__getstate__", "__copy__", "__deepcopy__")
_HASHED = (types.BuiltinFunctionType, types.WrapperDescriptorType, types.MethodDescriptorType, type)


def _family(cls: type) -> type | None:
    """dict for its subclasses, and so on."""
    return next((kind for kind in CONTAINERS if issubclass(cls, kind)), None)


def _read_path(records: Records, value: Any, path: str) -> None:
    for name in path.split("."):
        if isinstance(value, TRACED):
            return
        read_attribute(records, value, name)
        value = getattr(value, name, None)


def _getattr(records: Records, args: list[Any]) -> None:
    if len(args) > 1 and isinstance(args[1], str) and not isinstance(args[0], TRACED):
        read_attribute(records, args[0], args[1])


def _setattr(records: Records, args: list[Any]) -> None:
    if len(args) > 1 and not isinstance(args[0], TRACED):
        write_attribute(records, args[0], args[1])


def _vars(records: Records, args: list[Any]) -> None:
    if args and not isinstance(args[0], (*TRACED, type)):
        read_attribute(records, args[0], "__dict__")


def _len(records: Records, args: list[Any]) -> None:
    if args and isinstance(args[0], CONTAINERS) and records.is_known(args[0]):
        read_size(records, args[0])


def _context(records: Records, args: list[Any]) -> None:
    records.read(args[0], Read(Kind.CONTEXT, args[0].name), args[0].get(ABSENT), lambda: label_of(args[0]))


def _set_context(records: Records, args: list[Any]) -> None:
    records.write_place(args[0], Read(Kind.CONTEXT, args[0].name), lambda: label_of(args[0]))


def _instance(records: Records, args: list[Any]) -> None:
    """A copy is made of an object."""
    if args and records.is_iterator(args[0]):
        records.read(args[0], Read(Kind.STATE, None), READERS[Kind.STATE](args[0], None), lambda: label_of(args[0]))
    elif args and not isinstance(args[0], (*TRACED, torch.nn.Module, torch.optim.Optimizer, type)):
        for name in list(getattr(args[0], "__dict__", ())):
            read_attribute(records, args[0], name)


def _class_of(records: Records, args: list[Any]) -> None:
    if args and not isinstance(args[0], (*TRACED, *LEAVES, *CONTAINERS, tuple, type, types.FunctionType, types.MethodType, types.ModuleType)):
        records.read(args[0], Read(Kind.CLASS, "__class__"), type(args[0]), lambda: label_of(args[0]))


def _type_of(records: Records, args: list[Any]) -> None:
    if len(args) == 1 and isinstance(args[0], torch.SymFloat) and getattr(args[0], "is_known", False):
        code, offset = records.line()
        raise error_at([Frame(code.co_filename, line_of(code, offset), code.co_name)],
                                "the step calls type() on a Python number that the optimizer changes: during the capture "
                                "its type differs",
                                "use isinstance(value, int) or isinstance(value, float)")
    _class_of(records, args)


def _status(records: Records, args: list[Any]) -> None:
    if args and isinstance(args[0], (str, bytes, os.PathLike)):
        records.read_file(os.path.abspath(os.fsdecode(args[0])), "kind" if _asks_for_a_file(records.frame()) else "status")


def _contents(records: Records, args: list[Any]) -> None:
    """A function of os that the user's code imported by its name, before it was replaced."""
    path = args[0] if args and args[0] is not None else "."
    if isinstance(path, (str, bytes, os.PathLike)):
        records.read_file(os.path.abspath(os.fsdecode(path)))


def _asks_for_a_file(frame: types.FrameType | None) -> bool:
    """Whether a function of Python's library that only tells whether a file is there runs; pathlib's ask Path.stat()."""
    while frame is not None and is_of_python(frame.f_code.co_filename):
        if frame.f_code.co_name in ("exists", "lexists", "isfile", "isdir", "islink", "is_file", "is_dir", "is_symlink"):
            return True
        frame = frame.f_back
    return False


def match_class(records: Records, value: Any, cls: type, names: tuple[str, ...], count: int) -> None:
    """A pattern of a class with `count` attributes by their order, and some by their names."""
    _class_of(records, [value])
    if not isinstance(value, cls):
        return
    if count:
        read_attribute(records, cls, "__match_args__")
    for name in (*getattr(cls, "__match_args__", ())[:count], *names):
        read_attribute(records, value, name)


def _nothing(records: Records, args: list[Any]) -> None:
    pass


def _one_item(records: Records, args: list[Any]) -> None:
    if len(args) > 1:
        read_item(records, args[0], args[1])


def _one_contained(records: Records, args: list[Any]) -> None:
    if len(args) > 1:
        read_contained(records, args[0], args[1])


def _everything(records: Records, args: list[Any]) -> None:
    for value in args:
        read_all(records, value)


def _write_one(records: Records, args: list[Any]) -> None:
    _one_item(records, args)
    if len(args) > 1:
        write_item(records, args[0], args[1])


def _write_any(records: Records, args: list[Any]) -> None:
    if args and isinstance(args[0], CONTAINERS) and records.is_known(args[0]):
        owner = records.owner_of(args[0])
        if owner is None:
            records.write(args[0], None, lambda: label_of(args[0]))
        else:
            for source in args[1:]:
                for name in source if isinstance(source, dict) else ():
                    records.write_place(owner, Read(Kind.ATTRIBUTE, name), lambda: label_of(owner))
    for value in args[1:]:
        read_all(records, value)


_KNOWN: dict[Any, Callable[[Records, list[Any]], None]] = {
    getattr: _getattr, hasattr: _getattr, object.__getattribute__: _getattr, type.__getattribute__: _getattr,
    setattr: _setattr, delattr: _setattr, object.__setattr__: _setattr, object.__delattr__: _setattr,
    vars: _vars, len: _len, contextvars.ContextVar.get: _context, contextvars.ContextVar.set: _set_context,
    **dict.fromkeys((object.__reduce_ex__, object.__reduce__, getattr(object, "__getstate__", None), pickle.dumps), _instance),
    isinstance: _class_of, type: _type_of, os.stat: _status, os.lstat: _status, os.access: _status, os.listdir: _contents, os.scandir: _contents,
    **dict.fromkeys((issubclass, id, callable, hash, super, print, object.__new__, object.__init__, builtins.__build_class__,
                     builtins.__import__, globals, locals, repr), _nothing),
}
_READS = {"get": _one_item, "__getitem__": _one_item, "__contains__": _one_contained, "__len__": _len}
_METHODS: dict[tuple[type | None, str], Callable[[Records, list[Any]], None]] = {
    **{(kind, name): reader for kind in CONTAINERS for name, reader in _READS.items()},
    **{(dict, name): _write_one for name in ("pop", "setdefault", "__setitem__", "__delitem__")},
    (dict, "move_to_end"): _write_any,
    **{(kind, name): _write_any for kind in CONTAINERS
       for name in ("update", "clear", "popitem", "append", "extend", "insert", "remove", "sort", "reverse", "add", "discard", "appendleft",
                    "extendleft", "popleft", "rotate", "difference_update", "intersection_update", "symmetric_difference_update")},
    **{(kind, "pop"): _write_any for kind in CONTAINERS if not issubclass(kind, MAPPINGS)},
}
