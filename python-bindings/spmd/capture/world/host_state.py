"""Python's own state that a step's code can reach, as values to compare: what changes while the step is traced is a
side effect, which a graph has not.

Watched are numbers, wherever lists, dicts and objects hold them, how many entries these have, how far an iterator is,
and the random generators of Python, numpy and torch.
"""
from __future__ import annotations

import copy
import enum
import itertools
import operator
import random
import sys
import types
from typing import Any, Callable, Hashable, NamedTuple, TypeVar

import torch

from ...torch_api.settings import is_loader_iterator, num_yielded_of
from ...torch_api.tracing import pytree
from .device_meshes import is_made_of_meshes
from .walk import ATTRIBUTES, ENTRIES, HOST_STATE, MAPPINGS, NOTHING, NUMBERS, OPAQUE, SIZED, Edge, Node, Visitor, walk

_CONTAINERS = (*SIZED, *MAPPINGS)
_CONTENTS = ENTRIES | {Edge.MAPPED}


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
    state = _HostState(is_users, tensors)
    walk((Node.root(name, value) for name, value in names.items()), state)
    return state.found


class _HostState(Visitor):
    """Of a container that is not entered, because it is too large, the size is watched."""

    limits = HOST_STATE

    def __init__(self, is_users: Callable[[Any], bool], tensors: bool):
        self._is_users, self._tensors = is_users, tensors
        self.found: dict[Watched, Any] = {}

    def visit(self, node: Node) -> frozenset[Edge]:
        path, value = node.path, node.value
        if isinstance(value, NUMBERS):
            self.found[Watched(Aspect.VALUE, path)] = value
            return NOTHING
        if is_made_of_meshes(value):
            self.found[Watched(Aspect.MESHES, path)] = None
            return NOTHING
        if isinstance(value, OPAQUE) and not (self._tensors and _is_small(value)) or not node.is_new:
            return NOTHING
        position = _position(value)
        if position is not None:
            self.found[Watched(Aspect.STATE, path)] = position
            return NOTHING
        if isinstance(value, _CONTAINERS) and not self.is_at_the_end(node):
            self.found[Watched(Aspect.SIZE, path)] = _size(value)
        return edges_of_state(value, self._is_users)


def edges_of_state(value: Any, is_users: Callable[[Any], bool]) -> frozenset[Edge]:
    """How Python state lies in a value: in entries, and in attributes of functions and of objects whose class `is_users`."""
    if isinstance(value, _CONTAINERS):
        return _CONTENTS
    return ATTRIBUTES if isinstance(value, types.FunctionType) or is_users(value) else NOTHING


def may_stay(what: Watched, before: dict[Watched, Any], after: dict[Watched, Any]) -> bool:
    """Where nothing was, meshes are, of the ranks that there are at every call."""
    was_empty = what in before and before[what] == (0 if what.aspect is Aspect.SIZE else None)
    return Watched(Aspect.MESHES, what.path) in after and (was_empty or what.aspect is Aspect.MESHES)


def copied(value: Any) -> Any:
    """A copy of a container of numbers, which a trace may change; anything else as it is."""
    leaves = pytree.tree_leaves(value)
    return copy.deepcopy(value) if isinstance(value, SIZED) and all(
        isinstance(leaf, NUMBERS) for leaf in leaves) else value


def _is_small(value: Any) -> bool:
    """A tensor of few bytes with values on the CPU."""
    return isinstance(value, torch.Tensor) and type(value) in (torch.Tensor, torch.nn.Parameter) \
        and value.device.type == "cpu" and 0 < value.nbytes <= 4096 and not value.is_sparse


def _size(value: Any) -> int:
    """How many entries there are, beside meshes."""
    if not isinstance(value, (dict, list)) or len(value) > HOST_STATE.entries:
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
