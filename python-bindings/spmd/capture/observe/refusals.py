"""Errors that only a trace raises, also when the step catches them.

`try: ... except Exception: ...` in a step goes another way under fakes than in eager when what raised is the trace: a
branch on a tensor's value, a conversion to numpy. The graph would be of that way. So such an error is remembered where
it is raised, and ends the capture whoever has caught it. An operator that refuses its shapes raises in eager as well:
it leaves no node, and the step goes on as it does there.
"""
from __future__ import annotations

import contextlib
import functools
import re
from typing import Any, Callable, Iterable, Iterator

import sympy
import torch

from ...torch_api.shapes import ShapeEnv
from ...torch_api.tracing import get_proxy_mode
from ..errors import Frame, error_at
from . import patches
from .dispatch_mode import Handler, OpCall, Phase

_EAGERS = (RuntimeError, ValueError, IndexError, TypeError)  # themselves, not the tracer's subclasses


def _knows_nothing(expression: sympy.Basic) -> Any:
    return None


class Refusals(Handler):
    """`error` is the first error that eager would not have raised. `tell` gives what is known of a number all the same, or
    None; `where` the user's line."""

    phase = Phase.REFUSE

    def __init__(self) -> None:
        self.error: Exception | None = None
        self._texts: dict[str, tuple[Frame, ...]] = {}  # that stand for values in strings, and where they were made
        self.tell: Callable[[sympy.Basic], Any] = _knows_nothing
        self.where: Callable[[], tuple[Frame, ...]] = tuple

    def tell_no_more(self) -> None:
        """When the trace is over: PyTorch's caches keep a shape environment, and with it what `tell` refers to."""
        self.tell = _knows_nothing

    def note_error(self, error: Exception) -> None:
        self.error = self.error or error

    def answer(self, call: OpCall) -> Any:
        mode = get_proxy_mode()
        call.nodes = mode and (mode.tracer.graph, len(mode.tracer.graph.nodes))
        return NotImplemented

    def failed(self, call: OpCall, error: Exception) -> None:
        """An operator that raises leaves nothing in the graph."""
        if type(error) not in _EAGERS or "fake impl" in str(error):
            self.note_error(error)
        if call.nodes:
            graph, before = call.nodes
            for node in list(graph.nodes)[:before - 1:-1]:
                graph.erase_node(node)

    def shape_env(self) -> ShapeEnv:
        """What .item() becomes a node through; an error when Python asks for its value."""
        refusals = self

        class Shapes(ShapeEnv):
            def evaluate_expr(self, orig_expr: sympy.Basic, *args: Any, **kwargs: Any) -> Any:
                if kwargs.get("fallback_value") is None and isinstance(orig_expr, sympy.Basic) \
                        and (told := refusals._noting(refusals.tell, orig_expr)) is not None:
                    return sympy.sympify(told)
                return refusals._noting(super().evaluate_expr, orig_expr, *args, **kwargs)
        return Shapes()

    @contextlib.contextmanager
    def of_conversions(self) -> Iterator[None]:
        """While entered, what takes a traced tensor's values out of PyTorch is remembered."""
        # FakeTensor.numpy wraps the replaced Tensor.numpy, which is therefore replaced first.
        with patches.replaced({patches.TENSOR_NUMPY: self._no_numpy}), patches.replaced({
                **{patch: functools.partialmethod(_text, self, patch.value()) for patch in patches.TEXTS},
                **{patch: functools.partialmethod(_call, self, patch.value()) for patch in patches.CONVERSIONS}}):
            yield

    def refuse_texts(self, leaves: Iterable[Any]) -> None:
        """Of what the step returns: a string that has the name of a value in its place.

        Raises:
          CaptureError: at the line that made it.
        """
        for leaf in leaves:
            for text, stack in self._texts.items() if isinstance(leaf, str) else ():
                if re.search(rf"(?<!\w){re.escape(text)}(?!\w)", leaf):
                    raise error_at(stack, "the step returns a string with a tensor's value in it: Python code runs only "
                                          "once, during the capture", "return the value, and format the return value of the "
                                                                      "call")

    def note_text(self, text: str) -> None:
        self._texts.setdefault(text, self.where())

    def _no_numpy(self, *unused: Any, **options: Any) -> Any:
        self.note_error(error := RuntimeError(".numpy() is not supported in a step"))
        raise error

    def _noting(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            self.note_error(error)
            raise


def _text(value: Any, refusals: Refusals, original: Callable) -> str:
    text = original(value)
    refusals.note_text(text)
    return text


def _call(tensor: torch.Tensor, refusals: Refusals, original: Callable, *args: Any, **kwargs: Any) -> Any:
    return refusals._noting(original, tensor, *args, **kwargs)
