"""Operators that write their result into a given tensor, `torch.mul(a, b, out=c)`: the operator, then a write."""
from __future__ import annotations

from typing import Any, Callable

import torch

from ..errors import error_at
from ..observe.dispatch_mode import OpCall


def into_out(call: OpCall) -> Callable | None:
    """What is traced in place of an ATen operator whose one result is written into its argument `out`; None for any other."""
    out = call.kwargs.get("out")
    if call.func.namespace != "aten" or not isinstance(out, torch.Tensor):
        return None

    def run(*args: Any, out: torch.Tensor, **kwargs: Any) -> torch.Tensor:
        with call.traced():
            result = call.func.overloadpacket(*args, **kwargs)
            if result.shape != out.shape or result.dtype != out.dtype:
                raise error_at(call.stack, f"{call.func} writes a result of shape {list(result.shape)} and {result.dtype} into a tensor "
                               f"of shape {list(out.shape)} and {out.dtype}", "pass a tensor with the result's shape and "
                                                                              "dtype")
            return out.copy_(result)
    return run
