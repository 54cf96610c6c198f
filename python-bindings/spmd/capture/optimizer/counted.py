"""Python numbers that a step of an optimizer changes: `group["step"] += 1`, `state[p]["beta_product"] *= beta`.

A graph has such a number as an input, like the learning rate. Each call reads the input from where the number is, and
puts the number there that the step would leave, which a call computes on the host from the numbers with which it began.
A number that depends on anything else is an error. What Python asks of these numbers (`if step > 5`) is a guard
(values/value_guards.py).
"""
from __future__ import annotations

import dataclasses
import numbers
from typing import Any, Callable, Iterable, Iterator

import torch

from ..errors import CaptureError, Frame, error_at
from .optimizer_numbers import own_attributes
from .optimizers import Optimizers

_NOT_COUNTED = ("lr", "initial_lr", "foreach", "fused", "capturable", "maximize", "differentiable")


class CountsInPython(CaptureError):
    """A step changes Python numbers of its optimizer, `numbers`, which the trace had as constants."""

    def __init__(self, numbers: list[CountedNumber], error: CaptureError):
        super().__init__(str(error))
        self.numbers = numbers


@dataclasses.dataclass(frozen=True, eq=False)
class CountedNumber:
    """The entry `key` of a param group (number `group` of the optimizer's: loading a state_dict replaces the dicts), of a parameter's state, or the attribute `key` of an optimizer.
    `name` and the number of a param group of all optimizers, `index`, are those of the graph's input; `begins`: what it was
    where the trace began."""

    part: torch.optim.Optimizer
    key: str
    name: str
    index: int
    group: int | None = None
    parameter: torch.Tensor | None = None
    begins: float = 0.0

    @property
    def is_in_groups(self) -> bool:
        """True for one of a param group, which checkpoints have."""
        return self.group is not None

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, CountedNumber) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[int, str, int]:
        return id(self.part), self.name, self.index

    def holder(self, twin: Callable[[torch.Tensor], Any] = lambda p: p) -> dict[str, Any]:
        """The dict that has the number; `twin` gives what stands for the parameter."""
        if self.group is not None:
            return self.part.param_groups[self.group]
        return vars(self.part) if self.parameter is None else self.part.state.get(twin(self.parameter), {})

    def __str__(self) -> str:
        kind = type(self.part).__qualname__
        return f"{kind}.param_groups[{self.index}][{self.key!r}]" if self.group is not None else \
            f"{kind}.{self.key}" if self.parameter is None else f"{kind}.state[...][{self.key!r}]"

    def now(self, is_made: bool = True) -> float:
        """The number as it is. `is_made`: a step has made it.

        Raises:
          RuntimeError: it is gone.
        """
        found = self.holder().get(self.key)
        if found is None and not is_made:
            return self.begins
        if type(found) not in (int, float):
            raise RuntimeError(f"'{self}' was a Python number when the step was compiled, and is {found!r}\n"
                               "  hint: call reset() of the compiled step after optimizer state was removed")
        return float(found)


def can_be_counted(value: Any) -> bool:
    """True for the numbers that can be inputs."""
    return type(value) in (int, float)


def is_other_number(value: Any) -> bool:
    """True for numbers that no input can be: of numpy, fractions, complex ones. bool: see optimizer_numbers.py."""
    return isinstance(value, numbers.Number) and type(value) not in (bool, int, float)


def numbers_in(optimizers: Optimizers, name_of: Callable[[Any], str | None], real: Callable[[Any], Any],
               is_wanted: Callable[[Any], bool] = can_be_counted) -> Iterator[tuple[CountedNumber, Any]]:
    """The numbers in optimizers that are wanted, and what they are. `name_of` and `real` give the name of a parameter, or of
    what stands for it, and the parameter."""
    groups = optimizers.param_groups
    owners = {id(p): index for index, group in enumerate(groups) for p in group["params"]}
    for part in optimizers.parts:
        index = next((i for i, group in enumerate(groups) if any(group is own for own in part.param_groups)), 0)
        places = [(own_attributes(part), CountedNumber(part, "", "attribute.", index))]
        places += [(group, CountedNumber(part, "", "", index + i, group=i)) for i, group in enumerate(part.param_groups)]
        places += [(state, CountedNumber(part, "", f"state.{name_of(p)}.", owners[id(p)], parameter=real(p)))
                   for p, state in part.state.items() if id(p) in owners]
        for entries, one in places:
            for key, value in entries.items():
                if is_wanted(value) and key not in _NOT_COUNTED:
                    begins = float(value) if can_be_counted(value) else 0.0
                    yield dataclasses.replace(one, key=key, name=one.name + key, begins=begins), value


def removed_numbers(before: Iterable[CountedNumber], twin: Callable[[Any], Any]) -> list[CountedNumber]:
    """Those that are not there any more."""
    return [one for one in before if one.key not in one.holder(twin)]


def _is_same(a: Any, b: Any) -> bool:
    """Whether two numbers of one type are equal, or both nan. Options that are inputs are floats that refuse to be compared."""
    a, b = (float.__float__(value) if isinstance(value, float) else value for value in (a, b))
    return a == b or a != a and b != b


def changed_numbers(before: list[tuple[CountedNumber, float]], twin: Callable[[Any], Any]) -> list[CountedNumber]:
    """Those that are not any more what they were."""
    missing = object()
    changed = []
    for one, value in before:
        now = one.holder(twin).get(one.key, missing)
        if now is not missing and not (type(now) is type(value) and _is_same(now, value)):
            changed.append(one)
    return changed


@dataclasses.dataclass
class Counted:
    """A counted number and what gives its next value: a function of nothing, which reads the numbers of the call."""

    number: CountedNumber
    kind: type
    following: Callable[[], Any]


def followed(number: CountedNumber, kind: type, value: Any, recipe: Callable[[Any], Callable[[], Any] | None],
             stack: tuple[Frame, ...]) -> Counted:
    """What becomes of a number that a traced step has left as `value`. `recipe`: how a traced value is computed, if that
    follows from numbers which a call knows when it begins.

    Raises:
      CaptureError: it depends on other values.
    """
    if type(value) in (int, float):
        return Counted(number, kind, lambda: value)
    following = recipe(value)
    if following is None:
        raise error_at(stack, f"the optimizer keeps in '{number}' a Python number that depends on values of tensors, which a "
                       "compiled step does not read", "keep it as a tensor in the state of each parameter, and compute with it")
    return Counted(number, kind, following)


def advance(counted: list[Counted]) -> None:
    """Puts the numbers of the next call in the place of those of this one."""
    values = [one.following() for one in counted]
    for one, value in zip(counted, values, strict=True):
        value = float(value)
        one.number.holder()[one.number.key] = int(value) if one.kind is int and value.is_integer() else value
