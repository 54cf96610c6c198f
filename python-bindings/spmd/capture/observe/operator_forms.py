"""Operators that come again, as those of every layer and of every microbatch do: traced without PyTorch's own tracing.

What an operator gives on fake tensors, sizes, strides, types and whose memory it lies in, follows from the operator, from
the same facts of its tensors, and from its other arguments. So where all of that is as it was in an earlier call, the
results are made from what that call gave, and the node is added to the graph as it was then: neither shape functions nor
the tracer run. The node has this call's arguments and stamp, so nothing of an earlier call is in it but the form of its
results. Python and autograd run as ever.

Only what is known to be such a function is taken: what reads values, changes sizes in place, is decomposed, comes with
tensors that are constants, or has left other nodes in the graph than its own, goes through PyTorch, each time.
"""
from __future__ import annotations

import dataclasses
import operator
from typing import Any, Callable, Sequence

import torch
import torch.fx

from ...torch_api.operators import (COMPOSITE_IMPLICIT_AUTOGRAD, OpOverload, dispatch_has_kernel_for_dispatch_key,
                                    schema_of)
from ...torch_api.tensors import make_subclass, set_throw_on_mutable_data_ptr
from ...torch_api.tracing import (CAN_APPEND_NODES, DisableTorchDispatch, DisableTorchFunction, FakeTensor,
                                  FakeTensorMode, append_node, get_proxy_mode)
from .dispatch_mode import Handler, OpCall, Phase
from .memory import memory_of

_NAMESPACES = ("aten", "spmd")
_CONSTANTS = {int, float, bool, str, type(None), torch.dtype, torch.memory_format, torch.layout, torch.device}
_aten = torch.ops.aten
# What the tracer or the fakes treat in a way of their own, and views that change a bit of the tensor besides its sizes.
_SPECIAL = {_aten.lift.default, _aten.lift_fresh.default, _aten.lift_fresh_copy.default, _aten._neg_view.default,
            _aten._conj.default, _aten._local_scalar_dense.default, _aten.is_nonzero.default}
_TAGS = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape, torch.Tag.inplace_view,
         torch.Tag.nondeterministic_seeded)
_CPU = torch.device("cpu")


@dataclasses.dataclass(frozen=True)
class _Result:
    """One tensor that an operator gives: `of` is the number of the tensor argument in whose memory it lies, if any."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    dtype: torch.dtype
    of: int | None


@dataclasses.dataclass(frozen=True)
class Likeness:
    """What a tensor is to Python that reads none of its elements. `reach`: how many elements its memory has."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    reach: int
    dtype: torch.dtype
    requires_grad: bool

    @staticmethod
    def of(tensor: torch.Tensor) -> Likeness:
        offset = tensor.storage_offset()
        return Likeness(tuple(tensor.shape), tensor.stride(), offset, offset + _reach(tensor), tensor.dtype, tensor.requires_grad)


@dataclasses.dataclass(frozen=True)
class _Form:
    """What an operator gave. `results`: one for each, None where that is none; `kind`: the sequence that they were in,
    None for a tensor alone; `in_place`: it is the first argument. `values`: of its node, then of the nodes that take a
    result out of the sequence, which are those of `taken`."""

    results: tuple[_Result | None, ...]
    kind: type | None
    in_place: bool
    taken: tuple[int, ...]
    values: tuple[Any, ...]


@dataclasses.dataclass
class Call:
    """A call of an operator. `form` is None where it has not come before."""

    func: OpOverload
    args: tuple
    kwargs: dict[str, Any]
    tensors: list[torch.Tensor]
    slots: list[Any]  # of the tracer, for each tensor
    key: tuple[Any, ...]
    form: _Form | None
    nodes: int  # that the graph had before it


class OperatorForms(Handler):
    """Those of one trace, under one `mode` of fakes. A tensor that `is_watched` has to be looked at in every operator."""

    phase = Phase.REPEAT

    def __init__(self, mode: FakeTensorMode, is_watched: Callable[[torch.Tensor], bool]):
        self._mode, self._is_watched = mode, is_watched
        self._forms: dict[tuple, _Form] = {}
        self._can: dict[Any, bool] = {}  # of operators, whether what they give is a function of forms
        self._added = 0  # nodes
        self._tracer: Any = None
        with mode:
            made = torch.empty(2, device="cpu")
        self._attributes = dict(vars(made))  # of every fake that nothing was asked of

    def answer(self, call: OpCall) -> Any:
        form = call.form = self.find(call.func, call.args, call.kwargs)
        if form is not None and form.form is not None and not any(map(self._is_watched, form.tensors)):
            call.again = self.again
            call.set_tensors(form.tensors, form.tensors[:form.form.in_place])
        return NotImplemented

    def note(self, call: OpCall, result: Any) -> None:
        if call.again is None and call.form is not None:
            self.remember(call.form, result)

    def find(self, func: OpOverload, args: tuple, kwargs: dict[str, Any]) -> Call | None:
        """The call, of which remember() is told when it is over if it has no form; None of one that may give something else
        another time."""
        proxies = get_proxy_mode()
        if proxies is None or not self.is_function(func):
            return None
        tracer = proxies.tracer
        if self._tracer is None:
            self._tracer = tracer
        tensors: list[torch.Tensor] = []
        slots: list[Any] = []
        key: list[Any] = [func, torch.get_default_dtype()]
        if tracer is not self._tracer or torch.is_inference_mode_enabled() \
                or not self._describe(args, key, tensors, slots):
            return None
        if kwargs:
            key.append(None)
            for name, value in kwargs.items():
                key.append(name)
                if not self._describe((value,), key, tensors, slots):
                    return None
        if not tensors:
            return None
        known = tuple(key)
        form = self._forms.get(known)
        if form is not None and form.in_place and len(tensors) > 1 and memory_of(tensors[0]) in map(memory_of, tensors[1:]):
            return None
        return Call(func, args, kwargs, tensors, slots, known, form, len(tracer.graph.nodes))

    def remember(self, call: Call, result: Any) -> None:
        """Remembers what a call without a form has given."""
        form = self._form_of(call, result)
        if form is not None:
            self._forms[call.key] = form

    def again(self, call: Call, stamp: dict[str, Any]) -> Any:
        """Traces the call; `stamp` is its node's."""
        graph, form, slots = self._tracer.graph, call.form, iter(call.slots)
        args = tuple(_nodes(value, slots) for value in call.args)
        kwargs = {name: _nodes(value, slots) for name, value in call.kwargs.items()}
        node = self._add(graph, call.func, args, kwargs)
        node.meta.update(custom=stamp, val=form.values[0])
        slot_type, proxy_type = type(call.slots[0]), type(call.slots[0].proxy)
        tracker, tracer = self._tracer.tensor_tracker, self._tracer
        if form.in_place:
            tracker[call.tensors[0]] = slot_type(proxy_type(node, tracer), None)
            return call.tensors[0]
        with DisableTorchDispatch(), DisableTorchFunction():
            made = [self._make(result, call.tensors) for result in form.results]
        if form.kind is None:
            tracker[made[0]] = slot_type(proxy_type(node, tracer), None)
            return made[0]
        for number, value in zip(form.taken, form.values[1:]):
            item = self._add(graph, operator.getitem, (node, number), {})
            item.meta.update(custom=stamp, val=value)
            if made[number] is not None:
                tracker[made[number]] = slot_type(proxy_type(item, tracer), None)
        return form.kind(made)

    def placeholders(self, likes: Sequence[Likeness]) -> list[torch.Tensor]:
        """Fakes of these forms, each in memory of its own, that the tracer does not know. A call of its own for each of them would
        take longer."""
        with DisableTorchDispatch(), DisableTorchFunction():
            return [self._fake(torch.empty_strided(like.size, like.stride, dtype=like.dtype, device="meta") if not like.offset else
                               torch.empty(like.reach, dtype=like.dtype, device="meta").as_strided(like.size, like.stride, like.offset),
                               like.requires_grad) for like in likes]

    def _add(self, graph: torch.fx.Graph, target: Any, args: tuple, kwargs: dict[str, Any]) -> torch.fx.Node:
        """As graph.create_node does, without looking for a name, which nobody reads, and for symbols in the arguments."""
        self._added += 1
        if not CAN_APPEND_NODES:
            return graph.create_node("call_function", target, args, kwargs)
        node = torch.fx.Node(graph, f"again_{self._added}", "call_function", target, args, kwargs)
        append_node(graph, node)
        return node

    def _make(self, result: _Result | None, tensors: list[torch.Tensor]) -> torch.Tensor | None:
        if result is None:
            return None
        if result.of is None:
            memory = torch.empty_strided(result.size, result.stride, dtype=result.dtype, device="meta")
        else:
            memory = torch.empty(0, dtype=result.dtype, device="meta").set_(
                tensors[result.of].untyped_storage(), result.offset, result.size, result.stride)
        return self._fake(memory)

    def _fake(self, memory: torch.Tensor, requires_grad: bool = False) -> torch.Tensor:
        made = make_subclass(FakeTensor, memory, requires_grad, dispatch_device=True, device_for_backend_keys=_CPU)
        set_throw_on_mutable_data_ptr(made)
        vars(made).update(self._attributes)
        return made

    def is_function(self, func: OpOverload) -> bool:
        """What the operator gives follows from the form of its tensors and from its other arguments."""
        can = self._can.get(func)
        if can is None:
            schema = schema_of(func)
            written = [n for n, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write]
            can = func.namespace in _NAMESPACES and func not in _SPECIAL and not any(tag in func.tags for tag in _TAGS) \
                and not dispatch_has_kernel_for_dispatch_key(func.name(), COMPOSITE_IMPLICIT_AUTOGRAD) \
                and written in ([], [0]) and bool(schema.returns) and not any(a.is_out for a in schema.arguments) \
                and all(str(r.type) in ("Tensor", "List[Tensor]") for r in schema.returns)
            self._can[func] = can
        return can

    def _describe(self, values: Any, key: list[Any], tensors: list[torch.Tensor], slots: list[Any]) -> bool:
        """Adds to `key` what results depend on; whether nothing else is among the values."""
        for value in values:
            kind = type(value)
            if kind is FakeTensor:
                slot = self._tracer.tensor_tracker.get(value)
                dtype = value.dtype
                if slot is None or slot.constant is not None or value.constant is not None \
                        or value.fake_mode is not self._mode or dtype.is_complex:
                    return False
                tensors.append(value)
                slots.append(slot)
                key += dtype, value.shape, value.stride(), value.storage_offset()
            elif kind in _CONSTANTS:
                key += kind, value
            elif kind is list or kind is tuple:
                key += kind, len(value)
                if not self._describe(value, key, tensors, slots):
                    return False
            else:
                return False
        return True

    def _form_of(self, call: Call, result: Any) -> _Form | None:
        """What is remembered of a call; None of one that may give something else another time."""
        func, tensors, nodes = call.func, call.tensors, _last(self._tracer.graph, call.nodes)
        if not nodes or nodes[0].target is not func or "val" not in nodes[0].meta:
            return None
        if any(n.target is not operator.getitem or n.args[0] is not nodes[0] for n in nodes[1:]):
            return None
        values = tuple(n.meta.get("val") for n in nodes)
        if result is tensors[0]:
            is_plain = schema_of(func).arguments[0].alias_info is not None and schema_of(func).arguments[0].alias_info.is_write
            return _Form((), None, True, (), values) if is_plain and len(nodes) == 1 and _shape_of(result) == \
                _shape_of(values[0]) and memory_of(result) not in map(memory_of, tensors[1:]) else None
        if schema_of(func).is_mutable:
            return None
        kind = None if isinstance(result, torch.Tensor) else type(result)
        given = (result,) if kind is None else tuple(result) if kind in (tuple, list) else None
        taken = tuple(n.args[1] for n in nodes[1:])
        if given is None or len(set(taken)) != len(taken) or kind is None and taken or kind is not None \
                and {n for n, t in enumerate(given) if t is not None} - set(taken):
            return None
        made, memories = [], list(map(memory_of, tensors))
        for tensor in given:
            if tensor is None:
                made.append(None)
                continue
            if type(tensor) is not FakeTensor or any(tensor is t for t in tensors) or tensor.constant is not None \
                    or tensor.dtype.is_complex or tensor.layout is not torch.strided \
                    or any(not isinstance(n, int) for n in (*tensor.shape, *tensor.stride(), tensor.storage_offset())) \
                    or vars(tensor) != self._attributes:
                return None
            owners = [n for n, memory in enumerate(memories) if memory == memory_of(tensor)]
            if len(owners) > 1 or not owners and not _is_alone(tensor, given):
                return None
            made.append(_Result(tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.dtype,
                                owners[0] if owners else None))
        return _Form(tuple(made), kind, False, taken, values)


def _nodes(value: Any, slots: Any) -> Any:
    """An argument with nodes in the place of tensors."""
    if isinstance(value, torch.Tensor):
        return next(slots).proxy.node
    return type(value)(_nodes(v, slots) for v in value) if isinstance(value, (list, tuple)) else value


def _reach(tensor: torch.Tensor) -> int:
    """How many elements of memory its elements lie in."""
    return 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride())) if tensor.numel() else 0


def _shape_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset()


def _is_alone(tensor: torch.Tensor, given: tuple) -> bool:
    """The tensor has memory of its own, and no more than it needs."""
    with DisableTorchDispatch():
        plain = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
    return tensor.storage_offset() == 0 and tensor.untyped_storage().nbytes() == plain.untyped_storage().nbytes() \
        and all(other is tensor or other is None or memory_of(other) != memory_of(tensor) for other in given)


def _last(graph: torch.fx.Graph, before: int) -> list[torch.fx.Node]:
    """The nodes that came after the first `before` ones."""
    nodes = []
    for node in reversed(graph.nodes):
        if len(nodes) == len(graph.nodes) - before:
            break
        nodes.append(node)
    return nodes[::-1]
