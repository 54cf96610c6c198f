"""Tensors whose values a trace knows: what is computed from nothing but sizes and numbers.

Models ask for such values to choose their way: transformers' Longformer makes a mask of ones where it was given none, and
asks whether any element says so. The answer is the same in every step, so it is given as eager would give it, and no
other value is.
"""
from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

_aten = torch.ops.aten
# Made of sizes and numbers alone; of a tensor that is given, only its shape and type count.
_MAKE = {_aten.ones, _aten.zeros, _aten.full, _aten.arange, _aten.eye, _aten.scalar_tensor, _aten.linspace,
         _aten.tril_indices, _aten.triu_indices, _aten.ones_like, _aten.zeros_like, _aten.full_like, _aten.new_ones,
         _aten.new_zeros, _aten.new_full}
_ASK = (_aten._local_scalar_dense.default, _aten.equal.default)
_MOST_ELEMENTS = 1 << 22  # of a tensor that is computed a second time


def _is_real(tensor: Any) -> bool:
    """A Python number that became a tensor, or another constant of the graph."""
    return isinstance(tensor, torch.Tensor) and not isinstance(tensor, FakeTensor)


class KnownValues:
    """Computes beside the trace, on real tensors, what has known values."""

    def __init__(self) -> None:
        self._values: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # traced (kept alive), real; by id
        self._lost: set[int] = set()  # storages that something unknown was written to

    def answer(self, func: torch._ops.OpOverload, args: tuple) -> bool | int | float | complex | None:
        """The number that Python asks for: .item(), torch.equal. None: it asks for none, or that is not known."""
        if func not in _ASK:
            return None
        values = [self._of(tensor) for tensor in args]
        if any(value is None for value in values):
            return None
        with _disable_current_modes():
            return func(*values)

    def note(self, func: torch._ops.OpOverload, args: tuple, kwargs: dict, made: Any) -> None:
        """Remembers what the op made, if that is known now; what it wrote to otherwise is not known any more."""
        leaves = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        # An operator of tensors that is given none has Python numbers in their place.
        makes = func.overloadpacket in _MAKE or not leaves and any(
            str(argument.type) == "Tensor" for argument in func._schema.arguments)
        if not makes and not any(id(leaf) in self._values or _is_real(leaf) for leaf in leaves):
            return
        results = [t for t in pytree.tree_leaves(made) if isinstance(t, torch.Tensor)]
        values = None
        if max((t.numel() for t in (*results, *leaves)), default=0) <= _MOST_ELEMENTS \
                and torch.Tag.nondeterministic_seeded not in func.tags:
            values = self._compute(func, args, kwargs, makes)
        if values is None:
            self._lose(func, args, kwargs)
        elif len(values) == len(results):
            self._values.update((id(t), (t, value)) for t, value in zip(results, values))

    def _of(self, tensor: Any) -> torch.Tensor | None:
        if _is_real(tensor):
            return tensor
        _, value = self._values.get(id(tensor), (None, None))
        return None if value is None or value.untyped_storage()._cdata in self._lost else value

    def _compute(self, func, args, kwargs, makes: bool) -> list[torch.Tensor] | None:
        unknown = False

        def real(leaf):
            nonlocal unknown
            if not isinstance(leaf, torch.Tensor):
                return leaf
            value = self._of(leaf)
            if value is None and makes:
                value = torch.empty(leaf.shape, dtype=leaf.dtype)
            unknown |= value is None
            return value

        with _disable_current_modes():
            args, kwargs = pytree.tree_map(real, (args, kwargs))
            if unknown:
                return None
            try:
                return [t for t in pytree.tree_leaves(func(*args, **kwargs)) if isinstance(t, torch.Tensor)]
            except (RuntimeError, NotImplementedError):
                return None

    def _lose(self, func, args, kwargs) -> None:
        for number, argument in enumerate(func._schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            written = args[number] if number < len(args) else kwargs.get(argument.name)
            for tensor in written if isinstance(written, (list, tuple)) else [written]:
                if (value := self._of(tensor)) is not None:
                    self._lost.add(value.untyped_storage()._cdata)
