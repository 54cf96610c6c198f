"""A loop whose iterations are compared with a traced one, call by call, and not traced (microbatches.py)."""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Mapping

import torch
import torch.fx

from ...torch_api.autograd import set_grad_enabled
from ..observe.memory import memory_of
from ..observe.torch_calls import copied, describe_call, form_of, replaced, sequence, surroundings
from ..ops.draws import Draws
from .iterations import Call, Inner, Over, Repeat, Repeated, Traced, Way, between, is_view
from .placeholders import Placeholders

_BACKWARD = torch.Tensor.backward


class Unlike(Exception):
    """A call that is not the one in its place."""


class Loop:
    """One that runs, whose iterations may be as `like`. `parameters`: their ids; `gradients` gives those that they have."""

    def __init__(self, like: Traced, placeholders: Placeholders, draws: Draws, parameters: set[int], gradients: Callable[[], Mapping[int, int]]):
        self.like, self._placeholders, self._draws, self._parameters, self._gradients = like, placeholders, draws, parameters, gradients
        self._before = like.made  # what the iteration before has made
        self._repeated: list[Repeated] = []
        self._open = Repeated()  # the one that runs
        self.is_hoisting = False  # a call is traced that is made before the loop

    def compare(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What a call gives if it is the one in its place. Raises Unlike if not: then the loop is over."""
        like, now = self.like.calls, self._open
        number = len(now.calls)
        if number == len(like) or func != like[number].func:
            raise Unlike
        call, key, tensors = like[number], [], []
        if not describe_call(args, kwargs, key, tensors) or len(tensors) != len(call.tensors):
            raise Unlike
        if call.hoisted or key != call.key or surroundings() != call.around:
            return self._cut(call, args, kwargs, tensors)
        for slot, (tensor, known, place) in enumerate(zip(tensors, call.tensors, call.places)):
            if place is not None:
                if now.made.get(id(tensor)) is not place:
                    raise Unlike
            elif tensor is not known or slot in call.carried:
                self._compare_outside(call, slot, tensor)
        if func is set_grad_enabled:
            func(*args, **kwargs)
        made = self._results(number, tensors) if call.results else []
        self._draws.streams += call.streams
        now.calls.append((call, copied(args), copied(kwargs), made) if call.has_lists else (call, args, kwargs, made))
        if func is _BACKWARD:
            self._end_of_iteration()
        return call.fact if not made else made[0] if call.kind is None else sequence(call.kind, made)

    def _compare_outside(self, call: Call, slot: int, tensor: torch.Tensor) -> None:
        """An argument from outside of the iteration that is another one than in the traced iteration, or was in one of these."""
        known, carried, before = call.tensors[slot], call.carried.get(slot), self._before.get(id(tensor))
        if form_of(tensor) != form_of(known) or id(known) in self._parameters:
            raise Unlike
        if before is not None and (carried is before or carried is None and not self._repeated):
            call.carried[slot] = before
        elif before is None and carried is None and self._is_outside(tensor):
            self._open.outside[len(self._open.calls), slot] = tensor
        else:
            raise Unlike

    def _is_outside(self, tensor: torch.Tensor) -> bool:
        """It was there before the loop, and no gradient goes through it."""
        return not tensor.requires_grad and not self._placeholders.lacks_node(tensor) and self._placeholders.node_of(tensor) is not None \
            and not any(id(tensor) in made for made in (self._before, self.like.made, self._open.made, self._parameters))

    def _results(self, number: int, tensors: list[torch.Tensor]) -> list[torch.Tensor | None]:
        """What the call gives: placeholders, or what it was given itself."""
        now = self._open
        if not now.results:
            made = self._placeholders.make(self.like.likes)
            now.made.update(zip(made, self.like.made.values()))
            following = iter(made.values())
            now.results = [[next(following) if isinstance(result, Inner) else result for result in call.results]
                           for call in self.like.calls]
        return [tensors[made] if isinstance(made, int) else made for made in now.results[number]]

    def _end_of_iteration(self) -> None:
        if self._gradients() != self.like.gradients:
            self._placeholders.fail()
        self._repeated.append(self._open)
        self._before, self._open = self._open.made, Repeated()

    # Calls that are made before the loop.

    def _cut(self, call: Call, args: tuple, kwargs: dict[str, Any], tensors: list[torch.Tensor]) -> Any:
        """`xs[i]`: views of tensors from outside, with other numbers in each iteration."""
        if not self._is_cut(call, tensors) or surroundings() != call.around:
            raise Unlike
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
        call, args, kwargs, placeholders = done
        tensors: list[torch.Tensor] = []
        if call.hoisted or not (describe_call(args, kwargs, [], tensors) and self._is_cut(call, tensors)):
            return call.hoisted
        for placeholder, tensor in zip(placeholders, self._hoist(call, args, kwargs)[1]):
            self._placeholders.give_node(placeholder, tensor)
        self._open.cuts.update(zip(call.results, placeholders))
        return True

    def _hoist(self, call: Call, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, list[torch.Tensor]]:
        """Traces a call that is made before the loop; what it gives, and the tensors in it."""
        before = self._placeholders.last_node()
        self.is_hoisting = True
        try:
            result = call.func(*args, **kwargs)
        finally:
            self.is_hoisting = False
        made, nodes = [result] if call.kind is None else list(result), between(before, self._placeholders.last_node())
        if list(map(form_of, made)) != list(map(form_of, call.made)) or [n.target for n in nodes] != [n.target for n in call.nodes]:
            self._placeholders.fail()
        call.hoisted = True
        self._open.cut_nodes += nodes
        return result, made

    # The end of the loop.

    def trace_open(self, stamped_as: Callable[[list[torch.fx.Node]], contextlib.AbstractContextManager]) -> None:
        """The calls of an iteration that does not come to its end: its placeholders get nodes. No gradient goes through them."""
        real: dict[int, torch.Tensor] = {}
        self._draws.streams -= sum(call.streams for call, *_ in self._open.calls)
        for call, args, kwargs, made in self._open.calls:
            if call.hoisted or not call.results and not call.nodes:
                continue
            with torch.set_grad_enabled(call.around[0]), stamped_as(call.nodes):
                if call.around != surroundings():
                    self._placeholders.fail()
                result = call.func(*replaced(args, real), **replaced(kwargs, real))
            for tensor, placeholder in zip((result,) if call.kind is None else tuple(result or ()), made):
                if placeholder is not None and self._placeholders.lacks_node(placeholder):
                    if placeholder.requires_grad or form_of(tensor) != form_of(placeholder):
                        self._placeholders.fail()
                    real[id(placeholder)] = tensor
                    self._placeholders.give_node(placeholder, tensor)

    def repetition(self) -> Repeat | None:
        """How often the traced iteration runs, of what; None: once. From then on its nodes are the last iteration's."""
        if not self._repeated:
            return None
        like, node_of = self.like, self._placeholders.node_of
        cut = [node for call in like.calls if call.hoisted for node in call.nodes]
        apart = set(cut)
        body = [node for call in like.calls for node in call.nodes if node not in apart]
        for node in (*cut, *(node for one in self._repeated for node in one.cut_nodes)):
            body[0].prepend(node)
        made = {place: tensor for call in like.calls for place, tensor in zip(call.results, call.made) if isinstance(place, Inner)}
        ways = self._ways(made)
        inside, written = set(body), set(map(memory_of, like.written))
        if any(memory_of(tensor) in written for way in ways for tensor in way.tensors()) \
                or any(node_of(tensor) in inside for way in ways for tensor in way.before_the_loop()):
            self._placeholders.fail()
        repeat = Repeat(body, len(self._repeated) + 1, sum(call.streams for call in like.calls), [
            (node_of(way.known), [node_of(t) for t in (way.known, *way.others)]) for way in ways if way.next is None],
            [(node_of(way.known), node_of(way.next)) for way in ways if way.next is not None])
        self._rename(repeat, made, {memory_of(tensor) for way in ways for tensor in way.tensors()})
        return repeat

    def _rename(self, repeat: Repeat, made: dict[Inner, torch.Tensor], varying: set[int]) -> None:
        """Behind the loop, the nodes are what the last iteration made of them. `varying`: the memory of tensors from outside that are
        others in each."""
        calls = [call for call in self.like.calls if not call.hoisted]
        invariant = {memory_of(t) for call in self.like.calls for t, place in zip(call.tensors, call.places) if place is None} - varying
        traced = {place: made[place] for call in calls for place in call.results if isinstance(place, Inner)}
        nodes = {place: self._placeholders.node_of(tensor) for place, tensor in traced.items() if memory_of(tensor) not in invariant}
        *before, last = self._repeated
        self._placeholders.end_loop(
            Over(repeat, nodes, [self.like.made, *(one.made for one in before)]), {id(tensor): tensor for tensor in traced.values()},
            [pair for call, _, _, tensors in last.calls for pair in zip(call.results, tensors)],
            {place for place in nodes if memory_of(made[place]) in varying})

    def _ways(self, made: dict[Inner, torch.Tensor]) -> list[Way]:
        """Of each tensor that is another one in each iteration, which ones."""
        found: dict[torch.fx.Node, Way] = {}
        changing = set().union(*(one.outside for one in self._repeated))
        for number, call in enumerate(self.like.calls):
            for slot, (known, place) in enumerate(zip(call.tensors, call.places)):
                if place is not None or call.hoisted:
                    continue
                others = [one.outside.get((number, slot), known) for one in self._repeated] if (number, slot) in changing else []
                way = Way(known, others, made.get(call.carried.get(slot)))
                if not found.setdefault(self._placeholders.node_of(known), way).is_same(way):
                    self._placeholders.fail()
        cuts = [Way(tensor, [one.cuts[place] for one in self._repeated], None) for place, tensor in made.items()
                if self.like.calls[place.call].hoisted]
        return [way for way in (*found.values(), *cuts) if way.next is not None or any(t is not way.known for t in way.others)]
