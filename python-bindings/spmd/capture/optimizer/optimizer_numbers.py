"""The Python numbers that optimizers hold beside their param groups: in the state of a parameter, and in themselves.

A graph has them as they were when it was traced. One that the step changes makes an error (check_numbers), one that is
changed between calls another program.
"""
from __future__ import annotations

import dataclasses
import functools
from typing import Any, Callable, Iterable

import torch

from ...torch_api.tracing import pytree
from ..errors import Frame, error_at
from ..world.host_state import Aspect, Watched, copied, host_state
from ..world.user_code import has_users_class
from ..world.walk import NUMBERS
from .scheduled import is_scheduled

_ROOT = "<optimizer>"  # stands for the optimizer, or an entry of its state
_OWN = ("state", "param_groups", "defaults")  # of torch.optim.Optimizer


def check_numbers(before: dict[Watched, Any], after: dict[Watched, Any], stack: tuple[Frame, ...]) -> None:
    """Refuses an optimizer that counts in Python: its graph would have the first count for ever. `before` and `after` the
    step are what all_numbers gives."""
    for watched, number in before.items():
        if watched in after and after[watched] != number:
            what = f"the Python number {watched}" if watched.aspect is Aspect.VALUE else watched
            raise error_at(stack, f"the optimizer changes {what} from {number} to {after[watched]}: Python code runs only "
                                  "once, during the capture",
                           "store it as a tensor, as torch.optim does: state['step'] = torch.zeros(()), then state['step'] "
                           "+= 1")


def all_numbers(optimizers: Iterable[torch.optim.Optimizer], name_of: Callable[[Any], Any]) -> dict[Watched, Any]:
    """By where they are: "'Lion.state['fc.weight']['count']'"; of param groups, too."""
    held: dict[str, Any] = {}
    changing: list[str] = []
    for part in optimizers:
        kind = type(part).__qualname__
        held |= {f"{kind}.state[{name_of(p)!r}]": state for p, state in part.state.items()}
        held |= {f"{kind}.param_groups[{i}]": {k: v for k, v in group.items() if k != "params"}
                 for i, group in enumerate(part.param_groups)}
        changing += held  # in size, by state that the step makes
        held |= {f"{kind}.{k}": v for k, v in own_attributes(part).items()}
    return numbers_of(held, changing)


def own_attributes(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """What its own class keeps in it; of private attributes those that are numbers."""
    return {k: v for k, v in vars(optimizer).items()
            if k not in _OWN and (not k.startswith("_") or type(v) in (int, float) and k not in _private_attributes())}


@functools.cache
def _private_attributes() -> frozenset[str]:
    """Those of torch.optim.Optimizer, and of what wraps its step()."""
    return frozenset(vars(torch.optim.SGD([torch.zeros(1)], lr=0.1)))


def numbers_of(held: dict[str, Any], changing: Iterable[str] = (_ROOT,)) -> dict[Watched, Any]:
    """By what is watched; but the sizes of those that are `changing`. Scheduled options, of a type of ours, are none."""
    sizes = {Watched(Aspect.SIZE, path) for path in changing}
    return {watched: number for watched, number in host_state(held, has_users_class).items()
            if type(number) in NUMBERS and watched not in sizes}


class _Missing:
    """Stands for an entry that is not there."""


MISSING = _Missing()


def is_plain(value: Any) -> bool:
    """True for numbers, texts, None, and containers of them; not where an option that is an input is among them."""
    return all(leaf is None or isinstance(leaf, (str, *NUMBERS)) and not is_scheduled(leaf) for leaf in pytree.tree_leaves(value))


def are_alike(a: Any, b: Any) -> bool:
    """Whether two plain values are equal; anything else must be the same object."""
    return a is b or type(a) is type(b) and is_plain(a) and (a == b or a != a and b != b)


@dataclasses.dataclass(frozen=True)
class Computed:
    """Stands for a number that a call computes from those with which it begins."""

    following: Callable[[], Any]


@dataclasses.dataclass(frozen=True)
class Change:
    """What a step changes in Python: the entry `name` of a param group, or the attribute of an optimizer."""

    holder: dict[str, Any]
    name: str
    before: Any
    after: Any
    following: Callable[[], Any] | None = None  # what computes it in the call, where it is no constant

    def undo(self) -> None:
        if self.before is MISSING:
            self.holder.pop(self.name, None)
        else:
            self.holder[self.name] = copied(self.before)

    def do(self) -> None:
        if self.after is MISSING:
            self.holder.pop(self.name, None)
            return
        self.holder[self.name] = float(self.following()) if self.following else copied(self.after)


@dataclasses.dataclass
class OptimizerNumbers:
    """Those of the state and of the optimizers themselves that a trace began with. Each `found` has an optimizer, a key of
    its state (None: the optimizer's own attributes) and numbers; each `made` the numbers of state that did not exist, and
    that eager would have made in the first step; `changes`: what that changes in numbers which existed.
    `counted`: numbers that later steps change (counted.py)."""

    found: list[tuple[torch.optim.Optimizer, Any, dict[Watched, Any]]] = dataclasses.field(default_factory=list)
    made: list[tuple[torch.optim.Optimizer, Any, dict[str, Any]]] = dataclasses.field(default_factory=list)
    changes: list[Change] = dataclasses.field(default_factory=list)
    counted: list[Any] = dataclasses.field(default_factory=list)

    @staticmethod
    def of(optimizers: Iterable[torch.optim.Optimizer], real: Callable[[Any], Any], is_known: Callable[[Any], bool]) \
            -> OptimizerNumbers:
        """`real`: the parameter that a key of the state stands for; `is_known`: it had state before."""
        result = OptimizerNumbers()
        for part in optimizers:
            entries = [(None, own_attributes(part)), *((real(key), state) for key, state in part.state.items())]
            for key, value in entries:
                if numbers := numbers_of({_ROOT: value}):
                    result.found.append((part, key, numbers))
                plain = {k: v for k, v in value.items() if all(isinstance(x, NUMBERS) for x in pytree.tree_leaves(v))}
                if key is not None and plain and not is_known(key):
                    result.made.append((part, key, plain))
        return result

    def what_is_new(self) -> str:
        """The first number that the optimizers have otherwise; empty when there is none, or none at all."""
        for part, key, numbers in self.found:
            now = numbers_of({_ROOT: own_attributes(part) if key is None else part.state.get(key, {})})
            for watched, number in numbers.items():
                if watched in now and now[watched] != number:
                    root = type(part).__qualname__ + ("" if key is None else ".state[...]")
                    named = watched._replace(path=watched.path.replace(_ROOT, root, 1))
                    return f"{named} is {now[watched]!r}, it was {number!r}"
        return ""

    def put(self, is_loaded: Callable[[Change], bool]) -> None:
        """What eager's first step does in Python, once. `is_loaded`: the number is one that a checkpoint has given."""
        for part, key, entries in self.made:
            state = part.state.setdefault(key, {})
            for name, value in entries.items():
                if name not in state:
                    state[name] = float(value.following()) if isinstance(value, Computed) else value
        for change in self.changes:
            if not is_loaded(change):
                change.do()
        self.made, self.changes = [], []
