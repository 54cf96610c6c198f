"""Iterations that come again, as those of a loop over microbatches do: Python runs for each of them, and is traced for a few.

An iteration reaches from the end of one backward() to the end of the next. When one has been traced, the calls of PyTorch's
functions that Python made in it are known, each with its arguments. From then on each call is compared with the one in its
place: the same function of the same numbers, and of tensors that stand to the iteration as those did, which are results of
the same calls of it or of the iteration before, the very same tensors, or others of the same form that were there before
the loop. Then nothing is traced: the call gives stand-ins of the form of the earlier results. Whatever Python does
between the calls, it does. When an iteration goes another way, the loop is over, and the graph has its iteration once, with
a note of how often it runs and of what it runs on (Repeat). What an earlier iteration gave has a node of its own where
it is used behind the loop.

What a traced iteration does is a function of what its calls are given only if the operators in it are; if all of them come
from calls that are seen, none from a hook, a mode or an autograd.Function that the user has written; if nobody asks for
values; and if it leaves autograd as it found it, and what it was given in the form that this had. One that does otherwise
does not repeat. A stand-in means nothing to whoever meets it elsewhere: the step is then traced again, each of its
iterations (CannotRepeat).
"""
from __future__ import annotations

import contextlib
import itertools
from typing import Any, Callable, Iterable, Iterator, NoReturn, Sequence

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.nn.modules import module as nn_module
from torch.overrides import TorchFunctionMode

from .draws import Draws
from .iterations import Call, Inner, Over, Repeat, Repeated, Traced, Way, between, is_view, of_iteration
from .known_values import KnownValues
from .memory import memory_of
from .operator_forms import Likeness, OperatorForms, tensors_in
from .torch_calls import COUNT_FROM_MEMORY, TELL_OF_FORM, copied, describe, describe_call, form_of, has_lists, modes, replaced, sequence, \
    surroundings

_BACKWARD, _DETACH = torch.Tensor.backward, torch.Tensor.detach
_SET_GRAD = torch._C._set_grad_enabled
_GRAD_FN = torch.Tensor.grad_fn.__get__
_THROUGH_AUTOGRAD = (_BACKWARD, torch.autograd.grad)
_OWN = ("torch", __name__.split(".")[0])  # whose functions run no Python of the user
_WITHOUT_GRADIENT = (torch.ops.aten.detach.default, torch.ops.aten._local_scalar_dense.default)


class CannotRepeat(Exception):
    """The step does something with a stand-in; it has to be traced without any."""


class _Unlike(Exception):
    """A call that is not the one in its place."""


class Microbatches(TorchFunctionMode):
    """Those of one trace. `parameters` are fakes; `draws` has their random numbers; within `stamped_as` operators
    come from where nodes did. What iterations that are not traced write to is not `known` any more."""

    def __init__(self, parameters: Sequence[torch.Tensor], modules: Iterable[torch.nn.Module], forms: OperatorForms,
                 draws: Draws, known: KnownValues,
                 stamped_as: Callable[[list[torch.fx.Node]], contextlib.AbstractContextManager], may_repeat: bool):
        super().__init__()
        self._parameters, self._numbers = parameters, set(map(id, parameters))
        self._forms, self._draws, self._known, self._stamped_as = forms, draws, known, stamped_as
        self._may, self._may_have_hooks = may_repeat, (*modules, *parameters, nn_module)
        self._has_node_of_autograd = False  # the step, which may put hooks there
        self._tracer: Any = None
        self._set_item: Any = None  # the function that it is while the step runs
        self._inside = False  # a call that is traced
        self._is_hoisting = False
        self._through_autograd = False  # a call of it
        self._met = 0  # operators
        self._last: Traced | None = None
        self._now: Traced | None = None
        self._like: Traced | None = None  # the one that others are compared with
        self._before: dict[int, Inner] = {}  # what the iteration before has made
        self._repeated: list[Repeated] = []
        self._open = Repeated([])  # the one that runs
        self._stand_ins: dict[int, torch.Tensor] = {}  # that have no node
        self._given: dict[int, torch.Tensor] = {}  # all of them, kept alive, so that ids stay theirs
        self._leaves: list[torch.Tensor] = []  # those that want gradients
        self._over: list[Over] = []
        self._unwritten: dict[int, torch.Tensor] = {}  # by memory: those of which a graph does not see what shares it
        self._detached: dict[int, torch.Tensor] = {}  # those with a node, and a gradient that autograd cannot follow
        self.repeats: list[Repeat] = []
        self.used = False  # a call has given stand-ins
        self._is_cut_off = False  # what a backward() would have to go through is among `_detached`
        self._failed = False

    # What the trace tells.

    def note_operator(self, is_function: bool, written: Sequence[torch.Tensor] = ()) -> None:
        """An operator is traced; `is_function`: what it gives, and the nodes that it leaves, follow from the form of its
        tensors and from its other arguments."""
        if self._unwritten and any(memory_of(tensor) in self._unwritten for tensor in written):
            self._fail()
        if self._now is not None:
            self._now.written += written
            self._now.plain &= self._inside and is_function

    def meet(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        """Before an operator is traced: its stand-ins get nodes. Raises if one means nothing outside of its iteration."""
        if self._like is not None and not self._is_hoisting:  # of no call that was seen
            self._end()
        self._met += 1
        if not self.used:
            return
        tensors = tensors_in(args, kwargs)
        if not all(map(self._has_node, tensors)) or torch._C._current_graph_task_id() != -1 and (
                self._is_cut_off or not self._through_autograd):
            self._fail()
        self._is_cut_off |= func not in _WITHOUT_GRADIENT and torch.is_grad_enabled() and any(id(t) in self._detached for t in tensors)

    def refuse_outputs(self, values: Iterable[Any]) -> None:
        """Raises if the step gives back a stand-in without a node."""
        if self._failed or not all(map(self._has_node, values)) or any(t.is_leaf and t.grad is not None for t in self._leaves):
            self._fail()

    def _has_node(self, value: Any) -> bool:
        """Whether it means something outside of its iteration: what an earlier iteration gave gets a node when it is used."""
        if id(value) not in self._stand_ins:
            return True
        for loop in self._over:
            if (found := loop.find(value)) is not None:
                self._set_node(value, self._node_of_iteration(loop.repeat, *found))
                self._unwritten[memory_of(value)] = value
                return True
        return False

    def _node_of_iteration(self, repeat: Repeat, node: torch.fx.Node, iteration: int) -> torch.fx.Node:
        nodes = repeat.each.setdefault(node, {})
        if iteration not in nodes:
            with self._tracer.graph.inserting_after(repeat.nodes[-1]):
                nodes[iteration] = self._tracer.graph.call_function(of_iteration, (node, iteration))
            nodes[iteration].meta.update(node.meta)
        return nodes[iteration]

    @contextlib.contextmanager
    def or_cannot_repeat(self) -> Iterator[None]:
        """While the trace is made: what goes wrong in one with stand-ins may go well without."""
        try:
            yield
        except Exception as error:
            if not (self.used or self._failed):
                raise
            raise CannotRepeat from error

    def _fail(self) -> NoReturn:
        self._failed = True  # whoever catches it
        raise CannotRepeat

    # Iterations that are traced.

    @contextlib.contextmanager
    def followed(self) -> Iterator[None]:
        """While the step runs."""
        if not self._may:
            yield
            return
        self._tracer, self._set_item, self._modes = get_proxy_mode().tracer, torch.Tensor.__setitem__, (modes()[0], False)
        with self:
            yield
        if self._like is not None:
            self._end()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self._like is not None:
            try:
                return self._compare(func, args, kwargs)
            except _Unlike:
                self._end()
        self._has_node_of_autograd |= func == _GRAD_FN
        if self.used and any(id(tensor) in self._given for tensor in tensors_in(args, kwargs)):
            return self._call_of_stand_ins(func, args, kwargs)
        result = self._call(func, args, kwargs)
        if func is _BACKWARD:
            self._end_of_traced()
        return result

    def _call(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        outer, self._through_autograd = self._through_autograd, func in _THROUGH_AUTOGRAD
        try:
            return func(*args, **kwargs) if self._now is None else self._trace(func, args, kwargs)
        finally:
            self._through_autograd = outer

    def _call_of_stand_ins(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call that is given some, which autograd knows nothing of; nor do they tell more than their form."""
        if func in _THROUGH_AUTOGRAD:
            self._fail()
        met = self._met
        result = self._call(func, args, kwargs)
        if met == self._met and not tensors_in((result,), {}) and func not in TELL_OF_FORM:
            self._fail()
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
                self._like, self._before, self._repeated, self._open = now, now.made, [], Repeated([])
                return
        self._now = Traced(self._gradients(), self._known.questions)

    def _gradients(self) -> dict[int, int]:
        return {id(p): id(p.grad) for p in self._parameters if p.grad is not None}

    def _end_of_graph(self) -> torch.fx.Node:
        return self._tracer.graph._root.prev

    def _node_of(self, tensor: Any) -> torch.fx.Node | None:
        """None of what has none: a real tensor, a stand-in."""
        slot = self._tracer.tensor_tracker.get(tensor) if isinstance(tensor, FakeTensor) and tensor.layout is torch.strided else None
        return None if slot is None else slot.proxy.node

    def _may_repeat(self, func: Callable, tensors: list[torch.Tensor]) -> bool:
        """Gradients reach nothing from outside of the iteration but parameters, and no Python of the user runs within a call."""
        return modes() == self._modes and all(self._node_of(t) is not None and not t.is_complex() and
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
        self._inside, streams, before = True, self._draws.streams, self._end_of_graph()
        try:
            result = func(*args, **kwargs)
        except BaseException:
            now.plain = False
            raise
        finally:
            self._inside = False
        call.nodes, call.streams = between(before, self._end_of_graph()), self._draws.streams - streams
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
                or result is None and call.func in (_BACKWARD, _SET_GRAD, self._set_item)
        call.kind = None if result is made[0] else type(result)
        call.made = made if call.kind is None else list(result)
        given, nodes = {id(tensor): number for number, tensor in enumerate(call.tensors)}, set(call.nodes)
        for number, tensor in enumerate(call.made):
            if tensor is None or id(tensor) in given:
                call.results.append(None if tensor is None else given[id(tensor)])
            elif self._node_of(tensor) not in nodes or id(tensor) in self._now.made or tensor.is_complex():
                return False
            else:
                call.results.append(Inner(len(self._now.calls), number))
                self._now.made[id(tensor)] = call.results[-1]
        return True

    # Iterations that are compared with a traced one.

    def _compare(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What a call gives if it is the one in its place."""
        like, now = self._like.calls, self._open
        number = len(now.calls)
        if number == len(like) or func != like[number].func:
            raise _Unlike
        call, key, tensors = like[number], [], []
        if not describe_call(args, kwargs, key, tensors) or len(tensors) != len(call.tensors):
            raise _Unlike
        if call.hoisted or key != call.key or surroundings() != call.around:
            return self._cut(call, args, kwargs, tensors)
        for slot, (tensor, known, place) in enumerate(zip(tensors, call.tensors, call.places)):
            if place is not None:
                if now.made.get(id(tensor)) is not place:
                    raise _Unlike
            elif tensor is not known or slot in call.carried:
                self._compare_outside(call, slot, tensor)
        if func is _SET_GRAD:
            func(*args, **kwargs)
        made = self._stand_ins_of(number, tensors) if call.results else []
        self._draws.streams += call.streams
        now.calls.append((call, copied(args), copied(kwargs), made) if call.has_lists else (call, args, kwargs, made))
        if func is _BACKWARD:
            self._end_of_repeated()
        return call.fact if not made else made[0] if call.kind is None else sequence(call.kind, made)

    def _compare_outside(self, call: Call, slot: int, tensor: torch.Tensor) -> None:
        """An argument from outside of the iteration that is another one than in the traced iteration, or was in one of these."""
        known, carried, before = call.tensors[slot], call.carried.get(slot), self._before.get(id(tensor))
        if form_of(tensor) != form_of(known) or id(known) in self._numbers:
            raise _Unlike
        if before is not None and (carried is before or carried is None and not self._repeated):
            call.carried[slot] = before
        elif before is None and carried is None and self._is_outside(tensor):
            self._open.outside[len(self._open.calls), slot] = tensor
        else:
            raise _Unlike

    def _is_outside(self, tensor: torch.Tensor) -> bool:
        """It was there before the loop, and no gradient goes through it."""
        return not tensor.requires_grad and not any(id(tensor) in made for made in (
            self._stand_ins, self._before, self._like.made, self._open.made, self._numbers)) and self._node_of(tensor) is not None

    def _stand_ins_of(self, number: int, tensors: list[torch.Tensor]) -> list[torch.Tensor | None]:
        """What the call gives: stand-ins, or what it was given itself."""
        if not self._open.stand_ins:
            self._make_stand_ins()
        return [tensors[made] if isinstance(made, int) else made for made in self._open.stand_ins[number]]

    def _make_stand_ins(self) -> None:
        """Those of a whole iteration, at once: so it takes a third of the time."""
        self.used = True
        made = self._forms.stand_ins(self._like.likes)
        numbers = dict(zip(map(id, made), made))
        self._stand_ins |= numbers
        self._given |= numbers
        self._leaves += itertools.compress(made, (like.requires_grad for like in self._like.likes))
        self._open.made.update(zip(numbers, self._like.made.values()))
        following = iter(made)
        self._open.stand_ins = [[next(following) if isinstance(result, Inner) else result for result in call.results]
                                for call in self._like.calls]

    def _cut(self, call: Call, args: tuple, kwargs: dict[str, Any], tensors: list[torch.Tensor]) -> Any:
        """`xs[i]`: views of tensors from outside, with other numbers in each iteration."""
        if not self._is_cut(call, tensors) or surroundings() != call.around:
            raise _Unlike
        result, made = self._hoist(call, args, kwargs)
        self._open.made.update(zip(map(id, made), call.results))
        self._open.cuts.update(zip(call.results, made))
        self._open.calls.append((call, args, kwargs, made))
        return result

    def _is_cut(self, call: Call, tensors: list[torch.Tensor]) -> bool:
        """Nothing but views of tensors from outside, in each iteration."""
        nodes = call.nodes
        return bool(nodes) and all(map(is_view, nodes)) and all(isinstance(result, Inner) for result in call.results) \
            and (call.hoisted or not self._repeated) and all(
                self._is_outside(tensor) if place is None else
                self._open.made.get(id(tensor)) is place and self._is_hoisted(self._open.calls[place.call])
                for tensor, place in zip(tensors, call.places))

    def _is_hoisted(self, done: tuple[Call, tuple, dict[str, Any], list[torch.Tensor | None]]) -> bool:
        """Whether an earlier call of this iteration is made before the loop, or is now."""
        call, args, kwargs, stand_ins = done
        tensors: list[torch.Tensor] = []
        if call.hoisted or not (describe_call(args, kwargs, [], tensors) and self._is_cut(call, tensors)):
            return call.hoisted
        for stand_in, tensor in zip(stand_ins, self._hoist(call, args, kwargs)[1]):
            self._give_node(stand_in, tensor)
        self._open.cuts.update(zip(call.results, stand_ins))
        return True

    def _hoist(self, call: Call, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, list[torch.Tensor]]:
        """Traces a call that is made before the loop; what it gives, and the tensors in it."""
        before = self._end_of_graph()
        self._is_hoisting = True
        try:
            result = call.func(*args, **kwargs)
        finally:
            self._is_hoisting = False
        made, nodes = [result] if call.kind is None else list(result), between(before, self._end_of_graph())
        if list(map(form_of, made)) != list(map(form_of, call.made)) or [n.target for n in nodes] != [n.target for n in call.nodes]:
            self._fail()
        call.hoisted = True
        self._open.cut_nodes += nodes
        return result, made

    def _end_of_repeated(self) -> None:
        if self._gradients() != self._like.gradients:
            self._fail()
        self._repeated.append(self._open)
        self._before, self._open = self._open.made, Repeated([])

    def _end(self) -> None:
        """The loop is over: Python does something else than it did at this place of an iteration."""
        like, self._like = self._like, None
        if self._repeated:
            self._note_repetition(like)
        self._trace_open()

    def _trace_open(self) -> None:
        """The calls of an iteration that does not come to its end: its stand-ins get nodes. No gradient goes through them."""
        real: dict[int, torch.Tensor] = {}
        self._draws.streams -= sum(call.streams for call, *_ in self._open.calls)
        for call, args, kwargs, made in self._open.calls:
            if call.hoisted or not call.results and call.func is not self._set_item:
                continue
            with torch.set_grad_enabled(call.around[0]), self._stamped_as(call.nodes):
                if call.around != surroundings():
                    self._fail()
                result = call.func(*replaced(args, real), **replaced(kwargs, real))
            for tensor, stand_in in zip((result,) if call.kind is None else tuple(result or ()), made):
                if stand_in is not None and id(stand_in) in self._stand_ins:
                    if stand_in.requires_grad or form_of(tensor) != form_of(stand_in):
                        self._fail()
                    real[id(stand_in)] = tensor
                    self._give_node(stand_in, tensor)

    def _give_node(self, stand_in: torch.Tensor, tensor: torch.Tensor) -> None:
        """The node of `tensor`, with which others may share memory."""
        self._set_node(stand_in, self._node_of(tensor))
        if tensor._is_view():
            self._unwritten[memory_of(stand_in)] = stand_in

    def _set_node(self, stand_in: torch.Tensor, node: torch.fx.Node) -> None:
        slot = next(iter(self._tracer.tensor_tracker.values()))
        self._tracer.tensor_tracker[stand_in] = type(slot)(type(slot.proxy)(node, self._tracer), None)
        del self._stand_ins[id(stand_in)]
        if stand_in.requires_grad:
            self._detached[id(stand_in)] = stand_in

    def _note_repetition(self, like: Traced) -> None:
        cut = [node for call in like.calls if call.hoisted for node in call.nodes]
        apart = set(cut)
        body = [node for call in like.calls for node in call.nodes if node not in apart]
        for node in (*cut, *(node for one in self._repeated for node in one.cut_nodes)):
            body[0].prepend(node)
        made = {place: tensor for call in like.calls for place, tensor in zip(call.results, call.made) if isinstance(place, Inner)}
        ways = self._ways(like, made)
        inside = set(body)
        written = set(map(memory_of, like.written))
        if any(memory_of(tensor) in written for way in ways for tensor in way.tensors()) \
                or any(self._node_of(tensor) in inside for way in ways for tensor in way.before_the_loop()):
            self._fail()
        repeat = Repeat(body, len(self._repeated) + 1, sum(call.streams for call in like.calls), [
            (self._node_of(way.known), [self._node_of(t) for t in (way.known, *way.others)]) for way in ways if way.next is None],
            [(self._node_of(way.known), self._node_of(way.next)) for way in ways if way.next is not None])
        self.repeats.append(repeat)
        self._known.forget(like.written)
        self._rename(repeat, like, made, {memory_of(tensor) for way in ways for tensor in way.tensors()})

    def _rename(self, repeat: Repeat, like: Traced, made: dict[Inner, torch.Tensor], varying: set[int]) -> None:
        """Behind the loop, the nodes are what the last iteration made of them. `varying`: the memory of tensors from outside that are
        others in each."""
        invariant = {memory_of(t) for call in like.calls for t, place in zip(call.tensors, call.places) if place is None} - varying
        traced = {id(tensor): tensor for call in like.calls if not call.hoisted
                  for place, tensor in zip(call.results, call.made) if isinstance(place, Inner)}
        self._stand_ins |= traced
        self._given |= traced
        nodes = {like.made[number]: self._node_of(tensor) for number, tensor in traced.items() if memory_of(tensor) not in invariant}
        *before, last = self._repeated
        self._over.append(Over(repeat, nodes, [like.made, *(one.made for one in before)]))
        for call, _, _, tensors in last.calls:
            for place, tensor in zip(call.results, tensors):
                if place in nodes:
                    self._set_node(tensor, nodes[place])
                    if memory_of(made[place]) in varying:
                        self._unwritten[memory_of(tensor)] = tensor

    def _ways(self, like: Traced, made: dict[Inner, torch.Tensor]) -> list[Way]:
        """Of each tensor that is another one in each iteration, which ones."""
        found: dict[torch.fx.Node, Way] = {}
        changing = set().union(*(one.outside for one in self._repeated))
        for number, call in enumerate(like.calls):
            for slot, (known, place) in enumerate(zip(call.tensors, call.places)):
                if place is not None or call.hoisted:
                    continue
                others = [one.outside.get((number, slot), known) for one in self._repeated] if (number, slot) in changing else []
                way = Way(known, others, made.get(call.carried.get(slot)))
                if not found.setdefault(self._node_of(known), way).is_same(way):
                    self._fail()
        cuts = [Way(tensor, [one.cuts[place] for one in self._repeated], None) for place, tensor in made.items()
                if like.calls[place.call].hoisted]
        return [way for way in (*found.values(), *cuts) if way.next is not None or any(t is not way.known for t in way.others)]


def _runs_python(tensors: list[torch.Tensor]) -> bool:
    """Whether an autograd.Function of the user is in the graph that these come from."""
    nodes = {tensor.grad_fn: None for tensor in tensors if tensor.grad_fn is not None}
    todo = list(nodes)
    for node in todo:
        if isinstance(node, torch.autograd.function.BackwardCFunction) and node._forward_cls.__module__.split(".")[0] not in _OWN:
            return True
        following = [other for other, _ in node.next_functions if other is not None and other not in nodes]
        nodes.update(dict.fromkeys(following))
        todo += dict.fromkeys(following)
    return False


def _has_hooks(owner: Any) -> bool:
    """Of a module, a parameter, or all modules: Python that backward() runs."""
    return any(getattr(owner, name, None) for name in ("_backward_hooks", "_backward_pre_hooks", "_post_accumulate_grad_hooks",
                                                       "_global_backward_hooks", "_global_backward_pre_hooks"))
