"""torch.amp.GradScaler in a step: its scale and growth tracker are state of the step, and what it decides from values
is arithmetic.

[Note: loss scaling] PyTorch's own methods run, with these in the place of what needs values:

  unscaling      found_inf is 1 where the largest magnitude of all gradients is not finite, which each rank takes of its
                 chunk: one number is reduced over the ranks. A gradient is multiplied by 1 / scale as in eager; before
                 an optimizer with fused=True it is divided by the scale, as its kernel does.
  step           the optimizer's step is taken, and what it changed (parameters, state, step counts) is what it was
                 before where found_inf is 1.
  update         as _amp_update_scale_: in f64, rounded once.

The scaler's two tensors are buffers of a module that stands for it among what the step reaches (held.py): they are live
between steps, in checkpoints, and the same on all ranks. Its factors and its interval are constants of a program.
"""
from __future__ import annotations

import contextlib
import functools
import math
from typing import Any, Callable, Iterable, Iterator

import torch
from torch.amp import GradScaler
from torch.amp.grad_scaler import OptState

from ...torch_api.optimizers import SCALER_NUMBERS, check_inf_per_device, maybe_opt_step, optimizer_states_of, scale_of, supports_amp_scaling
from ...torch_api.tensors import foreach_norm
from ..errors import HINT_OF_F16_GRADIENTS, error_at, users_frames
from ..observe import patches
from ..world.scaler_state import ScalerState
from .number_snapshot import Numbers

_CLASSES = (GradScaler, torch.cuda.amp.GradScaler, torch.cpu.amp.GradScaler)


@contextlib.contextmanager
def traceable_scalers(modules: Iterable[torch.nn.Module], note_read: Callable[[Any, str], None]) -> Iterator[None]:
    """While entered, the scalers whose states are among `modules` can be used by a traced step; others are refused. `note_read` is
    told of each attribute of a scaler that a program depends on: PyTorch's code of scalers is not observed."""
    known = [module for module in modules if isinstance(module, ScalerState)]
    scalers = {id(module._scaler()) for module in known}
    with contextlib.ExitStack() as stack:
        for module in known:
            stack.enter_context(module.traced())
        stack.enter_context(patches.replaced({
            patches.AMP_CHECK_AND_UNSCALE: _check_and_unscale, patches.AMP_UPDATE_SCALE: _update_scale,
            patches.SCALER_MAYBE_OPT_STEP: _masked_step,
            patches.SCALER_STEP: functools.partialmethod(_step, GradScaler.step),
            patches.SCALER_SCALE: functools.partialmethod(_scale, GradScaler.scale, scalers, note_read)}))
        yield


def _scale(self: GradScaler, original: Callable, known: set[int], note_read: Callable[[Any, str], None], outputs: Any) -> Any:
    for name in SCALER_NUMBERS:
        note_read(self, name)
    if self.is_enabled() and type(self) not in _CLASSES:
        raise error_at(users_frames(), f"{type(self).__module__}.{type(self).__qualname__} has a way of its own to "
                       "find infinities", "use torch.amp.GradScaler, which looks at the gradients of all ranks here")
    if self.is_enabled() and id(self) not in known:
        raise error_at(users_frames(), "the step makes a GradScaler, which would begin anew at every call",
                       "make it outside of the step, and pass it as an argument")
    if self.is_enabled():
        vars(self)["_spmd_line"] = users_frames()
    return original(self, outputs)


def _check_and_unscale(grads: list[torch.Tensor], found_inf: torch.Tensor, inv_scale: torch.Tensor) -> None:
    largest = torch.linalg.vector_norm(torch.stack(foreach_norm(grads, math.inf)), math.inf)
    found_inf.copy_(torch.maximum(found_inf, (largest < math.inf).logical_not().to(found_inf.dtype)))
    for grad in grads:
        grad.mul_(inv_scale)


def _step(self: GradScaler, original: Callable, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> Any:
    if not self.is_enabled() or not supports_amp_scaling(optimizer):
        return original(self, optimizer, *args, **kwargs)
    state = optimizer_states_of(self)[id(optimizer)]
    if state["stage"] is OptState.STEPPED:
        raise RuntimeError("step() has already been called since the last update().")
    if state["stage"] is OptState.READY:
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if any(grad.dtype == torch.float16 for grad in grads):
            raise error_at(users_frames(), "a GradScaler unscales gradients in f16",
                           HINT_OF_F16_GRADIENTS)
        check_inf_per_device(self, optimizer)
        with torch.no_grad():
            for grad in grads:
                grad.div_(scale_of(self))
    maybe_opt_step(self, optimizer, state, *args, **kwargs)
    state["stage"] = OptState.STEPPED


def _masked_step(self: GradScaler, optimizer: torch.optim.Optimizer, state: dict[str, Any], *args: Any,
                 **kwargs: Any) -> Any:
    found = sum(state["found_inf_per_device"].values()) > 0
    parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]

    def states() -> dict[tuple[torch.Tensor, str], torch.Tensor]:
        return {(p, name): value for p in parameters for name, value in optimizer.state.get(p, {}).items()
                if isinstance(value, torch.Tensor)}

    own, numbers = states(), Numbers.of(optimizer)
    with torch.no_grad():
        before = {key: value.clone() for key, value in own.items()}
        old_parameters = [p.clone() for p in parameters]
    result = optimizer.step(*args, **kwargs)
    kind, now = type(optimizer).__qualname__, states()
    if counted := numbers.first_changed(Numbers.of(optimizer)):
        raise error_at(users_frames(), f"{kind} changes the Python number {counted} in its step(), and a GradScaler skips steps by "
                       "values that Python does not read", "keep the number as a tensor in the state of each parameter, or train "
                       "in bf16 without a GradScaler")
    if len(now) > len(own):
        raise error_at(users_frames(), f"{kind} computes its first step differently from later steps, as SGD with dampening "
                                       "does, but a GradScaler may skip the first step",
                       "take one step in eager PyTorch before the first compiled one")
    with torch.no_grad():
        for p, old in zip(parameters, old_parameters, strict=True):
            p.copy_(torch.where(found, old, p))
        for (p, name), value in now.items():
            kept = torch.where(found, before[p, name], value)
            if value is own[p, name]:
                value.copy_(kept)
            else:
                optimizer.state[p][name] = kept
    return result


def _update_scale(scale: torch.Tensor, tracker: torch.Tensor, found_inf: torch.Tensor, growth: float, backoff: float,
                  interval: int) -> torch.Tensor:
    found, successful = found_inf > 0, tracker + 1
    grown = (scale.double() * growth).to(scale.dtype)
    is_due = successful == interval
    kept = torch.where(is_due & (grown < math.inf), grown, scale)
    scale.copy_(torch.where(found, (scale.double() * backoff).to(scale.dtype), kept))
    tracker.copy_(torch.where(found | is_due, torch.zeros_like(tracker), successful))
    return scale
