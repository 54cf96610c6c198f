"""What a step returns: any pytree, and dataclasses that PyTorch's pytree does not know."""
from __future__ import annotations

import collections.abc
import copy
import dataclasses
import functools
import inspect
import types
from typing import Any, Iterator

import torch

from ...torch_api.tracing import pytree
from ..errors import CaptureError
from ..world.leaked_values import TRACED

_DEPTH = 4  # of containers and objects in each other


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
        raise CaptureError(f"the step returns a {type(leaf).__name__}, which computes when the step is over\n  cure: return a "
                           "list; of a step that yields, what it yields")
    if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
        return _Fields([wrap(getattr(leaf, name)) for name in _names(leaf)], leaf)
    if not isinstance(leaf, (*TRACED, torch.nn.Module)) and hasattr(leaf, "__dict__"):
        held = [name for name, value in vars(leaf).items() if isinstance(value, torch.Tensor)]
        if held:
            raise CaptureError(f"the step returns a {type(leaf).__qualname__}, and what it computed is in its "
                               f"attribute {held[0]!r}, which nobody can know\n  cure: return a tuple, a dict or a "
                               "dataclass")
    if not isinstance(leaf, TRACED) and (path := next(_traced_in(leaf, "", _DEPTH), None)) is not None:
        raise CaptureError(f"the step returns a {type(leaf).__qualname__}, and what it computed is in its {path}, which nobody can "
                           "know\n  cure: return a tuple, a dict or a dataclass")
    return leaf


def _traced_in(value: Any, path: str, depth: int) -> Iterator[str]:
    """Where an object that is no node of a pytree has traced values; what it reaches of the model is none of it."""
    if isinstance(value, TRACED):
        yield path
        return
    if depth == 0 or isinstance(value, (torch.nn.Module, torch.optim.Optimizer, types.ModuleType, type)):
        return
    if isinstance(value, dict):
        parts = [(f"entry {key!r}", part) for key, part in value.items()]
    elif isinstance(value, (list, tuple, set, frozenset, collections.abc.MappingView)):
        parts = [(f"entry {number}", part) for number, part in enumerate(value)]
    elif isinstance(value, functools.partial):
        parts = [(f"argument {key!r}", part) for key, part in (*enumerate(value.args), *value.keywords.items())]
    elif isinstance(value, types.FunctionType):
        parts = [(f"variable {name!r}", part) for name, part in inspect.getclosurevars(value).nonlocals.items()]
    else:
        slots = [name for base in type(value).__mro__ for name in getattr(base, "__slots__", ()) if isinstance(name, str)]
        parts = [(f"attribute {name!r}", getattr(value, name)) for name in slots if name.isidentifier() and hasattr(value, name)]
        parts += [(f"attribute {name!r}", part) for name, part in getattr(value, "__dict__", {}).items()]
    for name, part in parts:
        yield from _traced_in(part, path or name, depth - 1)


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
