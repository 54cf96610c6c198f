"""The one function mode of a capture: each call of PyTorch's functions passes through handlers, in the order of their phases.

Functions are what Python calls, above autograd: `torch.where`, `tensor.item()`, `tensor.backward()`. Operators, below autograd,
are observe/dispatch_mode.py's.
"""
from __future__ import annotations

import enum
import functools
from typing import Any, Callable, Protocol, Sequence

from torch.overrides import TorchFunctionMode


class FunctionPhase(enum.IntEnum):
    """The order of handlers."""

    NUMBER = enum.auto()  # what .item() gives, and arithmetic on it (values/python_numbers.py)
    ITERATION = enum.auto()  # calls that come again in each iteration of a loop (loops/microbatches.py)


class FunctionHandler(Protocol):
    """What a feature does with functions."""

    function_phase: FunctionPhase

    def call(self, func: Callable, args: tuple, kwargs: dict[str, Any], below: Callable[[Callable, tuple, dict[str, Any]], Any]) -> Any:
        """The result of func(*args, **kwargs). `below` passes a call on to later phases, and at last to PyTorch."""


class FunctionMode(TorchFunctionMode):
    """Passes functions through handlers while entered."""

    def __init__(self, handlers: Sequence[FunctionHandler]):
        super().__init__()
        self._call = _run
        for handler in sorted(handlers, key=lambda handler: handler.function_phase, reverse=True):
            self._call = functools.partial(_handle, handler, self._call)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return self._call(func, args, kwargs or {})


def _handle(handler: FunctionHandler, below: Callable, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    return handler.call(func, args, kwargs, below)


def _run(func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    return func(*args, **kwargs)
