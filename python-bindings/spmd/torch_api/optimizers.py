"""Optimizers: hooks of step(); and the state of a GradScaler."""
from __future__ import annotations

from collections import defaultdict
from operator import attrgetter
from typing import Any, Callable

import torch
from torch.amp.grad_scaler import GradScaler, _refresh_per_optimizer_state
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

# The tables of hooks of step(), of an optimizer and of all optimizers. There is no public query for registered hooks.
STEP_HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
GLOBAL_STEP_HOOKS = (_global_optimizer_pre_hooks, _global_optimizer_post_hooks)
post_step_hooks_of = attrgetter("_optimizer_step_post_hooks")
HOOK_PREFIX = "_optimizer_"  # of all attributes in which an optimizer keeps hooks


def step_hooks_of(optimizer: torch.optim.Optimizer) -> list[dict[int, Callable[..., None]]]:
    """The tables of hooks that run before step() and after it."""
    return [vars(optimizer).get(name, {}) for name in STEP_HOOKS]


def is_initialized(optimizer: torch.optim.Optimizer) -> bool:
    """Whether Optimizer.__init__ has run."""
    return hasattr(optimizer, "_optimizer_step_pre_hooks")


def mark_called(optimizer: torch.optim.Optimizer) -> None:
    """Records that step() was called; lr_scheduler.step() warns if it was not."""
    optimizer._opt_called = True


# ---- GradScaler ----
#
# Its public getters copy from the device to Python numbers.

# The attributes of a scaler: its tensors, by their names without the underscore, and its numbers.
SCALER_TENSORS = {"scale": "_scale", "growth_tracker": "_growth_tracker"}
SCALER_NUMBERS = ("_growth_factor", "_backoff_factor", "_growth_interval", "_enabled")
scale_of = attrgetter("_scale")  # None before the first use
# By the id of an optimizer: whether its gradients are unscaled, and whether they are infinite.
optimizer_states_of = attrgetter("_per_optimizer_states")


def new_optimizer_states() -> dict[str, Any]:
    """The attribute that optimizer_states_of() reads, with its name, in the state after update()."""
    return {"_per_optimizer_states": defaultdict(_refresh_per_optimizer_state)}


def init_scale(scaler: GradScaler, device: torch.device) -> None:
    """Makes the tensors of a scaler, as its first use does."""
    scaler._lazy_init_scale_growth_tracker(device)


def check_inf_per_device(scaler: GradScaler, optimizer: torch.optim.Optimizer) -> None:
    """Finds infinite gradients and leaves them scaled; the public unscale_() divides them as well."""
    scaler._check_inf_per_device(optimizer)


def maybe_opt_step(scaler: GradScaler, optimizer: torch.optim.Optimizer, state: dict[str, Any], *args: Any,
                   **kwargs: Any) -> Any:
    """The second half of GradScaler.step(): the optimizer's step, unless gradients are infinite."""
    return scaler._maybe_opt_step(optimizer, state, *args, **kwargs)


def supports_amp_scaling(optimizer: torch.optim.Optimizer) -> bool:
    """Whether step() unscales the gradients itself, as it does with fused=True."""
    return getattr(optimizer, "_step_supports_amp_scaling", False)
