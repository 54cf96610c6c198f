"""What a step returns: any pytree, and dataclasses that PyTorch's pytree does not know."""
from __future__ import annotations

import collections.abc
import copy
import dataclasses
import functools
import types
from typing import Any

import torch

from ...torch_api.tracing import pytree
from ..errors import CaptureError
from ..world.leaked_values import TRACED
from ..world.walk import ATTRIBUTES, ENTRIES, NOTHING, RETURNED_VALUES, Edge, Node, Visitor, walk


@dataclasses.dataclass
class _Fields:
    """The fields of a dataclass instance, as a node of a pytree; `template` is an instance of the class."""

    values: list[Any]
    template: Any


@dataclasses.dataclass
class _Size:
    """A torch.Size, which would come out of a pytree as a tuple."""

    numbers: list[int]


def _names(template: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(template)]


pytree.register_pytree_node(
    _Fields, lambda node: (node.values, node.template), lambda values, template: _Fields(list(values), template),
    flatten_with_keys_fn=lambda node: ([(pytree.GetAttrKey(name), value)
                                        for name, value in zip(_names(node.template), node.values)], node.template))


pytree.register_pytree_node(_Size, lambda node: (node.numbers, None), lambda numbers, _: _Size(list(numbers)),
                            flatten_with_keys_fn=lambda node: ([(pytree.SequenceKey(index), number)
                                                                for index, number in enumerate(node.numbers)], None))


def wrap(returned: Any) -> Any:
    """The pytree of a step's return value, in which the fields of dataclasses are found too.

    Raises:
      CaptureError: for an object that holds tensors out of sight, and for one whose code runs when the step is over.
    """
    return pytree.tree_map(_wrap_leaf, returned, is_leaf=lambda node: isinstance(node, torch.Size))


def _wrap_leaf(leaf: Any) -> Any:
    if isinstance(leaf, torch.Size):
        return _Size(list(leaf))
    if isinstance(leaf, (collections.abc.Iterator, collections.abc.Coroutine, collections.abc.AsyncIterator)):
        raise CaptureError(f"the step returns a {type(leaf).__name__}, which would compute after the step has ended\n  hint: "
                           "return a list, for example of the yielded values")
    if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
        return _Fields([wrap(getattr(leaf, name)) for name in _names(leaf)], leaf)
    if not isinstance(leaf, (*TRACED, torch.nn.Module)) and hasattr(leaf, "__dict__"):
        held = [name for name, value in vars(leaf).items() if isinstance(value, torch.Tensor)]
        if held:
            raise CaptureError(f"the step returns a {type(leaf).__qualname__} with a tensor in its attribute {held[0]!r}: "
                               "the capture cannot find it\n  hint: return a tuple, a dict or a dataclass")
    if not isinstance(leaf, TRACED) and (path := _first_traced_in(leaf)) is not None:
        raise CaptureError(f"the step returns a {type(leaf).__qualname__} with a tensor in its {path}: the capture cannot "
                           "find it\n  hint: return a tuple, a dict or a dataclass")
    return leaf


class _TracedInside(Visitor):
    """Finds traced values in an object that is no node of a pytree, but not in what it reaches of the model."""

    limits = RETURNED_VALUES

    def __init__(self) -> None:
        self.found: list[Node] = []

    def visit(self, node: Node) -> frozenset[Edge]:
        value = node.value
        if isinstance(value, TRACED):
            self.found.append(node)
            return NOTHING
        if isinstance(value, (torch.nn.Module, torch.optim.Optimizer, types.ModuleType, type)) or _is_function_of_partial(node):
            return NOTHING
        return next((edges for kinds, edges in _EDGES if isinstance(value, kinds)), ATTRIBUTES)


_EDGES = [((dict, list, tuple, set, frozenset), ENTRIES),
          (collections.abc.MappingView, frozenset({Edge.MAPPED})),
          (functools.partial, frozenset({Edge.ARGUMENT})),
          (types.FunctionType, frozenset({Edge.CELL}))]


def _is_function_of_partial(node: Node) -> bool:
    return node.edge is Edge.ARGUMENT and node.key == "func"


def _first_traced_in(leaf: Any) -> str | None:
    """The part of a returned object that has a traced value, in words; None where no part has one."""
    inside = _TracedInside()
    walk([Node.root("", leaf)], inside)
    if not inside.found:
        return None
    way = [min(inside.found, key=lambda node: node.order)]
    while way[0].owner is not None:
        way.insert(0, way[0].owner)
    part = way[1]
    if part.edge is Edge.ARGUMENT:
        return f"argument {way[2].key!r}"
    if part.edge is Edge.CELL:
        return f"variable {part.path!r}"
    return f"{'attribute' if part.edge in ATTRIBUTES else 'entry'} {part.key!r}"


def unwrap(result: Any) -> Any:
    """The inverse of wrap: instances of the dataclasses again."""
    return pytree.tree_map(_unwrap_leaf, result, is_leaf=lambda node: isinstance(node, (_Fields, _Size)))


def _unwrap_leaf(leaf: Any) -> Any:
    if isinstance(leaf, _Size):
        return torch.Size(leaf.numbers)
    if not isinstance(leaf, _Fields):
        return leaf
    made = copy.copy(leaf.template)
    for name, value in zip(_names(made), leaf.values):
        object.__setattr__(made, name, unwrap(value))
    return made
