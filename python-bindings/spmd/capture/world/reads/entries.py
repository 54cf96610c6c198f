"""Reads and writes of entries of containers, and of attributes by name: what instructions and functions in C do alike."""
from __future__ import annotations

import itertools
import types
import weakref
from typing import Any

import torch

from .attributes import label_of
from .places import Kind, Read
from .records import Records
from .values import ABSENT, CONTAINERS, LEAVES, MAPPINGS, TRACED
from .writes import place_of


def read_item(records: Records, container: Any, key: Any) -> None:
    """The step reads container[key]."""
    if not isinstance(container, CONTAINERS) or not records.is_known(container):
        return
    if isinstance(key, slice) or not isinstance(key, (*LEAVES, type, types.FunctionType, torch.nn.Module, weakref.ref)):
        if not isinstance(key, TRACED):
            records.read_contents(container)
        return
    owner = records.owner_of(container)
    if owner is not None:
        read_attribute_of_table(records, owner, container, key)
        return
    try:
        found = dict.get(container, key, ABSENT) if isinstance(container, dict) else container[key]
    except (LookupError, TypeError):
        found = ABSENT
    records.read(container, Read(Kind.ITEM, key), found, lambda: label_of(container))
    if found is ABSENT and hasattr(type(container), "__missing__"):  # may make the entry
        records.write(container, key, lambda: label_of(container))


def read_attribute_of_table(records: Records, owner: Any, table: dict[str, Any], name: Any) -> None:
    """vars(owner)[name]."""
    records.read(owner, Read(Kind.ATTRIBUTE, name), table.get(name, ABSENT), lambda: label_of(owner))


def read_contained(records: Records, container: Any, key: Any) -> None:
    """The step asks whether key is in container."""
    if not isinstance(container, CONTAINERS) or not records.is_known(container):
        return
    if isinstance(container, MAPPINGS) and isinstance(key, LEAVES):
        owner = records.owner_of(container)
        if owner is not None:
            read_attribute_of_table(records, owner, container, key)
        else:
            records.read(container, Read(Kind.CONTAINED, key), key in container, lambda: label_of(container))
    elif not isinstance(key, TRACED):
        records.read_contents(container)


def read_size(records: Records, container: Any) -> None:
    """The step reads how many entries there are."""
    records.read(container, Read(Kind.SIZE, None), len(container), lambda: label_of(container))


def read_all(records: Records, value: Any, depth: int = 0) -> None:
    """The step, or a function in C that it calls, reads everything in a value."""
    if isinstance(value, CONTAINERS):
        if records.is_known(value):
            records.read_contents(value)
        elif depth < 2:  # the step has made it, and put in it what was there
            for entry in itertools.islice(value.values() if isinstance(value, MAPPINGS) else value, 64):
                if not isinstance(entry, (*TRACED, *LEAVES)):
                    read_all(records, entry, depth + 1)
    elif isinstance(value, tuple) and depth < 2:
        for entry in value[:64]:
            if not isinstance(entry, (*TRACED, *LEAVES)):
                read_all(records, entry, depth + 1)


def write_attribute(records: Records, owner: Any, name: str) -> None:
    """The step is about to put something in owner.name."""
    place = place_of(owner, name)
    if place is not None:
        records.write_place(place[0], Read(place[1], name), lambda: label_of(owner))


def write_item(records: Records, container: Any, key: Any) -> None:
    """The step is about to write container[key]."""
    if isinstance(container, CONTAINERS) and records.is_known(container):
        owner = records.owner_of(container)
        if owner is not None:
            records.write_place(owner, Read(Kind.ATTRIBUTE, key), lambda: label_of(owner))
        elif isinstance(container, dict) and isinstance(key, LEAVES) and not isinstance(key, slice):
            records.write_place(container, Read(Kind.ITEM, key), lambda: label_of(container))
        else:
            records.write(container, None, lambda: label_of(container))
