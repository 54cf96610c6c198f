"""What an optimizer holds in Python at one moment, and what has changed since."""
from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import Any, Callable, Collection, Iterable, Iterator

import torch

from ...torch_api.tracing import FakeTensor
from ..errors import error_at
from ..world.host_state import copied
from ..world.reads.writes import Write
from ..world.walk import NUMBERS
from .optimizer_numbers import MISSING, Change, Computed, are_alike, is_plain, numbers_of, own_attributes

Recipe = Callable[[Any], "Callable[[], Any] | None"]
_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def refuse_writes(optimizers: Iterable[torch.optim.Optimizer], writes: Iterable[Write]) -> None:
    """Rejects writes into dicts that an optimizer holds: a trace has copies of them."""
    held = {id(container): type(part).__qualname__ for part in optimizers
            for value in (*own_attributes(part).values(), *(v for group in part.param_groups for k, v in group.items() if k != "params"),
                          *(v for state in part.state.values() if isinstance(state, dict) for v in state.values()))
            for container in _containers(value)}
    for write in writes:
        if id(write.owner) in held:
            raise error_at([write.frame], f"the step of {held[id(write.owner)]} changes '{write.path}': Python code runs "
                                          "only once, during the capture",
                           "keep the number in the param group, in state[p], or in an attribute of its own")


def _containers(value: Any) -> Iterator[Any]:
    if isinstance(value, (dict, list, tuple)):
        yield value
        for entry in value.values() if isinstance(value, dict) else value:
            yield from _containers(entry)


@dataclasses.dataclass
class Numbers:
    """What an optimizer holds that is no tensor, and the objects that hold it."""

    optimizer: torch.optim.Optimizer
    state: dict[Any, dict[str, Any]]
    groups: list[dict[str, Any]]
    attributes: dict[str, Any]

    @classmethod
    def of(cls, optimizer: torch.optim.Optimizer) -> Numbers:
        return cls(optimizer, {p: {k: copied(v) for k, v in state.items()} if isinstance(state, dict) else state
                               for p, state in optimizer.state.items()},
                   [{k: copied(v) for k, v in group.items() if k != "params"} for group in optimizer.param_groups],
                   {k: copied(v) for k, v in own_attributes(optimizer).items()})

    def put(self) -> None:
        """Gives the optimizer what this has."""
        self.optimizer.state = defaultdict(dict, self.state)
        for group, own in zip(self.optimizer.param_groups, self.groups):
            for name in [k for k in group if k != "params" and k not in own]:
                del group[name]
            group.update((k, copied(v)) for k, v in own.items())
        vars(self.optimizer).update((k, copied(v)) for k, v in self.attributes.items())

    def changes(self, later: Numbers) -> list[Change]:
        """What is otherwise later, in the param groups and in the optimizer itself."""
        holders = [(vars(self.optimizer), self.attributes, later.attributes),
                   *zip(self.optimizer.param_groups, self.groups, later.groups)]
        removed = [Change(holder, name, before[name], MISSING) for holder, before, after in holders for name in before
                   if name not in after and name not in holder and is_plain(before[name])]
        return removed + [Change(holder, name, before.get(name, MISSING), after[name]) for holder, before, after in holders
                for name in after if after[name] is not before.get(name, MISSING)
                and (is_plain(after[name]) or isinstance(after[name], (FakeTensor, *_SYMBOLS)))
                and not are_alike(before.get(name, MISSING), after[name])]

    def first_changed(self, later: Numbers) -> str:
        """The first number that is otherwise later, among those that both have; empty if there is none."""
        places = [(f"param_groups[...][{name!r}]", group[name], new[name]) for group, new in zip(self.groups, later.groups)
                  for name in group if name in new]
        places += [(f"state[...][{name!r}]", state[name], later.state[p][name]) for p, state in self.state.items()
                   if p in later.state for name in state if name in later.state[p]]
        places += [(repr(name), value, later.attributes[name]) for name, value in self.attributes.items() if name in later.attributes]
        return next((place for place, before, after in places if before is not after and isinstance(before, (int, float, torch.SymFloat))
                     and not are_alike(before, after)), "")

    def made(self, real: Callable[[Any], Any], recipe: Recipe, states: Collection[int]) -> list[tuple[torch.optim.Optimizer, Any, dict[str, Any]]]:
        """The numbers in the state of each parameter. `recipe`: how a call computes a traced value; `states`: the ids of tensors
        that are state of the graph."""
        def number(value: Any) -> Any:
            if type(value) in NUMBERS:
                return value
            is_traced = isinstance(value, (FakeTensor, *_SYMBOLS)) and id(value) not in states
            return Computed(following) if is_traced and (following := recipe(value)) is not None else None

        found = [(self.optimizer, real(p), {k: made for k, v in state.items() if (made := number(v)) is not None})
                 for p, state in self.state.items() if isinstance(state, dict)]
        return [entry for entry in found if entry[2]]

    def differ(self, later: Numbers) -> bool:
        """Whether `later` has another value for a number, or a number more in a state entry that both have."""
        before, after = (numbers_of({"state": {str(i): s for i, s in enumerate(n.state.values())}, "groups": n.groups,
                                     "attributes": n.attributes}, ["state"]) for n in (self, later))
        return any(watched in after and after[watched] != number for watched, number in before.items()) \
            or any(watched not in before for watched in after if not watched.path.startswith("state"))
