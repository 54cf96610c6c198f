"""Python's own state that a step's code can reach, as values to compare: what changes while the step is traced is a
side effect, which a graph has not.

Watched are numbers, wherever lists, dicts and objects hold them, how many entries these have, how far an iterator is,
and the random generators of Python, numpy and torch.
"""
from __future__ import annotations

import collections
import copy
import enum
import itertools
import operator
import random
import sys
import types
from typing import Any, Callable, Hashable, Iterator, NamedTuple, TypeVar

import torch

from ...torch_api.settings import is_loader_iterator, num_yielded_of
from ...torch_api.tracing import pytree
from .device_meshes import is_made_of_meshes

NUMBERS = (bool, int, float, complex, str, types.NoneType)
_OPAQUE = (torch.Tensor, torch.nn.Module, torch.optim.Optimizer, types.ModuleType, type)
_CONTAINERS = (list, tuple, set, frozenset, collections.deque)
_MAPPINGS = (collections.UserDict, collections.ChainMap, types.MappingProxyType)
DEPTH = 4  # of containers and objects in each other
_ENTRIES = 64  # of a larger container only the size is watched
_VALUES = 10_000  # in all


class Aspect(enum.Enum):
    """What is watched of something."""

    VALUE = ""
    STATE = "the state of "
    SIZE = "the number of entries of "
    MESHES = "the meshes in "


class Watched(NamedTuple):
    """What is watched, for errors: "'self.meter.count'", "the number of entries of 'log'"."""

    aspect: Aspect
    path: str

    def __str__(self) -> str:
        return f"{self.aspect.value}'{self.path}'"


_Key = TypeVar("_Key", bound=Hashable)


def host_state(names: dict[str, Any], is_users: Callable[[Any], bool], tensors: bool = True) -> dict[Watched, Any]:
    """What is found from the values of `names`; of objects, those whose class `is_users`; of `tensors`, small ones."""
    found: dict[Watched, Any] = {}
    seen: set[int] = set()
    queue = collections.deque((name, value, DEPTH) for name, value in names.items())
    while queue and len(found) < _VALUES:
        path, value, depth = queue.popleft()
        if isinstance(value, NUMBERS):
            found[Watched(Aspect.VALUE, path)] = value
            continue
        if is_made_of_meshes(value):
            found[Watched(Aspect.MESHES, path)] = None
            continue
        if isinstance(value, _OPAQUE) and not (tensors and _is_small(value)) or id(value) in seen:
            continue
        seen.add(id(value))
        position = _position(value)
        if position is not None:
            found[Watched(Aspect.STATE, path)] = position
        elif depth:
            if isinstance(value, (dict, *_MAPPINGS, *_CONTAINERS)):
                found[Watched(Aspect.SIZE, path)] = _size(value)
            queue.extend((name, child, depth - 1) for name, child in _children(path, value, is_users))
    return found


def may_stay(what: Watched, before: dict[Watched, Any], after: dict[Watched, Any]) -> bool:
    """Where nothing was, meshes are, of the ranks that there are at every call."""
    was_empty = what in before and before[what] == (0 if what.aspect is Aspect.SIZE else None)
    return Watched(Aspect.MESHES, what.path) in after and (was_empty or what.aspect is Aspect.MESHES)


def tables(names: dict[str, Any], is_users: Callable[[Any], bool]) -> Iterator[tuple[str, dict, bool]]:
    """The attributes of the user's objects and the entries of dicts, each with the path that host_state() has, and
    whether it is an object's."""
    seen: set[int] = set()
    queue = collections.deque((name, value, DEPTH) for name, value in names.items())
    while queue and len(seen) < _VALUES:
        path, value, depth = queue.popleft()
        if not depth or isinstance(value, (*NUMBERS, *_OPAQUE, types.FunctionType)) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            yield path, value, False
        elif is_users(value) and isinstance(getattr(value, "__dict__", None), dict):
            yield path, vars(value), True
        queue.extend((name, child, depth - 1) for name, child in _children(path, value, is_users))


Roots = list[tuple[str, Any, "dict[Any, Any] | None", Any]]  # a path, what is there, and the table that has it under a key


def held_lists(roots: Roots, is_users: Callable[[Any], bool], kinds: tuple[type, ...]) \
        -> Iterator[tuple[str, dict[Any, Any] | None, Any, Any]]:
    """What is of one of these kinds, by each way to it: the path, the table (of attributes, of globals, or a dict) that has
    it under a key, and None where no such table does."""
    seen: set[int] = set()
    queue = collections.deque((*root, DEPTH) for root in roots)
    while queue and len(seen) < _VALUES:
        path, value, table, key, depth = queue.popleft()
        if type(value) in kinds:
            yield path, table, key, value
        if not depth or isinstance(value, (*NUMBERS, *_OPAQUE, types.FunctionType)) or id(value) in seen:
            continue
        seen.add(id(value))
        own = value if isinstance(value, dict) else vars(value) if is_users(value) and hasattr(value, "__dict__") else None
        if own is None:
            queue.extend((where, child, None, None, depth - 1) for where, child in _children(path, value, is_users))
        elif own is not value or len(own) <= _ENTRIES:
            queue.extend((entry_path(path, name, n) if own is value else f"{path}.{name}", child, own, name, depth - 1)
                         for n, (name, child) in enumerate(list(own.items())))


def copied(value: Any) -> Any:
    """A copy of a container of numbers, which a trace may change; anything else as it is."""
    leaves = pytree.tree_leaves(value)
    return copy.deepcopy(value) if isinstance(value, (dict, *_CONTAINERS)) and all(
        isinstance(leaf, NUMBERS) for leaf in leaves) else value


def entry_path(path: str, key: Any, number: int) -> str:
    """Of a dict's entry, by its key; of a key that is a tensor, whose values nobody wants to read, by its `number`."""
    return f"{path}[tensor {number}]" if isinstance(key, torch.Tensor) else f"{path}[{key!r}]"


def _is_small(value: Any) -> bool:
    """A tensor of few bytes with values on the CPU."""
    return isinstance(value, torch.Tensor) and type(value) in (torch.Tensor, torch.nn.Parameter) \
        and value.device.type == "cpu" and 0 < value.nbytes <= 4096 and not value.is_sparse


def _children(path: str, value: Any, is_users: Callable[[Any], bool]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (dict, *_MAPPINGS)):
        if len(value) <= _ENTRIES:
            yield from ((entry_path(path, key, n), child) for n, (key, child) in enumerate(list(value.items())))
    elif isinstance(value, _CONTAINERS):
        if len(value) <= _ENTRIES:
            yield from ((f"{path}[{i}]", child) for i, child in enumerate(value))
    elif isinstance(value, types.FunctionType) or is_users(value):
        yield from ((f"{path}.{key}", child) for key, child in getattr(value, "__dict__", {}).items())
        for base in type(value).__mro__:
            slots = base.__dict__.get("__slots__", ())
            for key in (slots,) if isinstance(slots, str) else slots:
                if not key.startswith("__") and hasattr(value, key):
                    yield f"{path}.{key}", getattr(value, key)


def _size(value: Any) -> int:
    """How many entries there are, beside meshes."""
    if not isinstance(value, (dict, list)) or len(value) > _ENTRIES:
        return len(value)
    return sum(not is_made_of_meshes(entry) for entry in (value.values() if isinstance(value, dict) else value))


def _position(value: Any) -> Any:
    """How far an iterator or a random generator is, and what a small array holds; None for anything else."""
    if isinstance(value, (types.MethodType, types.BuiltinMethodType)):  # of a generator of its own: self.draw = Random(0).random
        owner = value.__self__
        is_own = all(owner is not shared for shared in _shared_generators())
        return _position(owner) if is_own and type(owner).__module__.split(".")[0] in _GENERATORS else None
    if isinstance(value, random.Random):
        return value.getstate()
    if isinstance(value, itertools.count):
        return repr(value)
    if isinstance(value, (enumerate, zip, map)):
        return [_position(part) if hasattr(part, "__next__") else repr(part)
                for part in value.__reduce__()[1] if isinstance(part, int) or hasattr(part, "__next__")]
    if isinstance(value, types.GeneratorType):
        frame = value.gi_frame
        if frame is None:
            return None
        return frame.f_lasti, {k: v for k, v in frame.f_locals.items() if isinstance(v, NUMBERS)}
    if is_loader_iterator(value):
        return num_yielded_of(value)
    if type(value).__name__.endswith("_iterator") and type(value).__module__ == "builtins":
        return operator.length_hint(value, -1)
    if isinstance(value, torch.Tensor):  # what is written by way of numpy shows in no graph
        return bytes(value.detach().flatten().clone(memory_format=torch.contiguous_format).view(torch.uint8).numpy())
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(value, numpy.ndarray):
            return value.tobytes() if value.size <= 4096 and not value.dtype.hasobject else None
        if isinstance(value, numpy.random.Generator):
            return repr(value.bit_generator.state)
        if isinstance(value, numpy.random.RandomState):
            return repr(value.get_state())
    return None


_GENERATORS = ("random", "numpy")


def _shared_generators() -> tuple[Any, ...]:
    """Those that generator_states() has."""
    numpy = sys.modules.get("numpy")
    return random.random.__self__, *(() if numpy is None else (numpy.random.rand.__self__,))


def differences(before: dict[_Key, Any], after: dict[_Key, Any]) -> list[_Key]:
    """The keys whose value is another, in the order in which they were found. What came new is in a container or an
    object that has more entries; a name that was not set before is told, too."""
    return [key for key in (*before, *(k for k in after if k not in before))
            if key not in before or key not in after or not _same(before[key], after[key])]


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and (a == b or (a != a and b != b)))


def generator_states() -> dict[str, Any]:
    """Where the random generators are that nobody passes around, by the name of their library."""
    torch_state = (torch.initial_seed(), bytes(torch.default_generator.get_state().numpy()))
    return {**host_generator_states(), "torch": torch_state}


def host_generator_states() -> dict[str, Any]:
    """Those of them that are not torch's."""
    states: dict[str, Any] = {"random": random.getstate()}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        name, keys, *rest = numpy.random.get_state()
        states["numpy"] = (name, keys.tobytes(), rest)
    return states
