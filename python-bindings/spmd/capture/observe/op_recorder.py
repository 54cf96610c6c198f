"""Where each captured op comes from: module path, phase and the user's Python line.

PyTorch's own annotations give almost nothing for a step that calls backward() itself, so each operator call is stamped; the
tracer copies the stamp to the node that it makes.
"""
from __future__ import annotations

import collections
import contextlib
import operator
from typing import Callable, ContextManager, Iterable, Iterator, NamedTuple, Sequence

import torch
import torch.fx
import torch.fx.traceback as fx_traceback
from torch.nn.modules import module as nn_module

from ...torch_api.autograd import current_autograd_node, current_graph_task_id, get_sequence_nr, sequence_nr_of
from ..errors import Frame
from .dispatch_mode import Handler, OpCall, Phase
from .stacks import user_stack


class Provenance(NamedTuple):
    """The stamp of one node. `seed` marks the gradient that backward() starts from."""

    phase: str
    module: str | None
    stack: tuple[Frame, ...]
    seed: bool = False


def provenance(node: torch.fx.Node) -> Provenance:
    """The stamp of a node. A node that the tracer itself made has none, and counts as forward."""
    return (node.meta.get("custom") or {}).get("spmd") or Provenance("forward", None, ())


class _Recomputation(NamedTuple):
    """A function that backward() runs again. `task`: the running backward(); `stack`: the user's frames of the first run's call, which
    stand for the `depth` frames that are around the second run."""

    task: int
    stack: tuple[Frame, ...]
    depth: int


class LastOperator(Handler):
    """The operator that a trace has met last, for errors: its name and the user's lines."""

    phase = Phase.LAST

    def __init__(self) -> None:
        self.name: str | None = None
        self.stack: tuple[Frame, ...] = ()

    def answer(self, call: OpCall) -> object:
        if call.func.namespace != "prim":  # reading .device and the like
            self.name, self.stack = str(call.func), call.stack
        return NotImplemented


class OpRecorder(Handler):
    """Stamps each op of one trace. `parameters` are fakes."""

    phase = Phase.RECORD

    def __init__(self, modules: Sequence[tuple[str, torch.nn.Module]], parameters: list[torch.Tensor]):
        self._module_names: dict[int, str] = {}
        for name, module in modules:
            self._module_names.setdefault(id(module), name)
        self.called: set[int] = set()  # ids of modules
        self._parameters = parameters
        self._modules: list[str] = []
        self._in_optimizer = False
        self.updates: collections.Counter[int] = collections.Counter()  # step() of each optimizer, by its id
        self._backward_seen = False
        self._forward_of: dict[int, tuple[str | None, tuple[Frame, ...]]] = {}  # autograd sequence number -> its op
        self._from_gradients: dict[int, torch.Tensor] = {}  # what the step computed from gradients, kept alive
        self._earlier: Iterator[Provenance] | None = None
        self._recomputation: _Recomputation | None = None
        self.optimizer_stack: tuple[Frame, ...] = ()  # of the last op of an optimizer

    @contextlib.contextmanager
    def tracking(self, refuse_stranger: Callable[[torch.nn.Module], None], register_step_hooks: Callable[..., list]) -> Iterator[None]:
        """While entered, follows which module runs and whether an optimizer does. `refuse_stranger` gets each module that is called
        and is none of these; `register_step_hooks` calls hooks before and after an optimizer's step()."""

        def enter_module(module, inputs):
            self.called.add(id(module))
            if id(module) in self._module_names:
                self._modules.append(self._module_names[id(module)])
            else:
                refuse_stranger(module)

        def leave_module(module, inputs, output):
            if id(module) in self._module_names and self._modules:
                self._modules.pop()

        def set_in_optimizer(value):
            def hook(optimizer, *unused):
                self._in_optimizer = value
                self.updates[id(optimizer)] += value
            return hook

        handles = [nn_module.register_module_forward_pre_hook(enter_module),
                   nn_module.register_module_forward_hook(leave_module, always_call=True),
                   *register_step_hooks(set_in_optimizer(True), set_in_optimizer(False))]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def place(self) -> Callable[[], ContextManager[None]]:
        """Notes the module that runs, and the user's lines. While the result's context is entered in backward(), operators come from
        there."""
        modules, stack = list(self._modules), self._stack_of_first_run(user_stack()[0])

        @contextlib.contextmanager
        def entered() -> Iterator[None]:
            saved, around = (self._modules, self._recomputation), list(user_stack()[0])
            while around and around[-1].file == contextlib.__file__:  # what enters this context
                around.pop()
            self._modules, self._recomputation = list(modules), _Recomputation(current_graph_task_id(), stack, len(around))
            try:
                yield
            finally:
                self._modules, self._recomputation = saved
        return entered

    def _stack_of_first_run(self, stack: tuple[Frame, ...]) -> tuple[Frame, ...]:
        again = self._recomputation
        return stack if again is None else (*again.stack, *stack[again.depth:])

    def answer(self, call: OpCall) -> object:
        call.stamp = self.stamp(call)
        if call.again is None:
            fx_traceback.current_meta["custom"] = {"spmd": call.stamp}
        return NotImplemented

    def note(self, call: OpCall, result: object) -> None:
        if call.stamp.phase == "optimizer":
            parameters = set(map(id, self._parameters))
            self._from_gradients.update((id(t), t) for t in call.made if id(t) not in parameters)

    @contextlib.contextmanager
    def stamped_as(self, nodes: Iterable[torch.fx.Node]) -> Iterator[None]:
        """While entered, operators come from where these nodes did, one after the other."""
        self._earlier = (provenance(node) for node in nodes if node.target is not operator.getitem)
        try:
            yield
        finally:
            self._earlier = None

    def stamp(self, call: OpCall) -> Provenance:
        """Where a call comes from."""
        if self._earlier is not None:
            return next(self._earlier)
        if current_graph_task_id() != -1:
            self._backward_seen = True
            if self._recomputation is not None and self._recomputation.task == current_graph_task_id():
                return self._forward_stamp("backward", self._stack_of_first_run(call.stack))
            return self._backward_stamp(call.stack)
        if call.caller == "seed":
            self._backward_seen = True
            return Provenance("backward", None, call.stack, seed=True)
        if self._in_optimizer or call.caller == "optimizer" or self._reads_gradient(call.leaves):
            if self._in_optimizer:
                self.optimizer_stack = call.stack
            return Provenance("optimizer", None, call.stack)
        return self._forward_stamp("forward", call.stack)

    def _forward_stamp(self, phase: str, stack: tuple[Frame, ...]) -> Provenance:
        """An op of the module that runs."""
        module = self._modules[-1] if self._modules else None
        # The first op under a sequence number made the autograd node; non-differentiable ops after it share it.
        self._forward_of.setdefault(get_sequence_nr() - 1, (module, stack))
        return Provenance(phase, module, stack)

    def _backward_stamp(self, stack: tuple[Frame, ...]) -> Provenance:
        """A backward op belongs to the module and the line of the forward op it differentiates."""
        node = current_autograd_node()
        module, forward_stack = self._forward_of.get(sequence_nr_of(node), (None, stack)) if node else (None, stack)
        return Provenance("backward", module, forward_stack)

    def _reads_gradient(self, leaves: list) -> bool:
        """Handmade clipping and gradient scaling, outside the optimizer: it works on .grad, or on what came from it."""
        if not self._backward_seen or self._modules:
            return False
        gradients = {id(p.grad) for p in self._parameters if p.grad is not None}
        return any(id(leaf) in gradients or id(leaf) in self._from_gradients for leaf in leaves)
