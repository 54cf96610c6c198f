"""Adafactor's update with its numbers as tensors: torch.optim's, and that of transformers.

PyTorch's own (torch/optim/_adafactor.py, _single_tensor_adafactor) reads the step counter and two norms as Python
numbers, computes with them in float64 and compares them; here the same is float64 arithmetic on tensors, which a graph
has. Its foreach implementation computes the same, one list at a time. That of transformers (transformers/optimization.py)
counts in a Python number, which is a tensor from its first compiled step on: its own code takes either.
"""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Sequence

import torch

from ..observe import patches


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


def count_in_tensors(optimizer: torch.optim.Optimizer) -> None:
    """Makes tensors of the numbers in the state of transformers' Adafactor."""
    cls = patches.ADAFACTOR_OF_TRANSFORMERS.find_owner()
    for state in optimizer.state.values() if cls is not None and isinstance(optimizer, cls) else ():
        state.update((name, torch.tensor(float(state[name]))) for name in ("step", "RMS")
                     if isinstance(state.get(name), (int, float)))


@torch.no_grad()
def _step_of_transformers(self: Any, closure: Callable[[], Any] | None = None) -> Any:
    loss = None
    if closure is not None:
        with torch.enable_grad():
            loss = closure()
    for group in self.param_groups:
        for p in group["params"]:
            if p.grad is not None:
                _update_of_transformers(self, group, p, self.state[p])
    return loss


def _update_of_transformers(self: Any, group: dict[str, Any], p: torch.Tensor, state: dict[str, Any]) -> None:
    is_half = p.dtype in (torch.float16, torch.bfloat16)
    grad, value = (p.grad.float(), p.float()) if is_half else (p.grad, p)
    factored, use_first_moment = self._get_options(group, grad.shape)
    if not state:
        state["step"] = torch.zeros((), dtype=torch.float32)
        if use_first_moment:
            state["exp_avg"] = torch.zeros_like(grad)
        if factored:
            state["exp_avg_sq_row"] = torch.zeros(grad.shape[:-1], dtype=grad.dtype)
            state["exp_avg_sq_col"] = torch.zeros(grad.shape[:-2] + grad.shape[-1:], dtype=grad.dtype)
        else:
            state["exp_avg_sq"] = torch.zeros_like(grad)
        state["RMS"] = torch.zeros((), dtype=grad.dtype)
    state["step"] += 1
    step = state["step"].to(torch.float64)
    state["RMS"].copy_(self._rms(value))
    rate = torch.as_tensor(group["lr"], dtype=torch.float64) if not group["relative_step"] else \
        torch.minimum(1e-6 * step if group["warmup_init"] else torch.full_like(step, 1e-2), 1 / step.sqrt())
    rate = rate.to(grad.dtype)
    if group["scale_parameter"]:
        rate = state["RMS"].clamp(min=group["eps"][1]) * rate
    kept = 1 - step ** group["decay_rate"]
    new, kept = (1 - kept).to(grad.dtype), kept.to(grad.dtype)
    update = grad**2 + group["eps"][0]
    if factored:
        row, column = state["exp_avg_sq_row"], state["exp_avg_sq_col"]
        row.mul_(kept).add_(update.mean(dim=-1) * new)
        column.mul_(kept).add_(update.mean(dim=-2) * new)
        update = self._approx_sq_grad(row, column) * grad
    else:
        state["exp_avg_sq"].mul_(kept).add_(update * new)
        update = state["exp_avg_sq"].rsqrt() * grad
    update = update / (self._rms(update) / group["clip_threshold"]).clamp(min=1.0) * rate
    if use_first_moment:
        update = state["exp_avg"].mul_(group["beta1"]).add_(update, alpha=1 - group["beta1"])
    if group["weight_decay"] != 0:
        value = value - value * (group["weight_decay"] * rate)
    p.copy_(value - update)


@contextlib.contextmanager
def traceable_adafactor() -> Iterator[None]:
    """While entered, Adafactor.step() computes with tensors."""
    step = torch.optim.Optimizer.profile_hook_step(_step_of_transformers)
    step.hooked = True
    with patches.replaced({**dict.fromkeys(patches.ADAFACTORS, _update), patches.ADAFACTOR_OF_TRANSFORMERS: step}):
        yield
