"""Tensors that a trace must not meet: real ones in the place of traced ones, and those that no graph can follow."""
from __future__ import annotations

import contextlib
from typing import Any, Iterator, Mapping

import torch

from ...torch_api.modules import buffers_of, parameters_of
from ...torch_api.operators import schema_of
from ...torch_api.tracing import FakeTensor
from ..errors import Frame, error_at, writes_constant
from ..observe import patches
from ..observe.dispatch_mode import Handler, OpCall, Phase
from ..observe.stacks import user_stack
from .unfollowed_hooks import parameter_of_edge
from .paths import Place


class ForeignTensors(Handler):
    """Refuses, for one trace, what a graph would get silently wrong.

    That are real tensors in place of the traced ones (`foreign` describes each by its id), tensors of a module that is not among
    what was `reached`, tensors that are `excluded` (why and the hint, by id), explicit random generators, whose reseeding no graph
    can see, and writes to constants.
    """

    phase = Phase.CHECK

    def __init__(self, foreign: dict[int, str], reached: Mapping[int, tuple[Place, torch.Tensor]],
                 excluded: dict[int, tuple[str, str]]):
        self._foreign, self._reached, self._excluded = foreign, reached, excluded
        self._views: dict[int, torch.Tensor] = {}  # of real tensors, kept alive
        self.met: int | None = None  # the real tensor that the trace has ended at

    def is_watched(self, tensor: torch.Tensor) -> bool:
        """Each operator on the tensor has to be checked."""
        number = id(tensor)
        return number in self._foreign or number in self._excluded or number in self._views

    def answer(self, call: OpCall) -> Any:
        for leaf in call.leaves:
            if isinstance(leaf, torch.Generator):
                raise error_at(call.stack,
                               f"{call.func} draws from an explicit torch.Generator, which is not supported: the graph has "
                               "only one seed",
                               "draw from the default generator, or draw outside the step and pass the tensor in")
            if id(leaf) in self._excluded:
                why, hint = self._excluded[id(leaf)]
                raise error_at(call.stack, f"{call.func} reads {why}", hint)
            self.refuse(str(call.func), id(leaf), call.stack)
        if any(map(self._is_constant, call.written)):  # it would happen now, and never again
            raise writes_constant(call.stack, str(call.func))
        return NotImplemented

    def note(self, call: OpCall, result: Any) -> None:
        if call.again is None and call.func is not torch.ops.aten.lift_fresh.default \
                and any(r.alias_info is not None for r in schema_of(call.func).returns) and any(map(self._is_constant, call.aliased())):
            self._views.update((id(tensor), tensor) for tensor in call.made)

    def refuse(self, reader: str, number: int, stack: tuple[Frame, ...] = ()) -> None:
        """Raises where a tensor with the id `number` must not turn up in the trace."""
        if number in self._foreign:
            self.met = number
            raise error_at(stack, f"{reader} reads {self._foreign[number]} through a reference kept outside the "
                           "model and the optimizer, which the captured step would not follow",
                           "reach it through the model inside the step: model.parameters(), model.named_buffers()")

    @contextlib.contextmanager
    def refusing_inputs(self) -> Iterator[None]:
        """While entered, backward(inputs=…) and torch.autograd.grad() refuse real tensors, and gradient edges of real tensors:
        they would get no gradients."""
        run_backward = patches.ENGINE_RUN_BACKWARD.value()

        def run_checked(outputs: Any, gradients: Any, keep_graph: bool, create_graph: bool, inputs: Any, *args: Any,
                        **options: Any) -> Any:
            for given in inputs:
                self.refuse("autograd", id(given), user_stack()[0])
                self.refuse("autograd", id(parameter_of_edge(given)), user_stack()[0])
            return run_backward(outputs, gradients, keep_graph, create_graph, inputs, *args, **options)

        with patches.replaced({patches.ENGINE_RUN_BACKWARD: run_checked}):
            yield

    def refuse_stranger(self, module: torch.nn.Module) -> None:
        """A module whose tensors would be constants for ever, because nobody knows where it comes from."""
        for name, tensor in (*parameters_of(module).items(), *buffers_of(module).items()):
            if tensor is not None and not isinstance(tensor, FakeTensor) and id(tensor) not in self._reached:
                raise error_at(user_stack()[0], f"the step calls a {type(module).__qualname__} whose tensor {name!r} the "
                                                "capture cannot find: later changes would not be detected",
                               "store the module in a global, a closure, an attribute or a list, or make it part of the "
                               "model")

    def _is_constant(self, value: Any) -> bool:
        """A real tensor, or a view of one."""
        return isinstance(value, torch.Tensor) and (not isinstance(value, FakeTensor) or id(value) in self._views)
