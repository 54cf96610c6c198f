"""What a step gives: its return value, and what it leaves behind."""
from __future__ import annotations

import dataclasses
from typing import Any, Callable, Iterator

import torch

from ...models import DTYPES
from ...torch_api.tracing import pytree
from ..values.lazy_rows import Check
from ..world.grown_lists import Grown
from ..world.leaked_values import LeakedValue

# What a graph can give back: tensors, and .item() of one.
TRACED = (torch.Tensor, torch.SymFloat, torch.SymInt, torch.SymBool)


@dataclasses.dataclass(frozen=True)
class Output:
    """The place of outputs[index] in the step's return value; `scalar`: it was a Python number (.item())."""

    index: int
    scalar: bool


@dataclasses.dataclass(frozen=True)
class Empty:
    """A tensor without elements in the step's return value: its shape and dtype are all there is to know."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    def make(self) -> torch.Tensor:
        return torch.empty(self.shape, dtype=self.dtype)


def _is_empty(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and not leaf.numel() and leaf.dtype in DTYPES


@dataclasses.dataclass
class Results:
    """`result`: the step's return value, with an Empty for each tensor that has no elements; `left`: values that the step leaves
    behind (world/leaked_values.py); `grown`: values that it appends to lists; `written`: tensors of its batch that it changes, by
    name, which a captured step does in no other's; `checks`: what the caller wants to know of the step.

    While a step is traced, the values are the trace's; placed() has an Output for each.
    """

    result: Any
    left: list[LeakedValue] = dataclasses.field(default_factory=list)
    grown: list[Grown] = dataclasses.field(default_factory=list)
    written: list[tuple[str, Any]] = dataclasses.field(default_factory=list)
    checks: list[Check] = dataclasses.field(default_factory=list)

    def values(self, own_of: Callable[[Any], Any]) -> Iterator[Any]:
        """The traced values, in the order of outputs. `own_of`: the parameter or buffer that a value is; the very object is left then."""
        yield from (leaf for leaf in pytree.tree_leaves(self.result) if isinstance(leaf, TRACED))
        yield from self.kept(own_of)
        yield from (tensor.detach() for _, tensor in self.written)
        yield from (check.value for check in self.checks)

    def kept(self, own_of: Callable[[Any], Any]) -> list[Any]:
        """The traced values that are left behind."""
        return [leaf for leaf in pytree.tree_leaves([[left.value for left in self.left], [one.items for one in self.grown]])
                if isinstance(leaf, TRACED) and own_of(leaf) is None]

    def placed(self, own_of: Callable[[Any], Any], is_number: Callable[[Any], bool]) -> Results:
        """The same with Outputs. `is_number`: the tensor was a Python number."""
        index = -1

        def place(leaf: Any) -> Output:
            nonlocal index
            index += 1
            return Output(index, not isinstance(leaf, torch.Tensor) or is_number(leaf))

        def place_left(tree: Any) -> Any:
            return pytree.tree_map(lambda leaf: leaf if not isinstance(leaf, TRACED) else
                                   place(leaf) if own_of(leaf) is None else own_of(leaf), tree)

        return Results(pytree.tree_map(lambda leaf: place(leaf) if isinstance(leaf, TRACED) else leaf, self.result),
                       [left._replace(value=place_left(left.value)) for left in self.left],
                       [one._replace(items=place_left(one.items)) for one in self.grown],
                       [(name, place(tensor)) for name, tensor in self.written],
                       [check._replace(value=place(check.value)) for check in self.checks])


def without_empty(tree: Any) -> Any:
    """A pytree with an Empty for each tensor that has no elements."""
    return pytree.tree_map(lambda leaf: Empty(tuple(leaf.shape), leaf.dtype) if _is_empty(leaf) else leaf, tree)
