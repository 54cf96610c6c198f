"""Values that a step reads, as guards compare them."""
from __future__ import annotations

import array
import collections
import datetime
import decimal
import enum
import fractions
import hashlib
import pathlib
import sys
import types
from typing import Any

import torch

LEAVES = (bool, int, float, complex, str, bytes, types.NoneType, types.EllipsisType, range, slice, enum.Enum, datetime.date, datetime.timedelta,
          decimal.Decimal, fractions.Fraction, pathlib.PurePath, torch.dtype, torch.device, torch.layout, torch.memory_format)
MAPPINGS = (dict, types.MappingProxyType)
CONTAINERS = (*MAPPINGS, list, set, collections.deque, bytearray, array.array)  # that can change, and that only code of C reads and writes
TRACED = (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool, torch.UntypedStorage, torch.TypedStorage, torch.Generator)
BOUND = (types.BuiltinFunctionType, types.MethodWrapperType)  # functions of C, with the object whose method they are
CODE = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, type, types.ModuleType)


class _Marker:
    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


ABSENT = _Marker("missing")  # there was no such attribute or entry
TENSOR = _Marker("a tensor")  # whose values the graph follows


class Digest(tuple):
    """Stands for the values of an array."""


def kept(value: Any) -> Any:
    """What a guard keeps of a value: markers for tensors, digests for arrays."""
    if isinstance(value, TRACED):
        return TENSOR
    if isinstance(value, tuple) and any(isinstance(entry, (tuple, *TRACED)) for entry in value):
        return tuple(map(kept, value))
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)) and not value.dtype.hasobject:
        return Digest((str(value.dtype), value.shape, hashlib.sha256(value.tobytes()).digest()))
    return value


def is_leaf(value: Any) -> bool:
    """A value that guards compare as a whole."""
    return isinstance(value, LEAVES) or isinstance(value, (_Marker, Digest))


def same_leaf(a: Any, b: Any) -> bool:
    """Equal in type and value: 1, 1.0 and True differ, as do 0.0 and -0.0; nan equals nan."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return (a == b and str(a) == str(b)) or (a != a and b != b)
    return a == b
