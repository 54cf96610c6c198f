"""Checks of values that raise in eager PyTorch: torch._assert_async, and torch._check and its siblings where the
condition is a value that is not known before the step runs.

A graph has no errors. The condition becomes a result of the step, and the call raises when the step is over, with
parameters and optimizer state after its update. A condition that the batch decides is known before
(value_guards.py), and never comes here.
"""
from __future__ import annotations

import contextlib
import functools
import operator
import sys
from typing import Any, Callable, Iterator, Sequence

import sympy
import torch

from ..errors import Frame, error_at, is_user_file, where
from ..observe import patches
from ..observe.dispatch_mode import Handler, OpCall, Phase
from .lazy_rows import Check

_aten = torch.ops.aten
_ITEM = _aten._local_scalar_dense.default
_ALL, _ANY = _aten._is_all_true.default, _aten._is_any_true.default
_ASSERTS = (_aten._assert_async.default, _aten._assert_async.msg, _aten._functional_assert_async.msg)


class StepChecks(Handler):
    """Those of one trace. `note_check` is called for each; `stack`: the user's frames."""

    phase = Phase.REPLACE
    operators = {_ITEM, _ALL, _ANY, *_ASSERTS}

    def __init__(self, note_check: Callable[[], None], stack: Callable[[], Sequence[Frame]]):
        self._note_check, self._stack = note_check, stack
        self.checks: list[Check] = []
        self._read: dict[Any, torch.Tensor] = {}  # what .item() was called on, by the symbol that it gave

    def answer(self, call: OpCall) -> Any:
        if call.func is _ITEM:
            return NotImplemented
        with call.traced():
            if call.func in (_ALL, _ANY):
                return call.args[0].all() if call.func is _ALL else call.args[0].any()
            self._add(call.args[0], call.args[1] if isinstance(call.args[-1], str) else "", call.stack)
        return call.args[-1] if call.func is _ASSERTS[-1] else None

    def note(self, call: OpCall, result: Any) -> None:
        if call.func is _ITEM and isinstance(result, (torch.SymBool, torch.SymInt, torch.SymFloat)):
            self._read.update((symbol, call.args[0]) for symbol in result.node.expr.free_symbols)

    @contextlib.contextmanager
    def followed(self) -> Iterator[None]:
        """While entered, torch._check and its siblings take conditions that are not known."""
        original = patches.CHECK_WITH.value()

        def check_with(error_type: type[Exception], cond: Any, message: Any) -> None:
            if not isinstance(cond, torch.SymBool) or _is_called_by_torch():
                return original(error_type, cond, message)
            self._add(self._tensor_of(cond), _constant_text(message), self._stack())

        with patches.replaced({patches.CHECK_WITH: check_with}):
            yield

    def _add(self, condition: torch.Tensor, text: str, stack: Sequence[Frame]) -> None:
        self._note_check()
        # As f32, whose mean over ranks tells of a failure on any rank.
        is_wrong = (condition.detach() == 0).any().to(torch.float32)
        self.checks.append(Check(is_wrong, f"a check of the step fails{': ' * bool(text)}{text}\n{where(stack)}\n"
                                           "  hint: look at the batch; parameters and optimizer state are those after the "
                                           "update of this step"))

    def _tensor_of(self, cond: torch.SymBool) -> torch.Tensor:
        """The condition, computed with what .item() was called on."""
        expression = cond.node.expr
        try:
            return _compute(expression, self._read)
        except KeyError as error:
            raise error_at(self._stack(), f"torch._check of {expression}, which no tensor of the step has",
                           "check a tensor: torch._assert_async(condition)") from error


_FUNCTIONS = {sympy.Add: operator.add, sympy.Mul: operator.mul, sympy.Eq: operator.eq, sympy.Ne: operator.ne,
              sympy.Lt: operator.lt, sympy.Le: operator.le, sympy.Gt: operator.gt, sympy.Ge: operator.ge,
              sympy.And: operator.and_, sympy.Or: operator.or_, sympy.Not: lambda condition: condition == 0}


def _compute(expression: Any, tensors: dict[Any, torch.Tensor]) -> Any:
    """The value of a comparison of sums and products of symbols.

    Raises:
      KeyError: it has another function, or a symbol without a tensor.
    """
    if expression.is_number:
        return int(expression) if expression.is_integer else float(expression)
    if expression.is_symbol:
        return _wide(tensors[expression])
    function, values = _FUNCTIONS[expression.func], [_compute(argument, tensors) for argument in expression.args]
    return function(*values) if len(values) == 1 else functools.reduce(function, values)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    """As Python's number of it."""
    return tensor.detach().reshape(()).to(torch.float64 if tensor.is_floating_point() else torch.int64)


def _is_called_by_torch() -> bool:
    """Whether a function of PyTorch itself checks: what it makes of its arguments."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename == torch.__file__:
        frame = frame.f_back
    return frame is not None and not is_user_file(frame.f_code.co_filename)


def _constant_text(message: Any) -> str:
    """The message, if nothing traced can be in it."""
    if callable(message) and not getattr(message, "__closure__", None):
        with contextlib.suppress(Exception):
            return str(message())
    return ""
