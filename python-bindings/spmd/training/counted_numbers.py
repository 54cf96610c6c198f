"""Python numbers of optimizers that are inputs of a program (capture/optimizer/counted.py), over its calls."""
from __future__ import annotations

from ..capture import StepPackage
from ..capture.optimizer.counted import advance


class CountedNumbers:
    """Those of one program."""

    def __init__(self, package: StepPackage):
        self._numbers, self._is_first = package.optimizer_numbers, package.first_step is not None
        self.by_input = {(one.number.name, one.number.index): one.number for one in self._numbers.counted}

    def __contains__(self, hyper: tuple[str, int]) -> bool:
        return hyper in self.by_input

    def now(self, name: str, group: int) -> float | None:
        """The number that is this input; None if the input is no counted number."""
        number = self.by_input.get((name, group))
        return None if number is None else number.now(is_made=not self._is_first and not self._numbers.made)

    def advance(self, is_resumed: bool) -> bool:
        """After a step: the numbers of the optimizers are those that eager would have left. `is_resumed`: the first step of the
        program was a later one of the training. True after the first step, which the program was not traced for."""
        was_first, self._is_first = self._is_first, False
        loaded = [(number.holder(), number.key) for number in self.by_input.values()] if is_resumed else []
        self._numbers.put(lambda change: any(change.holder is holder and change.name == key for holder, key in loaded))
        if not was_first or is_resumed:
            advance(self._numbers.counted)
        return was_first
