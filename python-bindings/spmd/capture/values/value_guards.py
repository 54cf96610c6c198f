"""What a step's Python asks of values: `if mask.all():`, `assert lengths.max() <= limit`, `x[:, :n]`, `if self.is_new:`.

A graph goes one way, so the step is told what eager would have been told of the batch it is captured with, and the
question is kept: each call computes it of its own batch first, from the operators that the trace has seen, and another
answer is another program. Only what is computed from the batch, small buffers, sizes and numbers can be known before a step;
what parameters or random numbers are in cannot. What is told is the answer and no more: the same program serves all lengths
that are within the limit.
"""
from __future__ import annotations

import dataclasses
import math
from typing import Any, Callable, Collection, Sequence

import sympy
import torch
from sympy.logic.boolalg import Boolean

from ..errors import Frame, error_at
from .known_values import Computation, KnownNumber


@dataclasses.dataclass(frozen=True)
class _Question:
    """`expression` over numbers that .item() gives, or None where the one number is asked for itself (torch.equal)."""

    expression: sympy.Basic | None
    numbers: tuple[tuple[sympy.Symbol | None, Computation], ...]
    told: Any
    stack: tuple[Frame, ...]

    def answer(self, batch: Sequence[torch.Tensor]) -> Any:
        """None: there is none."""
        values = [computation.run(batch) for _, computation in self.numbers]
        if self.expression is None:
            return values[0]
        if not all(isinstance(value, (bool, int)) or isinstance(value, float) and math.isfinite(value) for value in values):
            return None
        found = self.expression.xreplace({
            symbol: sympy.Float(value) if isinstance(value, float) else sympy.Integer(value)
            for (symbol, _), value in zip(self.numbers, values)})
        if found in (sympy.true, sympy.false):
            return found == sympy.true
        return (int(found) if found.is_integer else float(found)) if found.is_number and found.is_real else None


@dataclasses.dataclass(frozen=True, eq=False)
class _AskedNumber(KnownNumber):
    """The answer to a question as a number of `kind`."""

    question: _Question
    kind: type

    @property
    def roots(self) -> tuple:
        """See KnownNumber."""
        return tuple(root for _, computation in self.question.numbers for root in computation.roots)

    def value(self, batch: Sequence[torch.Tensor]) -> Any:
        """See KnownNumber."""
        found = self.question.answer(batch)
        return None if found is None else self.kind(found)


_KINDS = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}


class ValueGuards:
    """The questions of one trace, each with what the step was told."""

    def __init__(self, batch: Sequence[torch.Tensor] = (), moving: Collection[str] = ()):
        """`moving`: paths of numbers that are others in each call, and that are told in comparisons only."""
        self._batch, self._moving, self._questions, self._numbers = batch, moving, [], {}

    def __bool__(self) -> bool:
        return bool(self._questions)

    def forget_batch(self) -> None:
        """When the trace is over."""
        self._batch, self._numbers = (), {}

    def note_number(self, number: Any, computation: Computation) -> None:
        """`number`, which stands for what .item() gave in the trace, is what this computes."""
        self._numbers.update((symbol, computation) for symbol in number.node.expr.free_symbols)

    def tell(self, expression: sympy.Basic, stack: tuple[Frame, ...]) -> Any:
        """What Python asks for; None where it cannot be known before a step."""
        symbols = sorted(expression.free_symbols, key=str)
        if not symbols or not all(symbol in self._numbers for symbol in symbols):
            return None
        if expression.is_Symbol or not isinstance(expression, Boolean):  # a Symbol is a Boolean, too
            self._refuse_moving([path for symbol in symbols for path in self._numbers[symbol].places], stack)
        return self._tell(expression, tuple((symbol, self._numbers[symbol]) for symbol in symbols), stack)

    def _refuse_moving(self, paths: Sequence[str], stack: tuple[Frame, ...]) -> None:
        path = next((path for path in paths if path in self._moving), None)
        if path is not None:
            raise error_at(stack, f"the step takes the Python number '{path}', which every call changes, for a constant: an index, a "
                           "size, a text, a key, round(), range(), int() or float() of it",
                           "compute with it (step / 2, step ** 0.5, step % 3), or compare it (step > 5)")

    def known_number(self, symbol: Any) -> Any:
        """What computes a symbol of the graph in each call, to stand in its place; the symbol if no call can."""
        expression = symbol.node.expr
        symbols = sorted(expression.free_symbols, key=str)
        if not all(one in self._numbers for one in symbols):
            return symbol
        kind = next(kind for symbolic, kind in _KINDS.items() if isinstance(symbol, symbolic))
        return _AskedNumber(_Question(expression, tuple((one, self._numbers[one]) for one in symbols), None, ()), kind)

    def recipe(self, expression: sympy.Basic) -> Callable[[], Any] | None:
        """What computes an expression of numbers that are known without a batch."""
        symbols = sorted(expression.free_symbols, key=str)
        if not all(symbol in self._numbers and len(self._numbers[symbol].places) == len(self._numbers[symbol].roots) for symbol in symbols):
            return None
        question = _Question(expression, tuple((symbol, self._numbers[symbol]) for symbol in symbols), None, ())
        return lambda: question.answer(())

    def tell_value(self, computation: Computation, stack: tuple[Frame, ...]) -> Any:
        return self._tell(None, ((None, computation),), stack)

    def _tell(self, expression: sympy.Basic | None, numbers: tuple, stack: tuple[Frame, ...]) -> Any:
        question = _Question(expression, numbers, None, stack)
        told = question.answer(self._batch)
        if told is not None and not any(q.expression == expression and q.numbers == numbers for q in self._questions):
            self._questions.append(dataclasses.replace(question, told=told))
        return told

    def hold(self, batch: Sequence[torch.Tensor]) -> bool:
        """Whether the answers are those of this batch."""
        return self._changed(batch) is None

    def what_is_new(self, batch: Sequence[torch.Tensor]) -> str:
        """The first answer that is another one; empty when there is none."""
        changed = self._changed(batch)
        if changed is None:
            return ""
        question, now = changed
        place = question.stack[-1] if question.stack else None
        return f"a value that the step asks for is {now!r}, it was {question.told!r}" + (
            f" ({place.file}, line {place.line})" if place else "")

    def _changed(self, batch: Sequence[torch.Tensor]) -> tuple[_Question, Any] | None:
        for question in self._questions:
            now = question.answer(batch)
            if now != question.told:
                return question, now
        return None
