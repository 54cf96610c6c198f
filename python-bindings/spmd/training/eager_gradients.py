"""Eager backward() between two calls of a compiled step, on parameters whose gradients the ranks have.

Autograd adds to `p.grad` in C++: the class of an offloaded gradient does not see that ([Note: live state] in live_state.py). So
each such parameter has a hook, which runs before autograd adds anything, and fetches the gradient. This serves graphs of any
kind: made before the step, with create_graph=True, in another thread.
"""
from __future__ import annotations

import weakref
from typing import Any, Iterable

import torch

from ..offloaded import slots
from ..torch_api.modules import OwnHook
from ..torch_api.tracing import DisableTorchFunctionSubclass
from .slots import Gradient


class EagerGradients:
    """The hooks of parameters with their gradients; they go with remove()."""

    def __init__(self, gradients: Iterable[tuple[Gradient, torch.Tensor]]):
        self._handles: list[Any] = []
        self.watch(gradients)

    def watch(self, gradients: Iterable[tuple[Gradient, torch.Tensor]]) -> None:
        """Watches these parameters, and no others."""
        self.remove()
        with DisableTorchFunctionSubclass():
            for slot, parameter in gradients:
                if parameter.requires_grad and parameter.is_leaf:
                    self._handles.append(parameter.register_hook(_Fetch(slot)))

    def remove(self) -> None:
        """Watches no parameter."""
        while self._handles:
            self._handles.pop().remove()


class _Fetch(OwnHook):
    """Fetches a gradient. The parameter that has this hook must not keep the ranks."""

    def __init__(self, slot: Gradient):
        self._slot = weakref.ref(slot)

    def __call__(self, gradient: torch.Tensor) -> None:
        slot = self._slot()
        if slot is not None and not slot.is_clear:
            slot.fetch()


def kept_gradient(parameter: torch.Tensor) -> torch.Tensor | None:
    """The parameter's gradient, if there is one and it has a value."""
    with DisableTorchFunctionSubclass():
        gradient = parameter.grad
    return None if any(not slot.is_kept for slot in slots((gradient,))) else gradient
