"""What a step's code can reach without an argument, and how to reach it again: modules and tensors in globals,
closures, attributes of objects, lists and dicts.

The walk goes wider than what the step uses, because code can reach an object in ways that no one reads off it
(`for teacher in self.teachers`); which of the modules and tensors are used, the trace tells (held.py).
"""
from __future__ import annotations

import functools
import types
from typing import Any, Callable, Iterable

import torch

from .function_caches import CachedFunction
from .paths import Place
from .scaler_state import scaler_there, state_of_scaler
from .walk import CLOSURE_OBJECTS, ENTRIES, EVERY, NOTHING, NUMBERS, SIZED, Edge, Node, Visitor, children, walk


class Opaque:
    """What holds compiled steps, and not what a step uses: no walk goes into it."""


class CompiledFunction(Opaque):
    """What spmd.compile makes of the function `train_step`, with the batch dims that it was given."""

    train_step: Callable
    batch_dims: dict[str, int | None] | None


_OPAQUE = (*NUMBERS, bytes, Opaque, torch.optim.Optimizer, torch.Generator, types.BuiltinFunctionType, types.CodeType,
           types.FrameType)
_LOOSE = frozenset({Edge.ATTRIBUTE, Edge.CLASS})  # what hangs on a module without being registered in it, and its code
_OTHERS = EVERY - {Edge.MAPPED}  # a UserDict leads to its entries by its attributes


class ClosureObjects(Visitor):
    """Modules that lie in no other reached module, and tensors, each with the shortest way to it. `aliases` are other
    ways to modules of the model, `caches` functions that keep what they have computed.

    `known` are the objects that the step gets as arguments: what is registered in them is not reached, it is given.
    """

    limits, ignored = CLOSURE_OBJECTS, _OPAQUE

    def __init__(self, functions: Iterable[Callable], model: torch.nn.Module, arguments: dict[str, Any],
                 known: Iterable[Any]):
        self._known = {id(value) for value in known}
        self._model, self._inside = model, {id(module) for module in model.modules()}
        self._modules: dict[int, tuple[Place, torch.nn.Module]] = {}
        self.aliases: list[tuple[Place, torch.nn.Module]] = []
        self.tensors: dict[int, tuple[Place, torch.Tensor]] = {}
        self.caches: list[Any] = []  # functools.lru_cache
        self._again: dict[int, list[Callable[[], Any]]] = {}  # other ways to tensors and modules, by id
        roots = [Node.root("", function) for function in functions]
        roots += (Node.root(name, value) for name, value in arguments.items())
        for path, module in model.named_modules():
            roots += children(Node.root(path, module), _LOOSE)
        walk(roots, self)
        for found in (self._modules, self.tensors):
            found.update((number, (place._replace(others=tuple(self._again[number])), value))
                         for number, (place, value) in found.items() if number in self._again)
        inner = {id(m) for _, root in self._modules.values() for m in root.modules() if m is not root}
        self.modules = [self._with_ways_inside(*found) for number, found in self._modules.items() if number not in inner]
        for place, root in self.modules:
            for node in children(Node.root(place.path, root, place.get), frozenset({Edge.REGISTERED, Edge.SUBMODULE})):
                self.tensors.setdefault(id(node.value), (Place(node.path, node.get, place.containers), node.value))

    def visit(self, node: Node) -> frozenset[Edge]:
        value = node.value
        if id(value) in self._inside:
            self.aliases.append((node.place, value))
            return NOTHING
        if not node.is_new or id(value) in self._known:
            if isinstance(value, (torch.Tensor, torch.nn.Module)):
                self._again.setdefault(id(value), []).append(node.get)
            return NOTHING
        if isinstance(value, torch.Tensor):
            self.tensors[id(value)] = node.place, value
            return NOTHING
        if (scaler := state_of_scaler(value, self._model)) is not None:
            self._modules[id(scaler)] = node.place._replace(get=functools.partial(scaler_there, node.get)), scaler
            return NOTHING
        if isinstance(value, torch.nn.Module):
            self._modules[id(value)] = node.place, value
            return _LOOSE | {Edge.SUBMODULE}
        if isinstance(value, CachedFunction):
            self.caches.append(value)
        return ENTRIES if isinstance(value, SIZED) else _OTHERS

    def _with_ways_inside(self, place: Place, root: torch.nn.Module) -> tuple[Place, torch.nn.Module]:
        """With those that lead to a part of it (`self.head = self.teacher.head`)."""
        ways = [functools.partial(_whole_of, way, place.get, path) for path, module in root.named_modules() if module is not root
                for way in (*((self._modules[id(module)][0].get,) if id(module) in self._modules else ()),
                            *self._again.get(id(module), ()))]
        return place._replace(others=(*place.others, *ways)), root


def _whole_of(get: Callable[[], Any], whole: Callable[[], torch.nn.Module], path: str) -> Any:
    """The whole, if what `get` gives is its part at `path`."""
    return whole() if get() is whole().get_submodule(path) else None
