"""Operators that forward-mode differentiation (torch.func.jvp, jacfwd, hessian) calls beside ATen's."""
from __future__ import annotations

from typing import Any, Callable

import torch


_QUESTIONS = {
    torch.ops.aten.is_same_size.default: lambda a, b: a.shape == b.shape,
    torch.ops.aten._has_same_storage_numel.default: lambda a, b: _numel_of_storage(a) == _numel_of_storage(b),
}


def _numel_of_storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().nbytes() // tensor.itemsize


def in_atens_words(func: torch._ops.OpOverload, mode: Any) -> Callable | None:
    """What is traced, by `mode`, in place of one of torch.ops.prims that ATen has by the same name (prims neither broadcast
    nor promote, and ATen's give the same where there is no need to), or of a question about two tensors. None for any other."""
    if func in _QUESTIONS:
        return _QUESTIONS[func]
    packet = getattr(torch.ops.aten, func._opname, None) if func.namespace == "prims" else None
    if packet is None:
        return None

    def run(*args: Any, **kwargs: Any) -> Any:
        with mode:
            return packet(*args, **kwargs)
    return run
