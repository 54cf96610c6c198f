"""The optimizers of a step as one: a step may use several (a GAN), or none (it updates by hand, or only evaluates)."""
from __future__ import annotations

from typing import Any, Callable, Iterator, Sequence

import torch
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks
from torch.utils.hooks import RemovableHandle

from .errors import CaptureError

_OWN_HOOKS: set[int] = set()  # by their numbers, which no other hook ever has


class Optimizers:
    """Param groups one after the other, state by parameter, of `parts` in the order in which the step has them."""

    def __init__(self, parts: Sequence[torch.optim.Optimizer]):
        self.parts = tuple(parts)
        for part in self.parts:
            if not hasattr(part, "_optimizer_step_pre_hooks"):
                raise CaptureError(f"{type(part).__qualname__} is a torch.optim.Optimizer that was made without "
                                   "Optimizer.__init__\n  cure: call super().__init__(params, defaults) in its __init__, or "
                                   "give it no base class")
        owners: dict[int, int] = {}
        for number, part in enumerate(self.parts):
            for p in (p for group in part.param_groups for p in group["params"]):
                if owners.setdefault(id(p), number) != number:
                    raise CaptureError(f"two optimizers of the step have one parameter, of shape {list(p.shape)}\n"
                                       "  cure: give each parameter to one optimizer")

    def is_same(self, other: Optimizers) -> bool:
        """The very optimizers."""
        return len(self.parts) == len(other.parts) and all(a is b for a, b in zip(self.parts, other.parts))

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """Those of all; what is written into one is written into the optimizer's."""
        return [group for part in self.parts for group in part.param_groups]

    @property
    def parameters(self) -> list[torch.Tensor]:
        """All that are trained."""
        return [p for group in self.param_groups for p in group["params"]]

    @property
    def states(self) -> Iterator[tuple[torch.Tensor, dict[str, Any]]]:
        """Each parameter that has a state, with it."""
        return (entry for part in self.parts for entry in part.state.items())

    def state_of(self, parameter: torch.Tensor) -> dict[str, Any]:
        """The state of a parameter; an empty dict that is nobody's when there is none."""
        return next((part.state[parameter] for part in self.parts if parameter in part.state), {})

    def make_state_of(self, parameter: torch.Tensor) -> dict[str, Any]:
        """The state of a parameter, in its optimizer: made there when there is none."""
        for part in self.parts:
            if parameter in part.state or any(p is parameter for group in part.param_groups for p in group["params"]):
                return part.state[parameter]
        raise KeyError(f"no optimizer has the parameter of shape {list(parameter.shape)}")

    def register_step_hooks(self, before: Callable[..., None] | None = None,
                            after: Callable[..., None] | None = None) -> list[RemovableHandle]:
        """Calls `before` and `after` each step() of each."""
        handles = [handle for part in self.parts for handle in (
            *([part.register_step_pre_hook(before)] if before else []),
            *([part.register_step_post_hook(after)] if after else []))]
        _OWN_HOOKS.update(handle.id for handle in handles)
        return handles

    @property
    def hooks(self) -> tuple[int, ...]:
        """The numbers of the hooks of step() that others have registered, those of all optimizers among them."""
        tables = [_global_optimizer_pre_hooks, _global_optimizer_post_hooks,
                  *(table for part in self.parts for table in (part._optimizer_step_pre_hooks,
                                                               part._optimizer_step_post_hooks))]
        return tuple(number for table in tables for number in table if number not in _OWN_HOOKS)
