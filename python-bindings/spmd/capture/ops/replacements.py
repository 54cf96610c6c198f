"""Operators that are traced as others: the rules, in the order in which they are asked."""
from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

import torch

from ..errors import error_at
from ..observe.dispatch_mode import Handler, OpCall, Phase
from . import collectives, custom_ops, out_arguments, prims, strides
from .complex_numbers import ComplexNumbers

Rule = Callable[[OpCall], "Callable[..., Any] | None"]


def rules(knows: Callable[[torch.Tensor], bool], complex_numbers: ComplexNumbers) -> list[Rule]:
    """Each gives the function to call in an operator's place, or None. `knows`: whether the trace knows a tensor's values."""
    return [custom_ops.decomposition, collectives.in_its_place, functools.partial(prims.in_atens_words, knows=knows),
            out_arguments.into_out, strides.in_order_of_memory, complex_numbers.rule]


class Replacements(Handler):
    """Calls what the first of the rules gives. `note_replaced` is told before."""

    phase = Phase.REPLACE

    def __init__(self, rules: Sequence[Rule], note_replaced: Callable[[OpCall], None]):
        self._rules, self._note_replaced = rules, note_replaced

    def answer(self, call: OpCall) -> Any:
        for rule in self._rules:
            if (function := rule(call)) is not None:
                self._note_replaced(call)
                return function(*call.args, **call.kwargs)
        return NotImplemented


_PRODUCTS = {getattr(torch.ops.aten, name) for name in (
    "mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "vdot", "convolution", "linear")}


class MixedProducts(Handler):
    """Refuses products of several types: their shape functions take them, and their kernels do not."""

    phase = Phase.CHECK
    operators = {getattr(packet, name) for packet in _PRODUCTS for name in packet.overloads()}

    def answer(self, call: OpCall) -> Any:
        if len(dtypes := dict.fromkeys(leaf.dtype for leaf in call.leaves)) > 1:
            raise error_at(call.stack, f"{call.func} multiplies {' by '.join(map(str, dtypes))}, which eager PyTorch refuses",
                           "cast one of them, or compute in one type: precision=, torch.autocast")
        return NotImplemented
