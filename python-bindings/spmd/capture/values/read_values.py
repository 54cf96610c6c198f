"""Values that Python reads while a step is traced: .item(), torch.equal, sizes that depend on data.

A value that is known before the step runs is given as eager would give it (known_values.py), with a guard where it depends on
the batch (value_guards.py). Any other number goes on as a symbol of the graph.
"""
from __future__ import annotations

from typing import Any, Callable

import torch

from ...torch_api.operators import schema_of
from ...torch_api.tracing import pytree
from ..errors import Frame, depends_on_values
from ..observe.dispatch_mode import Handler, OpCall, Phase
from .known_values import SYMBOLS, KnownValues
from .number import Number
from .value_guards import ValueGuards

_ITEM = torch.ops.aten._local_scalar_dense.default
# Factories whose numbers say how many elements they make.
_RANGES = {torch.ops.aten.arange, torch.ops.aten.range, torch.ops.aten.linspace, torch.ops.aten.logspace, torch.ops.aten.eye}


class ReadValues(Handler):
    """Those of one trace. Keeps `known` up to date with each operator; `note_answer` is told of each value that is given."""

    phase = Phase.VALUE

    def __init__(self, known: KnownValues, guards: ValueGuards, note_answer: Callable[[], None]):
        self._known, self._guards, self._note_answer = known, guards, note_answer
        self.items: list[tuple[Any, tuple[Frame, ...]]] = []  # what .item() gave, and where

    def answer(self, call: OpCall) -> Any:
        if call.func is _ITEM and call.args[0].dim():  # of a tensor of one element
            with call.traced():
                call.args = (call.args[0].reshape(()),)
            call.set_tensors(list(call.args))
        call.question = computation = self._known.computation_of(call.func, call.args)
        number = None
        if computation is not None and not computation.roots:
            number = computation.run()
        elif computation is not None and not _stands_for_itself(call):
            number = self._guards.tell_value(computation, call.stack)
        if number is not None:
            self._note_answer()
            return number
        self._with_known_sizes(call)
        return NotImplemented

    def recipe(self, value: Any) -> Callable[[], Any] | None:
        """What computes a traced number from numbers that a call knows without its batch, if it follows from these."""
        if isinstance(value, Number):
            value = value.tensor
        if isinstance(value, (torch.SymFloat, torch.SymInt)):
            return self._guards.recipe(value.node.expr)
        found = self._known.computation_of_value(value) if isinstance(value, torch.Tensor) and value.numel() == 1 else None
        if found is None or len(found.places) != len(found.roots):
            return None
        return found.run

    def note(self, call: OpCall, result: Any) -> None:
        args, kwargs = call.args, call.kwargs
        if any(isinstance(leaf, SYMBOLS) for leaf in pytree.tree_leaves((args, kwargs))):
            args, kwargs = pytree.tree_map_only(SYMBOLS, self._guards.known_number, (args, kwargs))
        self._known.note(call.func, args, kwargs, [x for x in call.leaves if isinstance(x, torch.Tensor)], call.written, call.made)
        if call.again is not None:
            return
        if any(not isinstance(size, int) for t in call.made for size in t.shape):
            # Before an op that needs the shape says so, in words of its own.
            raise depends_on_values(call.stamp.stack, str(call.func), call.stamp.module)
        if call.func is _ITEM:
            self.items.append((result, call.stack))
            if call.question is not None:
                self._guards.note_number(result, call.question)

    def _with_known_sizes(self, call: OpCall) -> None:
        """With the values of sizes that the batch says: what an operator makes has as many elements."""
        if not any(isinstance(leaf, torch.SymInt) for leaf in pytree.tree_leaves((call.args, call.kwargs))):
            return

        def known(leaf: Any) -> Any:
            told = self._guards.tell(leaf.node.expr, call.stack) if isinstance(leaf, torch.SymInt) else None
            return leaf if told is None else told

        is_range = call.func.overloadpacket in _RANGES
        is_size = {argument.name: is_range or "int" in str(argument.type).lower() for argument in schema_of(call.func).arguments}
        call.args = tuple(pytree.tree_map(known, value) if size else value for value, size in zip(call.args, is_size.values()))
        call.kwargs = {name: pytree.tree_map(known, value) if is_range or is_size.get(name) else value
                       for name, value in call.kwargs.items()}


def _stands_for_itself(call: OpCall) -> bool:
    """What .item() gives goes on as a symbol until Python looks at it. One of a boolean could not: `is True` asks nobody."""
    return call.func is _ITEM and call.args[0].dtype is not torch.bool
