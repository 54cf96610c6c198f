"""Views that are traced as others, and views that are refused."""
from __future__ import annotations

from typing import Any

import torch

from ..errors import error_at
from ..observe.dispatch_mode import Handler, OpCall, Phase


class SameShape(Handler):
    """A tensor that is expanded to its own shape is itself: what writes into it writes no element twice."""

    phase = Phase.DEVICE
    operators = {torch.ops.aten.expand.default}

    def answer(self, call: OpCall) -> Any:
        if list(call.args[1]) == list(call.args[0].shape):
            call.func, call.args, call.kwargs = torch.ops.aten.alias.default, call.args[:1], {}
        return NotImplemented


class BitViews(Handler):
    """Refuses x.view(dtype), which gives the bits of elements another meaning: the compiler has no such operator."""

    phase = Phase.CHECK
    operators = {torch.ops.aten.view.dtype}

    def answer(self, call: OpCall) -> Any:
        found, wanted = call.args[0].dtype, call.args[1]
        if found == wanted or found.is_complex or wanted.is_complex:
            return NotImplemented
        raise error_at(call.stack,
                       f"view({wanted}) of a tensor of {found} is not supported in a step: it reads the bits of the elements",
                       "for stochastic rounding keep parameters in f32 and compute in bf16, "
                       "precision=\"param=bf16\"; or write the arithmetic as an operator of its own, "
                       "spmd.register_kernel")
