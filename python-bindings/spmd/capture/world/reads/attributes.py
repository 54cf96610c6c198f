"""How Python finds an attribute, without running any of the user's code: which places a read of `value.name` looks at."""
from __future__ import annotations

import threading
import types
from typing import Any

import torch

from ....torch_api.modules import buffers_of, children_of, parameters_of
from .places import READERS, Kind, Read, look_up
from .records import Records
from .scope import is_observed, is_of_python
from .values import ABSENT, TRACED, is_leaf

_IGNORED_MODULES = ("torch", "spmd", "builtins", "typing", "sys", "warnings", "logging")


def label_of(value: Any) -> str:
    """How errors name an object to which no path is known."""
    is_named = isinstance(value, (type, types.FunctionType, types.MethodType, types.ModuleType, types.BuiltinFunctionType))
    return value.__name__ if is_named else type(value).__name__


def read_global(records: Records, table: dict[str, Any], name: str) -> None:
    """A function with the globals `table` reads one of them."""
    if name in table and not _is_of_torch(table.get("__name__")):
        records.read(table, Read(Kind.GLOBAL, name), table[name], lambda: "")


def _is_of_torch(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in _IGNORED_MODULES


def read_function(records: Records, function: types.FunctionType) -> None:
    """A function runs, with its code and its defaults."""
    for name in ("__code__", "__defaults__", "__kwdefaults__"):
        if (found := getattr(function, name)) is not None:
            records.read(function, Read(Kind.COMPUTED, name), found, lambda: function.__name__)
            if isinstance(found, dict):
                records.read_contents(found)


def read_attribute(records: Records, value: Any, name: str) -> None:
    """The step reads value.name."""
    cls = type(value)
    if cls is types.ModuleType:
        if name == "__dict__":
            records.register(value.__dict__, value.__name__)
        elif name in value.__dict__ and not _is_of_torch(value.__name__):
            records.read(value.__dict__, Read(Kind.GLOBAL, name), value.__dict__[name], lambda: "")
    elif isinstance(value, type):
        _read_of_class(records, value, value, name)
        if name not in _OF_TYPES and not hasattr(type, name):
            _read_member(records, cls, name)  # of the metaclass
    elif cls is super:
        owner = value.__self_class__
        mro = owner.__mro__ if isinstance(owner, type) else ()
        for base in mro[mro.index(value.__thisclass__) + 1:] if value.__thisclass__ in mro else ():
            if name in base.__dict__:
                _read_of_class(records, base, base, name)
                break
    elif isinstance(value, types.MethodType):
        if not hasattr(types.MethodType, name):
            read_attribute(records, value.__func__, name)
    elif isinstance(value, types.FunctionType):
        if name == "__dict__":
            records.note_table(value, value.__dict__)
        elif not hasattr(types.FunctionType, name):
            records.read(value, Read(Kind.ATTRIBUTE, name), value.__dict__.get(name, ABSENT), lambda: value.__name__)
    elif isinstance(value, threading.local):
        records.read(value, Read(Kind.COMPUTED, name), READERS[Kind.COMPUTED](value, name), lambda: label_of(value))
    elif not isinstance(value, types.BuiltinFunctionType) and not (is_leaf(value) and _table_of(value) is None):
        _read_of_instance(records, value, cls, name)


_OF_TYPES = frozenset(("__dict__", "__name__", "__qualname__", "__module__", "__mro__", "__bases__", "__class__", "__doc__"))


def _read_of_class(records: Records, cls: type, start: type, name: str) -> None:
    if name in _OF_TYPES:
        return
    found = look_up(start, name)
    records.read(cls, Read(Kind.MEMBER, name), found, lambda: cls.__name__)


def _read_member(records: Records, cls: type, name: str) -> Any:
    """What the class of an instance defines; recorded but for classes of PyTorch's core and of C, which nobody changes."""
    found = look_up(cls, name)
    if cls.__flags__ & _HEAP and not _is_of_torch(cls.__module__):
        records.read(cls, Read(Kind.MEMBER, name), found, lambda: cls.__name__)
    return found


_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def _read_of_instance(records: Records, value: Any, cls: type, name: str) -> None:
    label = lambda: label_of(value)  # noqa: E731
    if cls.__flags__ & _HEAP:
        records.read(value, Read(Kind.CLASS, "__class__"), cls, label)
    if name == "__dict__":
        if isinstance(table := object.__getattribute__(value, "__dict__") if hasattr(cls, "__dict__") else None, dict):
            records.note_table(value, table)
        return
    if name == "__class__":
        return
    if isinstance(value, torch.optim.Optimizer) and name in ("param_groups", "state", "defaults"):
        return  # optimizer_numbers.py has all numbers in them
    member = look_up(cls, name)
    if member is not ABSENT and _is_data_descriptor(member):
        if isinstance(member, (types.MemberDescriptorType, types.GetSetDescriptorType)) or type(member).__name__ == "_tuplegetter":
            if not isinstance(value, tuple):
                try:
                    found = member.__get__(value, cls)
                except Exception:  # an empty slot
                    found = ABSENT
                if isinstance(member, types.MemberDescriptorType) or is_leaf(found):
                    records.read(value, Read(Kind.COMPUTED, name), found, label)
        else:
            _read_member(records, cls, name)  # a property: its own code is observed
            if isinstance(member, property) and not isinstance(member.fget, types.FunctionType) or _is_of_pythons_library(member):
                records.read(value, Read(Kind.COMPUTED, name), READERS[Kind.COMPUTED](value, name), label)
        return
    table = _table_of(value)
    if table is not None:
        found = table.get(name, ABSENT)
        if name != "training" or id(value) not in records.with_modes:
            records.read(value, Read(Kind.ATTRIBUTE, name), found, label)
        if found is not ABSENT:
            return
    if member is not ABSENT:
        _read_member(records, cls, name)
    elif isinstance(value, torch.nn.Module):
        _read_registered(records, value, name)
    elif cls.__flags__ & _HEAP and isinstance(_read_member(records, cls, "__getattr__"), (types.MethodDescriptorType, types.WrapperDescriptorType)):
        records.read(value, Read(Kind.COMPUTED, name), READERS[Kind.COMPUTED](value, name), label)  # as of a dict with attributes
    elif cls.__flags__ & _HEAP:
        _read_member(records, cls, name)


def _read_registered(records: Records, module: torch.nn.Module, name: str) -> None:
    """A parameter, a buffer or a child."""
    for table in (children_of(module), parameters_of(module), buffers_of(module)):
        if name in table:
            if not isinstance(table[name], TRACED):
                records.register(table, label_of(module), records.was_there(module, Kind.ATTRIBUTE))
                records.read(table, Read(Kind.ITEM, name), table[name], lambda: label_of(module))
            return


def _is_of_pythons_library(descriptor: Any) -> bool:
    """Whether code of Python's library that is not observed finds the value, as of members of enums."""
    code = getattr(look_up(type(descriptor), "__get__"), "__code__", None)
    return code is not None and is_of_python(code.co_filename) and not is_observed(code.co_filename, {})


def _is_data_descriptor(member: Any) -> bool:
    cls = type(member)
    return hasattr(cls, "__set__") or hasattr(cls, "__delete__")


def _table_of(value: Any) -> dict[str, Any] | None:
    """The __dict__ of an instance; None if it has none."""
    try:
        table = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return table if isinstance(table, dict) else None
