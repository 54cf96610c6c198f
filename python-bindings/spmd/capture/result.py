"""What a step returns: any pytree, and dataclasses that PyTorch's pytree does not know."""
from __future__ import annotations

import copy
import dataclasses
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .errors import CaptureError


@dataclasses.dataclass
class _Fields:
    """The fields of a dataclass instance, as a node of a pytree; `template` is an instance of the class."""

    values: list[Any]
    template: Any


def _names(template: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(template)]


pytree.register_pytree_node(
    _Fields, lambda node: (node.values, node.template), lambda values, template: _Fields(list(values), template),
    flatten_with_keys_fn=lambda node: ([(pytree.GetAttrKey(name), value)
                                        for name, value in zip(_names(node.template), node.values)], node.template))


def wrap(returned: Any) -> Any:
    """The pytree of a step's return value, in which the fields of dataclasses are found too.

    Raises:
      CaptureError: for an object that holds tensors out of sight.
    """
    return pytree.tree_map(_wrap_leaf, returned)


def _wrap_leaf(leaf: Any) -> Any:
    if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
        return _Fields([wrap(getattr(leaf, name)) for name in _names(leaf)], leaf)
    if not isinstance(leaf, (torch.Tensor, torch.nn.Module)) and hasattr(leaf, "__dict__"):
        held = [name for name, value in vars(leaf).items() if isinstance(value, torch.Tensor)]
        if held:
            raise CaptureError(f"the step returns a {type(leaf).__qualname__}, and what it computed is in its "
                               f"attribute {held[0]!r}, which nobody can know\n  cure: return a tuple, a dict or a "
                               "dataclass")
    return leaf


def unwrap(result: Any) -> Any:
    """The inverse of wrap: instances of the dataclasses again."""
    return pytree.tree_map(_unwrap_leaf, result, is_leaf=lambda node: isinstance(node, _Fields))


def _unwrap_leaf(leaf: Any) -> Any:
    if not isinstance(leaf, _Fields):
        return leaf
    made = copy.copy(leaf.template)
    for name, value in zip(_names(made), leaf.values):
        object.__setattr__(made, name, unwrap(value))
    return made
