"""as_strided of a tensor whose elements lie in memory in another order than that of its dims.

What it reads is said by memory alone, so it is taken of the tensor with its dims in the order of memory: the same memory,
and contiguous, which is what a graph without strides can say (normalize.py).
"""
from __future__ import annotations

from typing import Any, Callable

import torch

from ..observe.dispatch_mode import OpCall

_STRIDED = (torch.ops.aten.as_strided.default, torch.ops.aten.as_strided_copy.default)


def in_order_of_memory(call: OpCall) -> Callable | None:
    """What to call in the operator's place; None: the operator itself."""
    func, args = call.func, call.args
    if func not in _STRIDED or args[0].is_contiguous():
        return None
    sizes, strides = args[0].shape, args[0].stride()
    order = sorted(range(len(sizes)), key=lambda dim: (sizes[dim] != 1, -strides[dim]))

    def run(tensor: torch.Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> torch.Tensor:
        with call.traced():
            offset = tensor.storage_offset() if storage_offset is None else storage_offset
            return func(tensor.permute(order), size, stride, offset)

    expected = 1
    for dim in reversed(order):
        if sizes[dim] != 1 and strides[dim] != expected:
            return None
        expected *= sizes[dim]
    return run
