"""Operators beside those of ATen on CPUs: what forward-mode differentiation (torch.func.jvp, jacfwd, hessian) calls, what
only GPUs have, and what is composed of others."""
from __future__ import annotations

from typing import Any, Callable

import torch


from ...torch_api.operators import OpOverload, opname_of
from ...torch_api.tracing import disable_current_modes
from ..observe.dispatch_mode import OpCall
from .triangular import solve_triangular

_aten = torch.ops.aten

_QUESTIONS = {
    torch.ops.aten.is_same_size.default: lambda a, b: a.shape == b.shape,
    torch.ops.aten._has_same_storage_numel.default: lambda a, b: _numel_of_storage(a) == _numel_of_storage(b),
}


_WINDOWS = {getattr(_aten, f"{name}_window") for name in ("hann", "hamming", "blackman", "bartlett", "kaiser")}


def _window(func: OpOverload) -> Callable:
    """A window is a function of numbers: a constant, as torch.tensor([...]) in a step is."""
    def run(*args: Any, **kwargs: Any) -> torch.Tensor:
        with disable_current_modes():
            values = func(*args, **kwargs)
        return _aten.lift_fresh.default(values)
    return run


def _count(numbers: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0) -> torch.Tensor:
    """torch.bincount of numbers that are known before the step."""
    if weights is None:
        weights = torch.ones_like(numbers, dtype=torch.int64)
    elif weights.dtype != torch.float32:
        weights = weights.to(torch.float64)
    largest = _aten._local_scalar_dense(numbers.max())
    length = minlength if largest < minlength else int(largest) + 1
    return torch.zeros(length, dtype=weights.dtype).scatter_add(0, numbers.to(torch.int64), weights)


def _renormalize(weight: torch.Tensor, indices: torch.Tensor, max_norm: float, norm_type: float) -> torch.Tensor:
    """nn.Embedding(max_norm=...): rows that are looked up and longer than that get shorter, where they are."""
    length = torch.linalg.vector_norm(weight, norm_type, 1, keepdim=True)
    looked_up = torch.zeros_like(length[:, 0]).index_put((indices.flatten(),), torch.ones((), dtype=length.dtype))
    is_long = (looked_up.unsqueeze(1) > 0) & (length > max_norm)
    return weight.mul_(torch.where(is_long, max_norm / (length + 1e-7), 1.0))


def _numel_of_storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().nbytes() // tensor.itemsize


def _count_integers(integers: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """torch.histc of integers (ATen's SummaryOps.cu)."""
    return torch.histc(integers.double(), *args, **kwargs).to(integers.dtype)


def in_atens_words(call: OpCall, knows: Callable[[Any], bool]) -> Callable | None:
    """What is traced in place of one of torch.ops.prims that ATen has by the same name (prims neither broadcast
    nor promote, and ATen's give the same where there is no need to), of a question about two tensors, of a histogram of
    integers, of a triangular system, of a window, of the renormalization of an embedding, and of counts of numbers that the
    trace `knows`. None for any other."""
    func, leaves = call.func, call.leaves
    if func in _QUESTIONS:
        return _QUESTIONS[func]
    packet = getattr(torch.ops.aten, opname_of(func), None) if func.namespace == "prims" else None
    if func is torch.ops.aten.histc.default and not leaves[0].is_floating_point():
        packet = _count_integers
    if func is torch.ops.aten.linalg_solve_triangular.default:
        packet = solve_triangular
    if func is _aten.embedding_renorm_.default:
        packet = _renormalize
    if func is _aten.bincount.default and leaves[0].numel() and knows(leaves[0]):
        packet = _count
    if func.overloadpacket in _WINDOWS:
        packet = _window(func)
    if packet is None:
        return None

    def run(*args: Any, **kwargs: Any) -> Any:
        with call.traced():
            return packet(*args, **kwargs)
    return run
