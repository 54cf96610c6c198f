"""Iterations that come again, as those of a loop over microbatches do: Python runs for each of them, and is traced for a few.

An iteration reaches from the end of one backward() to the end of the next. When one has been traced, the calls of PyTorch's
functions that Python made in it are known, each with its arguments. From then on each call is compared with the one in its
place: the same function of the same numbers, and of tensors that stand to the iteration as those did, which are results of
the same calls of it or of the iteration before, the very same tensors, or others of the same form that were there before
the loop. Then nothing is traced: the call gives placeholders of the form of the earlier results. Whatever Python does
between the calls, it does. When an iteration goes another way, the loop is over, and the graph has its iteration once, with
a note of how often it runs and of what it runs on (Repeat). What an earlier iteration gave has a node of its own where
it is used behind the loop.

What a traced iteration does is a function of what its calls are given only if the operators in it are; if all of them come
from calls that are seen, none from a hook, a mode or an autograd.Function that the user has written; if nobody asks for
values; and if it leaves autograd as it found it, and what it was given in the form that this had. One that does otherwise
does not repeat. A placeholder means nothing to whoever meets it elsewhere: the step is then traced again, each of its
iterations (CannotRepeat).
"""
from __future__ import annotations

import contextlib
import dataclasses
from typing import Any, Callable, Iterable, Iterator, Sequence

import torch
import torch.fx
from torch.nn.modules import module as nn_module

from ...torch_api.autograd import current_graph_task_id, forward_class_of, set_grad_enabled
from ...torch_api.modules import BACKWARD_HOOKS
from ...torch_api.operators import OpOverload
from ...torch_api.tracing import FakeTensor, get_proxy_mode
from ..observe.dispatch_mode import Handler, OpCall, Phase, tensors_in
from ..observe.function_mode import FunctionPhase
from ..observe.operator_forms import Likeness, OperatorForms
from ..observe.torch_calls import COUNT_FROM_MEMORY, TELL_OF_FORM, describe, describe_call, form_of, has_lists, modes, surroundings
from ..ops.draws import Draws
from ..values.known_values import MADE_OF_NUMBERS, KnownValues, hidden_writes
from .iterations import Call, Inner, Repeat, Traced, between
from .loop import Loop, Unlike
from .placeholders import CannotRepeat, Placeholders

_BACKWARD, _DETACH = torch.Tensor.backward, torch.Tensor.detach
_GRAD_FN = torch.Tensor.grad_fn.__get__
_THROUGH_AUTOGRAD = (_BACKWARD, torch.autograd.grad)
_OWN = ("torch", __name__.split(".")[0])  # whose functions run no Python of the user
# What they leave in a graph follows from their arguments as well, here where none but integers are an index.
_PLAIN = {*MADE_OF_NUMBERS, torch.ops.aten.empty, torch.ops.aten.empty_strided, torch.ops.aten.to, torch.ops.aten.lift_fresh,
          torch.ops.aten.silu_backward}
_INDEXED = {torch.ops.aten.index, torch.ops.aten.index_put, torch.ops.aten.index_put_}
_WITHOUT_GRADIENT = (torch.ops.aten.detach.default, torch.ops.aten._local_scalar_dense.default)


@dataclasses.dataclass(frozen=True)
class TracedOperators:
    """What follows the operators of a trace: the forms that came before, its random numbers, what values it knows, and
    `stamped_as`, within which operators come from where nodes did."""

    forms: OperatorForms
    draws: Draws
    known: KnownValues
    stamped_as: Callable[[list[torch.fx.Node]], contextlib.AbstractContextManager]


class Microbatches(Handler):
    """Those of one trace. `parameters` are fakes. What iterations that are not traced write to is not known any more."""

    phase = Phase.ITERATION
    function_phase = FunctionPhase.ITERATION

    def __init__(self, parameters: Sequence[torch.Tensor], modules: Iterable[torch.nn.Module], operators: TracedOperators, may_repeat: bool):
        self._parameters, self._numbers = parameters, set(map(id, parameters))
        self._forms, self._draws, self._known, self._stamped_as = operators.forms, operators.draws, operators.known, operators.stamped_as
        self._may, self._may_have_hooks = may_repeat, (*modules, *parameters, nn_module)
        self._has_node_of_autograd = False  # the step, which may put hooks there
        self._set_item: Any = None  # the function that it is while the step runs
        self._inside = False  # a call that is traced
        self._through_autograd = False  # a call of it
        self._met = 0  # operators
        self._last: Traced | None = None
        self._now: Traced | None = None
        self._loop: Loop | None = None  # the one that runs
        self._placeholders = Placeholders(operators.forms)
        self._is_cut_off = False  # a backward() would have to go through placeholders
        self.repeats: list[Repeat] = []

    # What the trace tells.

    def note_operator(self, is_function: bool, written: Sequence[torch.Tensor] = ()) -> None:
        """An operator is traced; `is_function`: what it gives, and the nodes that it leaves, follow from the form of its
        tensors and from its other arguments."""
        if self._placeholders.share_with_unseen(written):
            self._placeholders.fail()
        if self._now is not None:
            self._now.written += written
            self._now.plain &= self._inside and is_function

    def answer(self, call: OpCall) -> Any:
        self._meet(call.func, call.args, call.kwargs)
        return NotImplemented

    def note(self, call: OpCall, result: Any) -> None:
        if call.func.namespace != "prim":
            self.note_operator(call.again is not None or self._is_plain(call.func, call.args), [*call.written, *hidden_writes(call.func, call.args)])

    def _is_plain(self, func: OpOverload, args: tuple) -> bool:
        """What the operator gives, and leaves in a graph, follows from the form of its tensors and its other arguments."""
        return self._forms.is_function(func) or func.overloadpacket in _PLAIN or func.overloadpacket in _INDEXED and not any(
            index is not None and index.dtype in (torch.bool, torch.uint8) for index in args[1])

    def _meet(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        """Before an operator is traced: its placeholders get nodes. Raises if one means nothing outside of its iteration."""
        if self._loop is not None and not self._loop.is_hoisting:  # of no call that was seen
            self._end()
        self._met += 1
        if not self._placeholders.are_used:
            return
        tensors = tensors_in(args, kwargs)
        if not all(map(self._placeholders.means_something, tensors)) or current_graph_task_id() != -1 and (
                self._is_cut_off or not self._through_autograd):
            self._placeholders.fail()
        self._is_cut_off |= func not in _WITHOUT_GRADIENT and torch.is_grad_enabled() and self._placeholders.are_detached(tensors)

    def refuse_outputs(self, values: Iterable[Any]) -> None:
        """Raises if the step gives back a placeholder that means nothing there."""
        if self._placeholders.failed or not all(map(self._placeholders.means_something, values)) or self._placeholders.have_gradients():
            self._placeholders.fail()

    @contextlib.contextmanager
    def or_cannot_repeat(self) -> Iterator[None]:
        """While the trace is made: what goes wrong in one with placeholders may go well without."""
        try:
            yield
        except Exception as error:
            if not (self._placeholders.are_used or self._placeholders.failed):
                raise
            raise CannotRepeat from error
        finally:
            self._placeholders.forget()

    # Iterations that are traced.

    @contextlib.contextmanager
    def followed(self) -> Iterator[None]:
        """While the step runs."""
        self._placeholders.tracer, self._set_item, self._modes = get_proxy_mode().tracer, torch.Tensor.__setitem__, (modes()[0], False)
        yield
        if self._loop is not None:
            self._end()

    def call(self, func: Callable, args: tuple, kwargs: dict[str, Any], below: Callable) -> Any:
        """As FunctionHandler.call; no phase is below this one."""
        if not self._may:
            return func(*args, **kwargs)
        if self._loop is not None:
            try:
                return self._loop.compare(func, args, kwargs)
            except Unlike:
                self._end()
        self._has_node_of_autograd |= func == _GRAD_FN
        if self._placeholders.are_used and any(map(self._placeholders.has, tensors_in(args, kwargs))):
            return self._call_of_placeholders(func, args, kwargs)
        result = self._call(func, args, kwargs)
        if func is _BACKWARD:
            self._end_of_traced()
        return result

    def is_computed(self, tensor: torch.Tensor) -> bool:
        """Whether it is one floating number that no call knows before it begins."""
        return isinstance(tensor, FakeTensor) and tensor.is_floating_point() and tensor.numel() == 1 and tensor.dim() == 0 \
            and (self._placeholders.has(tensor) or self._placeholders.node_of(tensor) is not None and not self._known.knows(tensor))

    def _call(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        outer, self._through_autograd = self._through_autograd, func in _THROUGH_AUTOGRAD
        try:
            return func(*args, **kwargs) if self._now is None else self._trace(func, args, kwargs)
        finally:
            self._through_autograd = outer

    def _call_of_placeholders(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call that is given some, which autograd knows nothing of; nor do they tell more than their form."""
        if func in _THROUGH_AUTOGRAD:
            self._placeholders.fail()
        met = self._met
        result = self._call(func, args, kwargs)
        if met == self._met and not tensors_in((result,), {}) and func not in TELL_OF_FORM:
            self._placeholders.fail()
        return result

    def _end_of_traced(self) -> None:
        now, last = self._now, self._last
        self._last = self._now = None
        if now is not None and now.plain and now.gradients == self._gradients() \
                and now.questions == self._known.questions and not now.has_changed_forms() \
                and not self._has_node_of_autograd and not any(map(_has_hooks, self._may_have_hooks)):
            self._last = now
            if last is not None and now.looks_like(last):
                now.likes = [Likeness.of(tensor) for call in now.calls for result, tensor in zip(call.results, call.made)
                             if isinstance(result, Inner)]
                self._loop = Loop(now, self._placeholders, self._draws, self._numbers, self._gradients)
                return
        self._now = Traced(self._gradients(), self._known.questions)

    def _gradients(self) -> dict[int, int]:
        return {id(p): id(p.grad) for p in self._parameters if p.grad is not None}

    def _end(self) -> None:
        """The loop is over: Python does something else than it did at this place of an iteration."""
        loop, self._loop = self._loop, None
        if (repeat := loop.repetition()) is not None:
            self.repeats.append(repeat)
            self._known.forget(loop.like.written)
        loop.trace_open(self._stamped_as)

    def _may_repeat(self, func: Callable, tensors: list[torch.Tensor]) -> bool:
        """Gradients reach nothing from outside of the iteration but parameters, and no Python of the user runs within a call."""
        return modes() == self._modes and all(self._placeholders.node_of(t) is not None and not t.is_complex() and
                   (not t.requires_grad or id(t) in self._now.made or id(t) in self._numbers or func is _DETACH
                    or not torch.is_grad_enabled()) for t in tensors)

    def _trace(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call that is traced, and remembered."""
        now, tensors, key = self._now, [], []
        if not now.plain or getattr(func, "__name__", "") in COUNT_FROM_MEMORY or not describe_call(args, kwargs, key, tensors) \
                or not self._may_repeat(func, tensors) or func in _THROUGH_AUTOGRAD and _runs_python(tensors):
            now.plain = False
            return func(*args, **kwargs)
        call = Call(func, surroundings(), key, has_lists(key), tensors, [now.made.get(id(t)) for t in tensors])
        for tensor, place in zip(tensors, call.places):
            if place is None:
                now.forms.setdefault(id(tensor), (tensor, form_of(tensor)))
        self._inside, streams, before = True, self._draws.streams, self._placeholders.last_node()
        try:
            result = func(*args, **kwargs)
        except BaseException:
            now.plain = False
            raise
        finally:
            self._inside = False
        call.nodes, call.streams = between(before, self._placeholders.last_node()), self._draws.streams - streams
        now.plain &= streams > 0 or not call.streams  # the first draw of a step counts it
        now.plain &= self._note_results(call, result)
        now.calls.append(call)
        return result

    def _note_results(self, call: Call, result: Any) -> bool:
        """Whether nothing is among them that may be another thing in another iteration."""
        made = tensors_in((result,), {})
        if not made:
            call.fact = result
            return call.func in TELL_OF_FORM and describe([result], [], []) \
                or result is None and call.func in (_BACKWARD, set_grad_enabled, self._set_item)
        call.kind = None if result is made[0] else type(result)
        call.made = made if call.kind is None else list(result)
        given, nodes = {id(tensor): number for number, tensor in enumerate(call.tensors)}, set(call.nodes)
        for number, tensor in enumerate(call.made):
            if tensor is None or id(tensor) in given:
                call.results.append(None if tensor is None else given[id(tensor)])
            elif self._placeholders.node_of(tensor) not in nodes or id(tensor) in self._now.made or tensor.is_complex():
                return False
            else:
                call.results.append(Inner(len(self._now.calls), number))
                self._now.made[id(tensor)] = call.results[-1]
        return True


def _runs_python(tensors: list[torch.Tensor]) -> bool:
    """Whether an autograd.Function of the user is in the graph that these come from."""
    nodes = {tensor.grad_fn: None for tensor in tensors if tensor.grad_fn is not None}
    todo = list(nodes)
    for node in todo:
        if isinstance(node, torch.autograd.function.BackwardCFunction) and forward_class_of(node).__module__.split(".")[0] not in _OWN:
            return True
        following = [other for other, _ in node.next_functions if other is not None and other not in nodes]
        nodes.update(dict.fromkeys(following))
        todo += dict.fromkeys(following)
    return False


def _has_hooks(owner: Any) -> bool:
    """Of a module, a parameter, or all modules: Python that backward() runs."""
    return any(getattr(owner, name, None) for name in BACKWARD_HOOKS)
