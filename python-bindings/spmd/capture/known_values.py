"""Tensors whose values a trace knows: what is computed from nothing but sizes and numbers.

Models ask for such values to choose their way: transformers' Longformer makes a mask of ones where it was given none, and
asks whether any element says so. The answer is the same in every step, so it is given as eager would give it, and no
other value is. What makes such tensors is noted as it is traced, and computed only when a step asks.
"""
from __future__ import annotations

import dataclasses
import functools
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
_MOST_ELEMENTS = 1 << 22  # of a tensor that is computed to answer


def _is_real(tensor: torch.Tensor) -> bool:
    """A Python number that became a tensor, or another constant of the graph."""
    return not isinstance(tensor, FakeTensor)


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


@functools.cache
def _is_known(func: torch._ops.OpOverload) -> bool | None:
    """Whether what an operator makes is known, whatever it is given; None: if that is."""
    if func.namespace != "aten" or torch.Tag.nondeterministic_seeded in func.tags \
            or func.overloadpacket.__name__.startswith(("empty", "new_empty")):
        return False
    return True if func.overloadpacket in _MAKE else None


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


@dataclasses.dataclass
class _Call:
    """An operator of tensors that are known; `func` None: it wrote something unknown to the memory of `made`."""

    func: torch._ops.OpOverload | None
    args: tuple
    kwargs: dict
    made: list[torch.Tensor]
    written: set[int]  # memory


class KnownValues:
    def __init__(self) -> None:
        self._calls: list[_Call] = []  # in the order of the trace; they keep their tensors alive, so ids stay theirs
        self._known: set[int] = set()  # ids of what they made

    def answer(self, func: torch._ops.OpOverload, args: tuple) -> bool | int | float | complex | None:
        """The number that Python asks for: .item(), torch.equal. None: it asks for none, or that is not known."""
        if func not in _ASK or not all(_is_real(tensor) or id(tensor) in self._known for tensor in args):
            return None
        calls = self._calls_behind([tensor for tensor in args if not _is_real(tensor)])
        if calls is None:
            return None
        values: dict[int, torch.Tensor] = {}
        with _disable_current_modes():
            try:
                for call in calls:
                    given, named = pytree.tree_map(lambda leaf, call=call: _real(leaf, call, values), (call.args, call.kwargs))
                    values.update(zip(map(id, call.made), _tensors(call.func(*given, **named)), strict=True))
                return func(*(tensor if _is_real(tensor) else values[id(tensor)] for tensor in args))
            except Exception:
                return None  # a fake goes through operators whose real ones refuse

    def note(self, func: torch._ops.OpOverload, args: tuple, kwargs: dict, given: list[torch.Tensor],
             written: list[torch.Tensor], made: list[torch.Tensor]) -> None:
        """Remembers what the op made, if that is known now; what it wrote to otherwise is not known any more. `given` and
        `written` are the tensors in its arguments, and those of them that it writes to."""
        known = _is_known(func)
        if known is None and given:
            known = all(_is_real(tensor) or id(tensor) in self._known for tensor in given)
        elif known is None:  # an operator of tensors that is given none has Python numbers in their place
            known = any(str(argument.type) == "Tensor" for argument in func._schema.arguments)
        written = [tensor for tensor in written if id(tensor) in self._known]
        if known:
            self._calls.append(_Call(func, args, kwargs, made, set(map(_memory, written))))
            self._known.update(map(id, made))
        elif written:
            self._calls.append(_Call(None, (), {}, written, set(map(_memory, written))))

    def _calls_behind(self, asked: list[torch.Tensor]) -> list[_Call] | None:
        """What computes these tensors, in order; None: something unknown was written to their memory, or they are too
        large."""
        calls, wanted, memory = [], set(map(id, asked)), set(map(_memory, asked))
        for call in reversed(self._calls):
            if not (wanted.intersection(map(id, call.made)) or memory & call.written):
                continue
            given = _tensors((call.args, call.kwargs))
            if call.func is None or any(tensor.numel() > _MOST_ELEMENTS for tensor in (*call.made, *given)):
                return None
            if call.func.overloadpacket not in _MAKE:
                given = [tensor for tensor in given if not _is_real(tensor)]
                wanted.update(map(id, given))
                memory.update(map(_memory, given))
            calls.append(call)
        return calls[::-1]


def _real(leaf: Any, call: _Call, values: dict[int, torch.Tensor]) -> Any:
    if not isinstance(leaf, torch.Tensor) or _is_real(leaf):
        return leaf
    if call.func.overloadpacket in _MAKE:
        return torch.empty(leaf.shape, dtype=leaf.dtype)
    return values[id(leaf)]
