"""The slot by which C code takes an object for a sequence.

Setting `__getitem__` on a class fills its slot `sq_item`, and CPython keeps the slot filled after the attribute is restored. For
PyTorch, a tensor with this slot is a sequence: `torch.tensor([torch.tensor(1.0)])` would raise a TypeError for the rest of the process.
"""
from __future__ import annotations

import contextlib
import ctypes
import functools
from typing import Any, Iterator

_SQ_ITEM = 44  # typeslots.h of CPython, whose numbers are part of the stable ABI
_WORD = ctypes.sizeof(ctypes.c_void_p)


@contextlib.contextmanager
def kept_sequence_slots(owner: Any, name: str) -> Iterator[None]:
    """A region that sets the attribute `name` of `owner`. At its end the slots of a class and its subclasses are what they were; other
    objects, and other names than `__getitem__`, have no slot to keep."""
    offset = _offset() if isinstance(owner, type) and name == "__getitem__" else None
    before = {} if offset is None else {kind: _slot(kind) for kind in _with_subclasses(owner)}
    try:
        yield
    finally:
        for kind, slot in before.items():
            if _slot(kind) != slot:
                ctypes.c_void_p.from_address(id(kind) + offset).value = slot


def _with_subclasses(owner: type) -> set[type]:
    found = {owner}
    for kind in type.__subclasses__(owner):
        found |= _with_subclasses(kind)
    return found


def _slot(kind: type) -> int | None:
    function = ctypes.pythonapi.PyType_GetSlot
    function.restype, function.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_int)
    return function(kind, _SQ_ITEM)


@functools.cache
def _offset() -> int | None:
    """Where the slot lies in a class made by Python; None if it is not found."""
    class Sequence:
        def __getitem__(self, index: int) -> None:
            pass

    words = (ctypes.c_void_p * (type.__basicsize__ // _WORD)).from_address(id(Sequence))
    places = [number for number, word in enumerate(words) if word == _slot(Sequence)]
    return places[0] * _WORD if len(places) == 1 else None
