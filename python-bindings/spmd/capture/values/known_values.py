"""Tensors whose values a trace knows: what is computed from nothing but sizes and numbers, or from these and the batch.

Models ask for such values to choose their way: transformers' Longformer makes a mask of ones where it was given none, and
asks whether any element says so. The answer is the same in every step, so it is given as eager would give it. What the
batch is in has another answer for another batch, which value_guards.py looks after; no other value is told. What makes such
tensors is noted as it is traced, and computed only when a step asks.

[Note: parts] Of torch.cat some parts may be known: Glm5Next sends its mask through a cache in one tensor with the keys, and cuts it out
again. Of the cat, and of its views, it is noted which elements are known; a view of nothing but these is. What is unknown is
computed as zeros.
"""
from __future__ import annotations

import abc
import collections
import dataclasses
import functools
from typing import Any, Mapping, Sequence

import torch

from ...torch_api.operators import OpOverload, schema_of
from ...torch_api.tracing import FakeTensor, disable_current_modes, pytree
from ..observe.memory import memory_of
from ..world.paths import Place

_aten = torch.ops.aten
# Made of sizes and numbers alone; of a tensor that is given, only its shape and type count.
MADE_OF_NUMBERS = {_aten.ones, _aten.zeros, _aten.full, _aten.arange, _aten.eye, _aten.scalar_tensor, _aten.linspace,
         _aten.tril_indices, _aten.triu_indices, _aten.ones_like, _aten.zeros_like, _aten.full_like, _aten.new_ones,
         _aten.new_zeros, _aten.new_full}
SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
_ASK = (_aten._local_scalar_dense.default, _aten.equal.default)
_BY_STRIDES = _aten.as_strided.default  # a view of memory, whose order is another in what stands for an unknown tensor
HIDES_WRITES = (_aten.native_batch_norm.default,)  # of running statistics, its fourth and fifth argument
_MOST_ELEMENTS = 1 << 22  # of a tensor that is computed to answer


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def hidden_writes(func: OpOverload, args: tuple) -> list[torch.Tensor]:
    """What an operator writes to although its schema does not say so."""
    return [tensor for tensor in args[3:5] if isinstance(tensor, torch.Tensor)] if func in HIDES_WRITES else []


@functools.cache
def _is_known(func: OpOverload) -> bool | None:
    """Whether what an operator makes is known, whatever it is given; None: if that is."""
    if func.namespace != "aten" or torch.Tag.nondeterministic_seeded in func.tags \
            or func.overloadpacket.__name__.startswith(("empty", "new_empty")):
        return False
    return True if func.overloadpacket in MADE_OF_NUMBERS else None


class KnownNumber(abc.ABC):
    """In the arguments of a noted operator, a number of the graph that each call can compute. `roots`: those of what computes it."""

    roots: tuple[tuple[torch.Tensor, int | Place], ...]

    @abc.abstractmethod
    def value(self, batch: Sequence[torch.Tensor]) -> Any:
        """The number for this batch; None: there is none."""


@dataclasses.dataclass
class _Call:
    """An operator of tensors that are known; `func` None: it wrote something unknown to the memory of `made`."""

    func: OpOverload | None
    args: tuple
    kwargs: dict
    made: list[torch.Tensor]
    written: set[int]  # memory
    memory: set[int]  # of what it was given, which an assignment to .data may change later


@dataclasses.dataclass(frozen=True, eq=False)
class Computation:
    """Operators that compute a number or a tensor, and the one that gives it. `roots`: tensors that have another value in another call,
    each with its number in the batch, or the place where a call finds it."""

    calls: list[_Call]
    func: Any
    args: tuple
    roots: tuple[tuple[torch.Tensor, int | Place], ...]

    @property
    def places(self) -> list[str]:
        """The paths of the roots that are no tensors of the batch."""
        return [place.path for _, place in self.roots if isinstance(place, Place)]

    def run(self, batch: Sequence[torch.Tensor] = ()) -> Any:
        """Of this batch, of which nothing is changed. None where eager would raise."""
        with disable_current_modes(), torch.no_grad():
            try:
                values = {id(root): self._own(place.get() if isinstance(place, Place) else batch[place])
                          for root, place in self.roots}
                for call in self.calls:
                    given, named = pytree.tree_map(lambda leaf, call=call: _real(leaf, call, values, batch), (call.args, call.kwargs))
                    values.update(zip(map(id, call.made), _tensors(call.func(*given, **named)), strict=True))
                return self.func(*(values.get(id(tensor), tensor) for tensor in self.args))
            except Exception:
                return None  # a fake goes through operators whose real ones refuse

    def _own(self, tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor.detach().cpu()
        return tensor.clone() if any(call.written for call in self.calls) else tensor


class KnownValues:
    """`roots`: by their ids, inputs of the step whose values each call knows when it begins, and where. `reached`: tensors
    that the step reaches without an argument, whose values may change between calls."""

    def __init__(self, roots: Mapping[int, int | Place], reached: Mapping[int, tuple[Place, torch.Tensor]]) -> None:
        self._calls: list[_Call] = []  # in the order of the trace; they keep their tensors alive, so ids stay theirs
        self._roots, self._reached = roots, reached
        self._known: set[int] = set(roots)  # and ids of what the calls made
        self._partly: dict[int, torch.Tensor] = {}  # by ids of what they made, too: which elements are known
        self._memory_of_parts: set[int] = set()
        self._writes: collections.Counter[int] = collections.Counter()  # by memory
        self.questions = 0  # that were asked so far

    def computation_of(self, func: OpOverload, args: tuple) -> Computation | None:
        """The number that Python asks for: .item(), torch.equal. None: it asks for none, or that is not known."""
        return self._computation(func, args) if func in _ASK and all(map(self.knows, args)) else None

    def value(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """What the tensor is in every call, if that is known."""
        found = self._computation(torch.clone, (tensor,)) if isinstance(tensor, FakeTensor) and self.knows(tensor) else None
        return None if found is None or found.roots else found.run()

    def computation_of_value(self, tensor: torch.Tensor) -> Computation | None:
        """What computes the tensor, if that is known before a step."""
        return self._computation(torch.clone, (tensor,)) if self.knows(tensor) else None

    def _computation(self, func: Any, args: tuple) -> Computation | None:
        self.questions += 1
        calls = self._calls_behind([tensor for tensor in args if isinstance(tensor, FakeTensor)])
        if calls is None:
            return None
        roots: dict[int, tuple[torch.Tensor, int | Place]] = {}
        for tensor in (*args, *_tensors([(call.args, call.kwargs) for call in calls])):
            if id(tensor) in self._roots:
                roots[id(tensor)] = tensor, self._roots[id(tensor)]
            elif not isinstance(tensor, FakeTensor) and id(tensor) in self._reached:
                roots[id(tensor)] = tensor, self._reached[id(tensor)][0]
        for leaf in pytree.tree_leaves([(call.args, call.kwargs) for call in calls]):
            if isinstance(leaf, KnownNumber):
                roots |= {id(tensor): (tensor, place) for tensor, place in leaf.roots}
        if any(tensor.numel() > _MOST_ELEMENTS for tensor, _ in roots.values()):
            return None
        return Computation(calls, func, args, tuple(roots.values()))

    def knows(self, tensor: torch.Tensor) -> bool:
        """What is no fake is a Python number that became a tensor, or another constant of the graph."""
        return not isinstance(tensor, FakeTensor) or id(tensor) in self._known

    def note(self, func: OpOverload, args: tuple, kwargs: dict, given: list[torch.Tensor],
             written: list[torch.Tensor], made: list[torch.Tensor]) -> None:
        """Remembers what the op made, if that is known now; what it wrote to otherwise is not known any more. `given` and
        `written` are the tensors in its arguments, and those of them that it writes to. Numbers of the graph that a call can
        compute are KnownNumbers in `args` and `kwargs`; one that is still a symbol depends on values that no call knows."""
        known = _is_known(func)
        if known is None and given:
            known = all(map(self.knows, given))
        elif known is None:  # an operator of tensors that is given none has Python numbers in their place
            known = any(str(argument.type) == "Tensor" for argument in schema_of(func).arguments)
        if known and any(isinstance(leaf, SYMBOLS) for leaf in pytree.tree_leaves((args, kwargs))):
            known = False
        written = [*written, *hidden_writes(func, args)]
        self._writes.update(map(memory_of, written))
        written = [tensor for tensor in written if id(tensor) in self._known or memory_of(tensor) in self._memory_of_parts]
        if known:
            self._calls.append(_Call(func, args, kwargs, made, set(map(memory_of, written)), set(map(memory_of, given))))
            self._known.update(map(id, made))
        elif written:
            self._calls.append(_Call(None, (), {}, written, set(map(memory_of, written)), set()))
        elif func is _aten.cat.default or func.namespace == "aten" and func.is_view and func is not _BY_STRIDES:
            self._note_parts(func, args, kwargs, given, made)

    def _note_parts(self, func: OpOverload, args: tuple, kwargs: dict, given: list[torch.Tensor],
                    made: list[torch.Tensor]) -> None:
        """Remembers which elements are known of a cat or a view. See [Note: parts]."""
        unknown = [tensor for tensor in given if not self.knows(tensor) and id(tensor) not in self._partly]
        if len(unknown) == len(given) or any(tensor.numel() > _MOST_ELEMENTS for tensor in (*given, *made)):
            return
        with disable_current_modes():
            try:
                masks = _tensors(func(*pytree.tree_map(self._mask, args), **kwargs))
            except Exception:
                return  # a view as another type
            if not any(mask.any() for mask in masks) or any(mask.shape != x.shape for mask, x in zip(masks, made, strict=True)):
                return
            self._known.update(id(tensor) for tensor, mask in zip(made, masks) if mask.all())
        self._calls += [_Call(_aten.zeros_like.default, (tensor,), {}, [tensor], set(), set()) for tensor in unknown]
        self._calls.append(_Call(func, args, kwargs, made, set(), set(map(memory_of, given))))
        self._partly.update((id(tensor), mask) for tensor, mask in zip(made, masks) if not self.knows(tensor))
        self._memory_of_parts.update(map(memory_of, made))

    def _mask(self, leaf: Any) -> Any:
        """Which elements of a tensor are known."""
        if not isinstance(leaf, torch.Tensor):
            return leaf
        mask = self._partly.get(id(leaf))
        return torch.tensor(self.knows(leaf)).expand(leaf.shape) if mask is None else mask

    def forget(self, tensors: Sequence[torch.Tensor]) -> None:
        """Something unknown was written to the memory of these."""
        memory = set(map(memory_of, tensors))
        self._writes.update(memory)
        self._calls.append(_Call(None, (), {}, list(tensors), memory, set()))

    def version(self, tensor: torch.Tensor) -> tuple[int, int]:
        """Another one when the tensor's memory was written, also through .data, or it has another."""
        return memory_of(tensor), self._writes[memory_of(tensor)]

    def assign(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        """`tensor` goes on as what `value` is, in its memory."""
        self._partly.pop(id(tensor), None)
        if self.knows(value):
            self._calls.append(_Call(_aten.detach.default, (value,), {}, [tensor], set(), {memory_of(value)}))
            self._known.add(id(tensor))
        else:
            self._known.discard(id(tensor))

    def _calls_behind(self, asked: list[torch.Tensor]) -> list[_Call] | None:
        """What computes these tensors, in order; None: something unknown was written to their memory, or they are too
        large."""
        calls, wanted, memory = [], set(map(id, asked)), set(map(memory_of, asked))
        for call in reversed(self._calls):
            if not (wanted.intersection(map(id, call.made)) or memory & call.written):
                continue
            given = _tensors((call.args, call.kwargs))
            if call.func is None or any(tensor.numel() > _MOST_ELEMENTS for tensor in (*call.made, *given)):
                return None
            if call.func.overloadpacket not in MADE_OF_NUMBERS:
                given = [tensor for tensor in given if isinstance(tensor, FakeTensor)]
                wanted.update(map(id, given))
                memory |= call.memory
            calls.append(call)
        return calls[::-1]


def _real(leaf: Any, call: _Call, values: dict[int, torch.Tensor], batch: Sequence[torch.Tensor]) -> Any:
    if isinstance(leaf, KnownNumber):
        return leaf.value(batch)
    if not isinstance(leaf, FakeTensor):
        return values.get(id(leaf), leaf)
    if call.func.overloadpacket in MADE_OF_NUMBERS:
        return torch.empty(leaf.shape, dtype=leaf.dtype)
    return values[id(leaf)]
