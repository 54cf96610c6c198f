"""What a trainer's loop is given in place of an optimizer whose step is part of a compiled one."""
from __future__ import annotations

from typing import Any, Callable, Iterable

import torch

from ..offloaded import slots
from ..torch_api.tracing import DisableTorchFunctionSubclass


class SteppedOptimizer(torch.optim.Optimizer):
    """The param groups, state and state dicts of an optimizer; zero_grad() changes nothing, and step() only what `update` does,
    for the compiled step has done both. A learning-rate scheduler on it moves the optimizer's own groups.

    Args:
      optimizer: the optimizer that the compiled step steps.
      update: called by each step(), after its closure.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, update: Callable[[], None] | None = None):
        self.optimizer = optimizer
        self._update = update

    param_groups = property(lambda self: self.optimizer.param_groups)
    state = property(lambda self: self.optimizer.state)
    defaults = property(lambda self: self.optimizer.defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        self.optimizer.add_param_group(param_group)

    def state_dict(self) -> dict[str, Any]:
        return self.optimizer.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state_dict)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        result = None if closure is None else closure()
        if self._update is not None:
            self._update()
        return result

    def zero_grad(self, set_to_none: bool = True) -> None:
        pass

    def __repr__(self) -> str:
        return f"SteppedOptimizer({self.optimizer!r})"


def has_gradients(parameters: Iterable[torch.Tensor]) -> bool:
    """Whether a parameter has a gradient, which may be on the ranks."""
    with DisableTorchFunctionSubclass():
        return any(parameter.grad is not None for parameter in parameters)


def drop_unkept_gradients(parameters: Iterable[torch.Tensor]) -> None:
    """Removes gradients without values, which a step has left and the ranks have not kept."""
    with DisableTorchFunctionSubclass():
        for parameter in parameters:
            if any(not slot.is_kept for slot in slots((parameter.grad,))):
                parameter.grad = None
