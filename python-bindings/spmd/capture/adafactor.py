"""torch.optim.Adafactor's update with its numbers as tensors.

PyTorch's own (torch/optim/_adafactor.py, _single_tensor_adafactor) reads the step counter and two norms as Python
numbers, computes with them in float64 and compares them; here the same is float64 arithmetic on tensors, which a graph
has. Its foreach implementation computes the same, one list at a time.
"""
from __future__ import annotations

import contextlib
from typing import Iterator, Sequence

import torch
from torch.optim import _adafactor


def _update(params: Sequence[torch.Tensor], grads: Sequence[torch.Tensor], row_vars: Sequence[torch.Tensor | None],
            col_vars: Sequence[torch.Tensor | None], variances: Sequence[torch.Tensor | None],
            state_steps: Sequence[torch.Tensor], *unused, d: float, lr: torch.Tensor | float, beta2_decay: float,
            weight_decay: float, eps1: float | None, eps2: float, maximize: bool, has_complex: bool, **also) -> None:
    rate = torch.as_tensor(lr, dtype=torch.float64)
    for param, grad, row_var, col_var, variance, step_t in zip(
            params, grads, row_vars, col_vars, variances, state_steps, strict=True):
        grad = -grad if maximize else grad
        eps1 = torch.finfo(param.dtype).eps if eps1 is None else eps1  # of the first parameter's type, as there
        step_t += 1
        step = step_t.to(torch.float64)
        weight = (step**beta2_decay).to(param.dtype)
        alpha = (_root_mean_square(param)).clamp(min=eps2) * torch.minimum(rate, 1 / step.sqrt())
        if weight_decay != 0:
            param.mul_((1 - rate * weight_decay).to(param.dtype))
        if grad.dim() > 1:
            row_var.lerp_(torch.norm(grad, dim=-1, keepdim=True).square() / grad.size(-1), weight)
            col_var.lerp_(torch.norm(grad, dim=-2, keepdim=True).square() / grad.size(-2), weight)
            estimate = (row_var @ col_var) / row_var.mean(dim=-2, keepdim=True).clamp(min=eps1)
        else:
            variance.lerp_(grad * grad, weight)
            estimate = variance
        update = estimate.clamp(min=eps1 * eps1).rsqrt() * grad
        factor = -alpha / (_root_mean_square(update) / d).clamp(min=1.0)
        param.add_(update * factor.to(param.dtype))


def _root_mean_square(value: torch.Tensor) -> torch.Tensor:
    return value.norm(2).to(torch.float64) / value.numel()**0.5


@contextlib.contextmanager
def traceable_adafactor() -> Iterator[None]:
    """While entered, Adafactor.step() computes with tensors."""
    saved = _adafactor._single_tensor_adafactor, _adafactor._multi_tensor_adafactor
    _adafactor._single_tensor_adafactor = _adafactor._multi_tensor_adafactor = _update
    try:
        yield
    finally:
        _adafactor._single_tensor_adafactor, _adafactor._multi_tensor_adafactor = saved
