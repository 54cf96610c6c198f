"""Numbers, texts and flags that the Python of a step writes outside of its own variables: each call of the compiled step writes them, too.

What a step writes follows from what it reads, and a program only serves calls that read the same (guards.py). So a write is a constant of
the program, or, of `self.calls += 1` whose number is used for nothing else, an addition.
"""
from __future__ import annotations

import types
from typing import Any, Callable, Iterable, NamedTuple

import torch

from ...errors import Frame
from ..device_meshes import is_made_of_meshes
from .guards import line_of
from .places import READERS, Kind, Read, look_up, path_of
from .records import Records
from .values import ABSENT, CONTAINERS, TRACED, same_leaf

NUMBERS = (int, float)


class Write(NamedTuple):
    """`value`: what the step leaves in a place; `addends`: what it adds to the number there, where it does nothing else with it."""

    owner: Any
    kind: Kind
    key: Any
    value: Any
    addends: tuple[Any, ...]
    path: str
    frame: Frame

    def put(self) -> None:
        """Does to the place what the step does."""
        value = self.value
        if self.addends:
            value = READERS[self.kind](self.owner, self.key)
            for addend in self.addends:
                value = value + addend
        _WRITERS[self.kind](self.owner, self.key, value)


def place_of(owner: Any, name: str) -> tuple[Any, Kind] | None:
    """Where `owner.name = value` puts a value, and its kind; None where code of the owner's class decides."""
    if isinstance(owner, types.ModuleType):
        return owner.__dict__, Kind.GLOBAL
    if isinstance(owner, type):
        return owner, Kind.MEMBER
    if name == "__class__":
        return owner, Kind.CLASS
    member = look_up(type(owner), name)
    if member is not ABSENT and (hasattr(type(member), "__set__") or hasattr(type(member), "__delete__")):
        return (owner, Kind.COMPUTED) if isinstance(member, types.MemberDescriptorType) else None
    return owner, Kind.ATTRIBUTE


def take_writes(records: Records, left_alone: Iterable[Any] = ()) -> list[Write]:
    """What the step has written; puts everything back as it was before, but attributes of the objects that are `left_alone`."""
    ignored = set(map(id, left_alone))
    found: list[Write] = []
    for holder in records.holders.values():
        if holder.is_gone() or id(holder.get()) in ignored:
            continue
        owner = holder.get()
        for (kind, key), begin in holder.begun.items():
            now = READERS[kind](owner, key)
            if Read(kind, key) in holder.reads and now is not begin and not records.is_constant(now) and not isinstance(now, (*TRACED, tuple, *CONTAINERS)) \
                    and records.was_there(owner, kind) and not isinstance(owner, (torch.nn.Module, torch.optim.Optimizer)) \
                    and not is_made_of_meshes(now):
                records.is_repeatable = False
            if not records.is_constant(begin) or not records.is_constant(now) or same_leaf(begin, now) or not records.was_there(owner, kind) \
                    or isinstance(owner, torch.nn.Module) and not (type(now) in NUMBERS and type(begin) in NUMBERS):
                continue  # made by the step; other modules have what tensors are left; modules' flags are settings
            code, offset = holder.lines[Read(kind, key)]
            frame = Frame(code.co_filename, line_of(code, offset), code.co_name)
            addends = tuple(holder.addends.get((kind, key), ()))
            if Read(kind, key) in holder.reads or not addends:
                addends = ()
            found.append(Write(owner, kind, key, now, addends, path_of(holder.label, Read(kind, key)), frame))
    for holder in records.holders.values():
        owner = holder.get()
        for one in found:
            if one.owner is owner:
                _WRITERS[one.kind](owner, one.key, holder.begun[one.kind, one.key])
    return found


def _write_attribute(owner: Any, key: str, value: Any) -> None:
    _write_item(owner.__dict__, key, value)


def _write_item(owner: dict[Any, Any], key: Any, value: Any) -> None:
    if value is ABSENT:
        owner.pop(key, None)
    else:
        owner[key] = value


def _write_member(owner: type, key: str, value: Any) -> None:
    if value is not ABSENT:
        type.__setattr__(owner, key, value)
    elif key in vars(owner):
        type.__delattr__(owner, key)


def _write_slot(owner: Any, key: str, value: Any) -> None:
    member = look_up(type(owner), key)
    if value is not ABSENT:
        member.__set__(owner, value)
    elif READERS[Kind.COMPUTED](owner, key) is not ABSENT:
        member.__delete__(owner)


def _write_class(owner: Any, key: Any, value: type) -> None:
    owner.__class__ = value


def _write_context(owner: Any, key: str, value: Any) -> None:
    if value is not ABSENT:
        owner.set(value)


def _write_cell(owner: Any, key: str, value: Any) -> None:
    owner.cell_contents = value


_WRITERS: dict[Kind, Callable[[Any, Any, Any], None]] = {
    Kind.ATTRIBUTE: _write_attribute, Kind.COMPUTED: _write_slot, Kind.MEMBER: _write_member, Kind.GLOBAL: _write_item,
    Kind.ITEM: _write_item, Kind.CELL: _write_cell, Kind.CLASS: _write_class, Kind.CONTEXT: _write_context,
}
