"""The counted numbers of one trace: inputs of the graph, and what the step leaves in their places (optimizer/counted.py)."""
from __future__ import annotations

import functools
from typing import Any, Callable, Iterator, Sequence

import torch

from ...torch_api.tracing import FakeTensorMode
from ..errors import CaptureError, Frame, error_at
from ..values.number import Number
from ..world.paths import Place
from ..optimizer.counted import Counted, CountedNumber, CountsInPython, changed_numbers, followed, is_other_number, numbers_in, removed_numbers
from ..optimizer.optimizer_numbers import OptimizerNumbers, check_numbers
from ..optimizer.optimizers import Optimizers
from ..optimizer.scheduled import read_option


class CountedInputs:
    """`wanted`: the numbers that are inputs. `twin`: what stands for a parameter in the trace."""

    def __init__(self, optimizers: Optimizers, wanted: Sequence[CountedNumber], twin: Callable[[Any], Any]):
        self._optimizers, self._wanted, self._twin = optimizers, list(wanted), twin
        self._plain: dict[CountedNumber, float] = {}  # all numbers of the optimizers, as the trace began
        self._others: dict[CountedNumber, Any] = {}  # that no input can be
        self._during: dict[tuple[str, int], float] = {}  # those that are inputs, while the trace runs

    def install(self, name_of: Callable[[Any], str | None], real: Callable[[Any], Any], mode: FakeTensorMode,
                is_first: bool) -> Iterator[tuple[CountedNumber, torch.Tensor, float]]:
        """Puts Numbers into the optimizers, but for a first step, which has the same inputs and its own numbers. Yields each
        with the tensor that stands for it and its value."""
        self._plain = dict(numbers_in(self._optimizers, name_of, real))
        self._others = dict(numbers_in(self._optimizers, name_of, real, is_other_number))
        self._wanted = [number for number in self._wanted if number in self._plain]
        for number in self._wanted:
            with mode:
                tensor = torch.empty((), dtype=torch.float64)
            value = self._plain[number]
            yield number, tensor, float(value)
            if not is_first:
                number.holder(self._twin)[number.key] = Number(tensor, is_known=True, kind=type(value))

    def end(self) -> None:
        """When the trace is over, calls read the numbers where they are."""
        self._during.clear()

    def note_made(self, numbers: OptimizerNumbers, had_state: Callable[[Any], bool]) -> None:
        """Adds the numbers of state that the first step makes."""
        numbers.made += [(one.part, one.parameter, {one.key: self._plain[one]}) for one in self._wanted
                         if one.parameter is not None and not had_state(self._twin(one.parameter))]

    def places(self, inputs: Sequence[Any]) -> dict[int, Place]:
        """By the ids of their fakes, the numbers that each call reads from the optimizers when it begins, learning rates among
        them, and where. `inputs`: those of the graph."""
        counted = {(one.name, one.index): one for one in self._wanted}
        places = {}
        for i in (i for i in inputs if i.kind == "hyper"):
            one, key = counted.get((i.name, i.group)), (i.name, i.group)
            now = one.now if one else functools.partial(_read_option, self._optimizers, i.group, i.name)
            self._during[key] = i.value
            path = str(one or f"param_groups[{i.group}][{i.name!r}]")
            places[id(i.fake)] = Place(path, functools.partial(_value, self._during, key, now))
        return places

    def has(self, parameter: torch.Tensor, name: str) -> bool:
        """Whether this entry of a parameter's state is an input."""
        return any(one.parameter is parameter and one.key == name for one in self._wanted)

    def moving(self) -> set[str]:
        """The paths of those that are others in each call."""
        return set(map(str, self._wanted))

    def check(self, numbers: tuple[dict, dict], recipe: Callable[[Any], Callable[[], Any] | None], stack: tuple[Frame, ...],
              is_followed: bool) -> list[Counted]:
        """What the traced step leaves of the numbers that are inputs. `numbers`: all of the optimizers before and after it;
        `recipe` as of counted.followed(); `is_followed`: the caller takes numbers as inputs.

        Raises:
          CountsInPython: the step changes numbers that were constants of the trace.
          CaptureError: it changes numbers, and no input can be.
        """
        wanted = set(self._wanted)
        for one in removed_numbers(self._plain, self._twin):
            raise error_at(stack, f"the optimizer removes the Python number '{one}': Python code runs only once, during the "
                                  "capture", "keep the number, and assign another value to it")
        for one in changed_numbers(list(self._others.items()), self._twin):
            raise error_at(stack, f"the optimizer changes '{one}', a {type(self._others[one]).__name__}: Python code runs "
                                  "only once, during the capture", "keep it as a Python int or float: float(value)")
        changed = changed_numbers([(one, value) for one, value in self._plain.items() if one not in wanted], self._twin)
        try:
            check_numbers(*numbers, stack)
        except CaptureError as error:
            if not changed or not is_followed:
                raise
            raise CountsInPython(changed, error) from None
        if changed:
            raise CountsInPython(changed, error_at(
                stack, f"the optimizer changes the Python number '{changed[0]}' to one that a traced value decides",
                "keep it as a tensor in the state of each parameter"))
        return [followed(one, type(self._plain[one]), one.holder(self._twin).get(one.key), recipe, stack) for one in self._wanted]


def _read_option(optimizers: Optimizers, group: int, name: str) -> float:
    return float(read_option(optimizers.param_groups[group], name))


def _value(during: dict[tuple[str, int], float], key: tuple[str, int], now: Callable[[], float]) -> torch.Tensor:
    """A number of an optimizer: while a trace runs, what it was captured with."""
    return torch.tensor(float(during[key]) if key in during else now(), dtype=torch.float64)
