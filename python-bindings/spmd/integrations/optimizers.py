"""What a trainer's loop is given in place of an optimizer whose step is part of a compiled one."""
from __future__ import annotations

from typing import Any, Callable

import torch


class SteppedOptimizer(torch.optim.Optimizer):
    """The param groups, state and state dicts of an optimizer; step() and zero_grad() change nothing, for the compiled
    step has done both. A learning-rate scheduler on it moves the optimizer's own groups.

    Args:
      optimizer: the optimizer that the compiled step steps.
      check: called by each step(); raises if the compiled step has not used all gradients.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, check: Callable[[], None] | None = None):
        self.optimizer = optimizer
        self._check = check

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
        if self._check is not None:
            self._check()
        return None if closure is None else closure()

    def zero_grad(self, set_to_none: bool = True) -> None:
        pass

    def __repr__(self) -> str:
        return f"SteppedOptimizer({self.optimizer!r})"
