"""Operators beside those of ATen on CPUs: what forward-mode differentiation (torch.func.jvp, jacfwd, hessian) calls, and
what only GPUs have."""
from __future__ import annotations

from typing import Any, Callable

import torch

from .triangular import solve_triangular

_QUESTIONS = {
    torch.ops.aten.is_same_size.default: lambda a, b: a.shape == b.shape,
    torch.ops.aten._has_same_storage_numel.default: lambda a, b: _numel_of_storage(a) == _numel_of_storage(b),
}


def _numel_of_storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().nbytes() // tensor.itemsize


def _count_integers(integers: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """torch.histc of integers (ATen's SummaryOps.cu)."""
    return torch.histc(integers.double(), *args, **kwargs).to(integers.dtype)


def in_atens_words(func: torch._ops.OpOverload, leaves: list[Any], mode: Any) -> Callable | None:
    """What is traced, by `mode`, in place of one of torch.ops.prims that ATen has by the same name (prims neither broadcast
    nor promote, and ATen's give the same where there is no need to), of a question about two tensors, of a histogram of
    integers, and of a triangular system. None for any other."""
    if func in _QUESTIONS:
        return _QUESTIONS[func]
    packet = getattr(torch.ops.aten, func._opname, None) if func.namespace == "prims" else None
    if func is torch.ops.aten.histc.default and not leaves[0].is_floating_point():
        packet = _count_integers
    if func is torch.ops.aten.linalg_solve_triangular.default:
        packet = solve_triangular
    if packet is None:
        return None

    def run(*args: Any, **kwargs: Any) -> Any:
        with mode:
            return packet(*args, **kwargs)
    return run
