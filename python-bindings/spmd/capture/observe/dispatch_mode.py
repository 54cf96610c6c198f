"""The one dispatch mode of a capture: each operator passes through handlers, in the order of their phases.

A feature that changes or watches operators registers a handler; it does not enter a mode of its own. For each operator the
mode calls `answer` of the handlers in order. The first handler that returns a value ends the operator: the operator itself does
not run. A handler that returns NotImplemented may have changed the call. When no handler answers, the operator runs, and the
mode calls `note` of the handlers in reverse order. When an operator raises, handlers that have seen it get `failed`.

A handler that computes with tensors itself does so within `call.mode.from_phase(...)`: its operators then pass through that
phase and later ones. Outside of it they reach the tracer directly, without provenance.
"""
from __future__ import annotations

import contextlib
import enum
import sys
from typing import Any, Callable, Collection, Iterator, Sequence

import torch

from ...torch_api.operators import OpOverload, schema_of
from ...torch_api.tracing import FakeTensor, TorchDispatchMode, pytree
from ..errors import Frame
from .stacks import user_stack


_DEVICE = torch.ops.prim.device.default


class Phase(enum.IntEnum):
    """The order of handlers."""

    DRAW = enum.auto()  # random operators become functions of seed, step and element (ops/draws.py)
    OPTION = enum.auto()  # options of param groups become tensors (optimizer/scheduled.py)
    EXCHANGE = enum.auto()  # collectives of replicas in one process (ops/collectives.py)
    DEVICE = enum.auto()  # the step is traced on the CPU (model/traced_device.py)
    LAST = enum.auto()  # which operator an error names (observe/op_recorder.py)
    ITERATION = enum.auto()  # placeholders of a loop's iterations (loops/microbatches.py)
    REPEAT = enum.auto()  # an operator that was traced before (observe/operator_forms.py)
    REFUSE = enum.auto()  # an operator that raises leaves no node (observe/refusals.py)
    CHECK = enum.auto()  # tensors that no graph can follow (world/foreign.py), types (ops/replacements.py, ops/custom_ops.py)
    VALUE = enum.auto()  # values that Python reads (values/read_values.py)
    REPLACE = enum.auto()  # operators that are traced as others (ops/replacements.py)
    RECORD = enum.auto()  # module, phase and line of the node (observe/op_recorder.py)


def tensors_in(args: tuple, kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The tensors among an operator's arguments, in order; pytree would give the same, slowly."""
    found: list[torch.Tensor] = []
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += tensors_in(tuple(value), {})
    return found


class OpCall:
    """One call of an operator on its way through the handlers, which may change `func`, `args` and `kwargs`.

    `form`: what observe/operator_forms.py knows of the call; `again`: traces it as an earlier call of the same form, if there was
    one. `question`: how the number that the call reads is computed, if the step can know it before it runs. `nodes`: of the
    graph, before the operator. `stamp`: the node's Provenance. `made`: the tensors among the results, for `note`.

    A call must be gone when its operator is over, so nothing may refer to it in a circle: autograd takes a gradient as it is where
    nothing else holds the tensor, and copies it otherwise.
    """

    __slots__ = ("mode", "func", "args", "kwargs", "form", "again", "question", "nodes", "stamp", "made", "_leaves", "_written", "_stack")

    def __init__(self, mode: DispatchMode, func: OpOverload, args: tuple, kwargs: dict[str, Any]):
        self.mode, self.func, self.args, self.kwargs = mode, func, args, kwargs
        self.form: Any = None
        self.again: Callable[[Any, dict[str, Any]], Any] | None = None
        self.question: Any = None
        self.nodes: Any = None
        self.stamp: Any = None
        self.made: list[torch.Tensor] = []
        self._leaves: list[Any] | None = None
        self._written: list[torch.Tensor] | None = None
        self._stack: tuple[tuple[Frame, ...], str | None] | None = None

    @property
    def leaves(self) -> list[Any]:
        """The tensors and generators among the arguments."""
        if self._leaves is None:
            self._leaves = [x for x in pytree.tree_leaves((self.args, self.kwargs)) if isinstance(x, (torch.Tensor, torch.Generator))]
        return self._leaves

    @property
    def written(self) -> list[torch.Tensor]:
        """The tensors that the operator's schema says it writes to."""
        if self._written is None:
            self._written = self.aliased(are_written=True)
        return self._written

    def aliased(self, are_written: bool = False) -> list[torch.Tensor]:
        """The tensors in whose memory the operator's results lie, or only those that it writes to."""
        values = [self.args[number] if number < len(self.args) else self.kwargs.get(argument.name)
                  for number, argument in enumerate(schema_of(self.func).arguments)
                  if argument.alias_info is not None and (argument.alias_info.is_write or not are_written)]
        return [x for x in pytree.tree_leaves(values) if isinstance(x, torch.Tensor)] if values else []

    def set_tensors(self, leaves: list[Any], written: list[torch.Tensor] | None = None) -> None:
        """Says what `leaves` and `written` are, where a handler knows them."""
        self._leaves = leaves
        if written is not None:
            self._written = written

    @property
    def stack(self) -> tuple[Frame, ...]:
        """The user's frames, outermost first."""
        if self._stack is None:
            self._stack = user_stack()
        return self._stack[0]

    @property
    def caller(self) -> str | None:
        """Who in PyTorch called the operator (observe/stacks.py)."""
        if self._stack is None:
            self._stack = user_stack()
        return self._stack[1]

    def traced(self) -> contextlib.AbstractContextManager:
        """Within, operators that a handler calls are traced as the step's are, but not as random ones."""
        return self.mode.from_phase(Phase.DEVICE)

    def run(self) -> Any:
        """Runs and traces the operator."""
        return self.func(*self.args, **self.kwargs) if self.again is None else self.again(self.form, {"spmd": self.stamp})


class Handler:
    """What a feature does with operators, and with which: `operators` are the overloads that the handler sees, None all of them; a
    handler that decides by what an operator is overrides `sees`."""

    phase: Phase
    operators: Collection[Any] | None = None

    def sees(self, func: Any) -> bool:
        """Whether the handler is called for an operator; asked once for each operator and mode."""
        return self.operators is None or func in self.operators

    def answer(self, call: OpCall) -> Any:
        """The result in the operator's place, or NotImplemented."""
        return NotImplemented

    def note(self, call: OpCall, result: Any) -> None:
        """The operator has run and has given `result`. Called also for an operator that was traced before."""

    def failed(self, call: OpCall, error: Exception) -> None:
        """The operator, or a handler behind this one, has raised."""


class DispatchMode(TorchDispatchMode):
    """Passes operators through handlers while entered, in one thread. Handlers of one phase run in the order in which they are given."""

    def __init__(self, handlers: Sequence[Handler]):
        super().__init__()
        self._handlers = sorted(handlers, key=lambda handler: handler.phase)
        self._begin = Phase.DRAW
        self._of: dict[tuple[Any, Phase], list[Handler]] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # torch.compile compiles no code of a trace, and asking it at each operator takes time

    @contextlib.contextmanager
    def from_phase(self, phase: Phase) -> Iterator[None]:
        """Operators that a handler calls within pass through `phase` and later phases."""
        before, self._begin = self._begin, phase
        try:
            with self:
                yield
        finally:
            self._begin = before

    def _handlers_of(self, func: Any) -> list[Handler]:
        found = self._of.get((func, self._begin))
        if found is None:
            found = self._of[func, self._begin] = [handler for handler in self._handlers
                                                   if handler.phase >= self._begin and handler.sees(func)]
        return found

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is _DEVICE and isinstance(args[0], FakeTensor):  # two of three calls; no handler has a use for it
            return torch.device("meta") if args[0].fake_mode.in_kernel_invocation else args[0].fake_device
        if not (handlers := self._handlers_of(func)):
            return func(*args, **(kwargs or {}))
        if (observer := sys.gettrace()) is None:
            return self._through(handlers, func, args, kwargs)
        sys.settrace(None)  # what runs below this line only traces the operator (world/reads/observer.py)
        try:
            return self._through(handlers, func, args, kwargs)
        finally:
            sys.settrace(observer)

    def _through(self, handlers: Sequence[Handler], func: OpOverload, args: tuple, kwargs: dict[str, Any] | None) -> Any:
        """Passes an operator through its handlers."""
        call, seen = OpCall(self, func, args, kwargs or {}), 0
        try:
            for handler in handlers:
                if call.again is not None and handler.phase < Phase.RECORD:
                    continue  # what these phases decide follows from the form of the call
                seen += call.again is None
                answer = handler.answer(call)
                if answer is not NotImplemented:
                    return answer
            result = call.run()
            call.made = tensors_in((result,), {})
            for handler in reversed(handlers):
                handler.note(call, result)
            return result
        except Exception as error:
            for handler in handlers[:seen][::-1]:
                handler.failed(call, error)
            raise
