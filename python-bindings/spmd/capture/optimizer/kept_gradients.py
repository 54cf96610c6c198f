"""Gradients that stay in a narrow type from their reduction to the optimizer: FSDP1's keep_low_precision_grads.

Autograd casts what it leaves in p.grad to p.grad_dtype; so the graph has that cast, of what a unit reduces, and whoever
reads p.grad reads the narrow type, as under FSDP1 (docs/precision.md). clip_grad_norm_() computes as FSDP1's method does,
norms and coefficient in f32 (fully_sharded_data_parallel.py). An optimizer that does not take such gradients in eager does
not take them here.
"""
from __future__ import annotations

import contextlib
import functools
from types import TracebackType
from typing import Any, Callable, Iterable, Iterator

import torch
from torch import nn

from ...models import DTYPES
from ...precision import Precision
from ...torch_api.modules import parameters_of
from ...torch_api.tensors import foreach_mul_
from ..errors import CaptureError, Frame, error_at, user_frames, users_frames
from ..observe import patches
from .casts import policies
from .optimizers import Optimizers


def kept_gradients(model: nn.Module, default: Precision | None) -> dict[int, torch.dtype]:
    """By the ids of parameters, the type that their gradients keep: of the trained ones that are wider, where a policy says
    so."""
    kept: dict[int, torch.dtype] = {}
    for module, policy, _ in policies(model, default):
        if policy is None or policy.grad is None:
            continue
        for parameter in parameters_of(module).values():
            if parameter is not None and parameter.requires_grad and parameter.is_floating_point() \
                    and parameter.itemsize > policy.grad.itemsize:
                kept.setdefault(id(parameter), policy.grad)
    return kept


@contextlib.contextmanager
def keeping_gradients(model: nn.Module, default: Precision | None, optimizers: Optimizers) -> Iterator[None]:
    """While entered, gradients come and are clipped in the types that they keep. A parameter that has a gradient in its
    type when this is left takes further ones in it."""
    kept = kept_gradients(model, default)
    if not kept:
        yield
        return
    parameters = list({id(p): p for module in model.modules() for p in parameters_of(module).values() if id(p) in kept}.values())
    with contextlib.ExitStack() as undo:
        for p in parameters:
            undo.callback(_restore_type, p, p.grad_dtype)
            p.grad_dtype = kept[id(p)]
        for handle in optimizers.register_step_hooks(_refuse_fused, _nothing):
            undo.callback(handle.remove)
        undo.enter_context(_clipping_in_f32.replaced())
        try:
            yield
        except CaptureError:
            raise
        except RuntimeError as error:
            frames, optimizer = user_frames(error.__traceback__), _stepping(error.__traceback__)
            if optimizer is None or not (mixed := _mixed(optimizer)):
                raise
            raise _refused(optimizer, mixed, frames) from error


def _restore_type(parameter: torch.Tensor, dtype: torch.dtype) -> None:
    if parameter.grad is None:
        parameter.grad_dtype = dtype


def _nothing(*unused: Any) -> None:
    pass


def _refuse_fused(optimizer: torch.optim.Optimizer, *unused: Any) -> None:
    """Fused optimizers raise in eager; on fake tensors they do not all look."""
    mixed = _mixed(optimizer) if any(group.get("fused") for group in optimizer.param_groups) else []
    if mixed:
        raise _refused(optimizer, mixed, users_frames())


def _mixed(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """The parameters whose gradients have another type."""
    return [p for group in optimizer.param_groups for p in group["params"]
            if p.grad is not None and p.grad.dtype != p.dtype]


def _stepping(traceback: TracebackType | None) -> torch.optim.Optimizer | None:
    """The optimizer whose step() an exception came through."""
    found = None
    while traceback is not None:
        own = traceback.tb_frame.f_locals.get("self")
        if isinstance(own, torch.optim.Optimizer):
            found = own
        traceback = traceback.tb_next
    return found


def _refused(optimizer: torch.optim.Optimizer, mixed: list[torch.Tensor], frames: list[Frame]) -> CaptureError:
    fused = " with fused=True" if any(group.get("fused") for group in optimizer.param_groups) else ""
    return error_at(frames, f"{type(optimizer).__qualname__}{fused} does not take gradients in {DTYPES[mixed[0].grad.dtype]} of "
                    f"parameters in {DTYPES[mixed[0].dtype]}, as it does not in eager PyTorch",
                    "leave grad= (keep_low_precision_grads) out of the precision, or take an optimizer that widens gradients, "
                    "as SGD without fused=True does")


def _clipping() -> dict[patches.Entry, Callable]:
    """clip_grad_norm_() of gradients that are narrower: norms and the coefficient in f32, which is rounded to a gradient's
    type before it is multiplied; the total is rounded to the widest type among them."""
    exact: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # by the id of a rounded total: it, and what it was
    total_norm = patches.GET_TOTAL_NORM.value()

    def get_total_norm(tensors: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        total = total_norm([t.float() if t.itemsize < 4 else t for t in tensors], *args, **kwargs)
        if not tensors:
            return total
        rounded = total.to(functools.reduce(torch.promote_types, [t.dtype for t in tensors]))
        exact[id(rounded)] = rounded, total
        return rounded

    def clip_with_norm(parameters: Iterable[torch.Tensor] | torch.Tensor, max_norm: float, total: torch.Tensor,
                       foreach: bool | None = None) -> None:
        parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
        coefficient = torch.clamp(float(max_norm) / (exact.get(id(total), (total, total))[1] + 1e-6), max=1.0)
        by_type: dict[torch.dtype, list[torch.Tensor]] = {}
        for p in parameters:
            if p.grad is not None:
                by_type.setdefault(p.grad.dtype, []).append(p.grad)
        with torch.no_grad():
            for dtype, grads in by_type.items():
                foreach_mul_(grads, coefficient.to(dtype))

    return {patches.GET_TOTAL_NORM: get_total_norm, patches.CLIP_WITH_NORM: clip_with_norm}


_clipping_in_f32 = patches.Shared(_clipping)  # the replicas of a reference step run in threads
