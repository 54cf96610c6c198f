"""The optimizers of a step as one: a step may use several (a GAN), or none (it updates by hand, or only evaluates)."""
from __future__ import annotations

import contextlib
import copy
from typing import Any, Callable, Iterator, Sequence

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.hooks import RemovableHandle

from ...torch_api.optimizers import GLOBAL_STEP_HOOKS, HOOK_PREFIX, is_initialized, step_hooks_of
from ..errors import CaptureError
from ..world.walk import ATTRIBUTE, ENTRY, HELD_OPTIMIZERS, NOTHING, Edge, Node, Visitor, walk

_OWN_HOOKS: set[int] = set()  # by their numbers, which no other hook ever has


class Optimizers:
    """Param groups one after the other, state by parameter, of `parts` in the order in which the step has them.

    Of the optimizers that are `given` some are `holders`: all their parameters are those of optimizers in their attributes,
    to which they leave the update (torchtitan's OptimizersContainer, SAM). These are parts, and the holder is none.
    """

    def __init__(self, given: Sequence[torch.optim.Optimizer]):
        self.given = tuple(given)
        parts, holders = [], []
        seen: set[int] = set()
        for optimizer in self.given:
            _sort(optimizer, parts, holders, seen)
        self.parts, self.holders = tuple(parts), tuple(holders)
        for part in self.parts:
            if not is_initialized(part):
                raise CaptureError(f"{type(part).__qualname__} is a torch.optim.Optimizer that was made without "
                                   "Optimizer.__init__\n  hint: call super().__init__(params, defaults) in its __init__, or "
                                   "give it no base class")
        owners: dict[int, int] = {}
        for number, part in enumerate(self.parts):
            for p in (p for group in part.param_groups for p in group["params"]):
                if owners.setdefault(id(p), number) != number:
                    raise CaptureError(f"two optimizers of the step have one parameter, of shape {list(p.shape)}\n"
                                       "  hint: give each parameter to one optimizer")

    def __deepcopy__(self, memo: dict[int, Any]) -> Optimizers:
        """Copies of the optimizers, with the attributes that a copy of an optimizer has not: those that it holds."""
        for optimizer in (*self.parts, *self.holders):
            memo[id(optimizer)] = type(optimizer).__new__(type(optimizer))
        for optimizer in (*self.parts, *self.holders):
            own = {name: value for name, value in vars(optimizer).items()
                   if not name.startswith(HOOK_PREFIX) and name != "step"}  # a scheduler has put `step` there
            memo[id(optimizer)].__setstate__(copy.deepcopy(own, memo))
        return Optimizers([memo[id(optimizer)] for optimizer in self.given])

    def is_same(self, other: Optimizers) -> bool:
        """The very optimizers."""
        own, others = (*self.parts, *self.holders), (*other.parts, *other.holders)
        return len(own) == len(others) and all(a is b for a, b in zip(own, others))

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """Those of all; what is written into one is written into the optimizer's."""
        return [group for part in self.parts for group in part.param_groups]

    @property
    def groups_of_holders(self) -> list[dict[str, Any]]:
        """Param groups of holders that are not those of a part as well."""
        own = set(map(id, self.param_groups))
        return [group for holder in self.holders for group in holder.param_groups if id(group) not in own]

    @property
    def parameters(self) -> list[torch.Tensor]:
        """All that are trained."""
        return [p for group in self.param_groups for p in group["params"]]

    @property
    def unmoved_by_zeros(self) -> frozenset[int]:
        """The ids of parameters of which a gradient of zeros changes as little as none does: neither they nor a state."""
        return frozenset(id(p) for part in self.parts if type(part) is torch.optim.SGD for group in part.param_groups
                         if group["momentum"] == 0 and group["weight_decay"] == 0 for p in group["params"])

    @property
    def states(self) -> Iterator[tuple[torch.Tensor, dict[str, Any]]]:
        """Each parameter that has a state, with it."""
        return (entry for part in self.parts for entry in part.state.items())

    def state_of(self, parameter: torch.Tensor) -> dict[str, Any]:
        """The state of a parameter; an empty dict that is nobody's when there is none."""
        for part in self.parts:  # at every call of a step, for every parameter
            state = part.state.get(parameter)
            if state is not None:
                return state
        return {}

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

    @contextlib.contextmanager
    def refusing_others(self) -> Iterator[None]:
        """While entered, step() of any other optimizer is an error."""
        def refuse(optimizer: torch.optim.Optimizer, *unused: Any) -> None:
            if not any(optimizer is known for known in (*self.parts, *self.holders)):
                raise CaptureError(f"the step calls step() of a {type(optimizer).__qualname__} that the capture cannot find: "
                                   "it is neither an argument nor read from self, a closure or a global\n  hint: pass the "
                                   "optimizer as an argument")

        handle = register_optimizer_step_pre_hook(refuse)
        try:
            yield
        finally:
            handle.remove()

    @property
    def hooks(self) -> tuple[int, ...]:
        """The numbers of the hooks of step() that others have registered, those of all optimizers among them."""
        return tuple(number for table in self.tables_of_hooks() for number in table if number not in _OWN_HOOKS)

    def tables_of_hooks(self) -> list[dict[int, Callable[..., None]]]:
        """Those of step() of all optimizers there are, and of each of these."""
        own = [table for optimizer in (*self.parts, *self.holders) for table in step_hooks_of(optimizer)]
        return [*GLOBAL_STEP_HOOKS, *own]


def _sort(optimizer: torch.optim.Optimizer, parts: list[torch.optim.Optimizer], holders: list[torch.optim.Optimizer],
          seen: set[int]) -> set[int]:
    """Puts an optimizer and those that it holds where they belong; gives the ids of all their parameters."""
    if id(optimizer) in seen:
        return set()
    seen.add(id(optimizer))
    if not hasattr(optimizer, "param_groups"):
        raise CaptureError(f"{type(optimizer).__qualname__} is a torch.optim.Optimizer without param_groups\n"
                           "  hint: pass the optimizer that it holds to the step")
    known = len(parts)
    below = [_sort(inner, parts, holders, seen) for inner in _held_by(optimizer)]
    inner = {id(p) for part in parts[known:] for group in part.param_groups for p in group["params"]}.union(*below)
    own = {id(p) for group in optimizer.param_groups for p in group["params"]} if inner else set()
    (holders if own and own <= inner else parts).append(optimizer)
    return own | inner


def _held_by(optimizer: torch.optim.Optimizer) -> list[torch.optim.Optimizer]:
    """The optimizers in its attributes, and in lists and dicts of them, in order."""
    held = _HeldOptimizers()
    walk([Node.root(type(optimizer).__qualname__, optimizer)], held)
    return [node.value for node in sorted(held.found, key=lambda node: node.order)]


class _HeldOptimizers(Visitor):
    limits = HELD_OPTIMIZERS

    def __init__(self) -> None:
        self.found: list[Node] = []

    def visit(self, node: Node) -> frozenset[Edge]:
        if node.owner is None:
            return ATTRIBUTE
        if node.edge is Edge.ATTRIBUTE and (node.key in _OWN or node.key.startswith(HOOK_PREFIX)):
            return NOTHING
        if isinstance(node.value, torch.optim.Optimizer):
            self.found.append(node)
            return NOTHING
        return ENTRY if isinstance(node.value, (list, tuple, dict)) else NOTHING


_OWN = ("param_groups", "state", "defaults")  # of torch.optim.Optimizer, with what begins with _optimizer_
