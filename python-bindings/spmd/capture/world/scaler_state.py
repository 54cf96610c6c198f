"""The state of a torch.amp.GradScaler as a module, which a step holds like any other module that it reaches (held.py)."""
from __future__ import annotations

import contextlib
import weakref
from typing import Any, Callable, Iterator

import torch
from torch.amp import GradScaler

from ...torch_api.modules import buffers_of
from ...torch_api.optimizers import SCALER_TENSORS, init_scale, new_optimizer_states, optimizer_states_of, scale_of
from ..errors import error_at


class ScalerState(torch.nn.Module):
    """A scaler's tensors as buffers `scale` (f32) and `growth_tracker` (i32)."""

    step_module = "spmd.capture.loss_scaling"

    def __init__(self, scaler: GradScaler) -> None:
        super().__init__()
        self._scaler = weakref.ref(scaler)
        self.follow()

    def follow(self) -> None:
        """Takes what the scaler has now."""
        scaler = self._scaler()
        buffers_of(self).update({name: getattr(scaler, attribute) for name, attribute in SCALER_TENSORS.items()})

    @contextlib.contextmanager
    def traced(self) -> Iterator[None]:
        """While entered, the scaler has the fakes that this module has, and nothing begun."""
        scaler = self._scaler()
        saved = dict(vars(scaler))
        vars(scaler).update({attribute: buffers_of(self)[name] for name, attribute in SCALER_TENSORS.items()},
                            **new_optimizer_states())
        try:
            yield
            if optimizer_states_of(scaler):
                raise error_at(vars(scaler)["_spmd_line"], "the step uses a GradScaler and does not update it",
                               "call scaler.update() in the step, after scaler.step(optimizer)")
        finally:
            vars(scaler).clear()
            vars(scaler).update(saved)


_states: weakref.WeakKeyDictionary[GradScaler, ScalerState] = weakref.WeakKeyDictionary()


def state_of_scaler(scaler: Any, model: torch.nn.Module | None = None) -> ScalerState | None:
    """The module that stands for a scaler; None of what is none, or is off. Makes the tensors that the scaler itself
    makes at its first use, where `model` is."""
    if not isinstance(scaler, GradScaler) or not scaler.is_enabled():
        return None
    if scale_of(scaler) is None:
        if model is None:
            return None
        init_scale(scaler, next((p.device for p in model.parameters()), torch.device("cpu")))
    if scaler not in _states:
        _states[scaler] = ScalerState(scaler)
    _states[scaler].follow()
    return _states[scaler]


def scaler_there(get: Callable[[], Any]) -> ScalerState | None:
    """The state of the scaler that `get` gives."""
    return state_of_scaler(get())
