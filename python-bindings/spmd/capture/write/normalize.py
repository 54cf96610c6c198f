"""FX graph -> the nodes of step.json: every schema argument by name, in order, with its type and default filled in."""
from __future__ import annotations

import functools
import math
import operator
from typing import Any, Callable, Iterator, NamedTuple

import torch
import torch.fx

from ...models import DTYPES
from ...torch_api.operators import OpOverload, schema_of
from ..errors import Frame, depends_on_values, error_at, writes_constant
from ..observe.op_recorder import Provenance, provenance

# What places a tensor somewhere is no part of the graph: the same step for another device is the same graph.
# mask_gradient (of spmd::sdpa_backward) says what the presence of the fourth result says.
_DROPPED = {"device", "layout", "pin_memory", "mask_gradient"}

# Running statistics are written although the schema does not say so.
_HIDDEN_WRITES = {"aten.native_batch_norm.default": ("running_mean", "running_var")}


# In-place ops that change no value but the tensor's own shape: what they return is a view like any other.
_RESHAPES = {f"aten.{op}_" for op in ("squeeze", "unsqueeze", "t", "transpose", "swapaxes", "swapdims", "detach")}


# What reads memory, not elements.
_STRIDED = (torch.ops.aten.as_strided, torch.ops.aten.as_strided_copy, torch.ops.aten.as_strided_scatter)


class _Argument(NamedTuple):
    """What a schema says of an argument; asking it anew for every node would take most of the time."""

    name: str
    default: Any
    type_name: str
    sets: tuple[str, ...]  # of what it shares memory with
    is_write: bool


@functools.cache
def _arguments_of(op: OpOverload) -> tuple[_Argument, ...]:
    return tuple(_Argument(a.name, a.default_value, str(a.type), tuple(a.alias_info.before_set) if a.alias_info else (),
                           a.alias_info is not None and a.alias_info.is_write) for a in schema_of(op).arguments)


@functools.cache
def _sets_of_results(op: OpOverload) -> tuple[str, ...]:
    """What an operator's results share memory with, result by result."""
    return tuple(alias for r in schema_of(op).returns if r.alias_info is not None for alias in r.alias_info.before_set)


@functools.cache
def _name_of(op: OpOverload) -> str:
    return f"{op.namespace}.{op.__name__}"


class Values:
    """Numbers the values of a graph: inputs first, then every tensor result in program order."""

    def __init__(self) -> None:
        self._ids: dict[tuple[torch.fx.Node, tuple[int, ...]], int] = {}
        self._next = 0

    def define(self, nodes: list[torch.fx.Node], path: tuple[int, ...] = ()) -> int:
        """The next number, for the result at `path` of a node; several nodes may stand for one input."""
        self._next += 1
        self._ids.update(((node, path), self._next - 1) for node in nodes)
        return self._next - 1

    def of(self, node: torch.fx.Node) -> int:
        """The id of a node used as a value; getitem nodes name a result of the op they take from."""
        path: tuple[int, ...] = ()
        while node.target is operator.getitem:
            node, path = node.args[0], (node.args[1], *path)
        return self._ids[node, path]


def node_record(node: torch.fx.Node, values: Values, stack_index: Callable[[tuple[Frame, ...]], int | None]) -> dict:
    """One entry of step.json's "nodes"."""
    stamp = provenance(node)
    op = node.target
    if not isinstance(op, OpOverload):
        raise error_at(stamp.stack, f"Python arithmetic on a tensor's value ({getattr(op, '__name__', op)}) is no part "
                       "of a graph", "compute with the tensor instead of .item()")
    name, given = _name_of(op), _given(node)
    if op.overloadpacket in _STRIDED:
        given["storage_offset"] = _offset_in_tensor(op, given, stamp)
    arguments, mutated, alias_sets = [], [], {}
    for argument in _arguments_of(op):
        value = given.get(argument.name, argument.default)
        for alias in argument.sets:
            alias_sets.setdefault(alias, argument.name)
        if argument.is_write and _is_written(argument.name, value, given):
            mutated.append(argument.name)
        if argument.name not in _DROPPED:
            arguments.append([argument.name, encode(value, argument.type_name, values, stamp, name)])
    mutated += [a for a in _HIDDEN_WRITES.get(name, ()) if given.get(a) is not None and given.get("training")]
    if name.rpartition(".")[0] in _RESHAPES:
        name, mutated = name.replace("transpose_.default", "transpose.int").replace("_.", "."), []
    record = {"op": name, "phase": stamp.phase, "module": stamp.module, "stack": stack_index(stamp.stack),
              "args": arguments, "results": [_result(node, v, path, values, stamp, name)
                                             for path, v in _flatten(node.meta.get("val"))]}
    if mutated:
        record["mutates"] = mutated
    views = [alias_sets[alias] for alias in _sets_of_results(op) if alias in alias_sets]
    if views and record["results"]:
        record["view_of"] = views[0]
    return record


def _offset_in_tensor(op: Any, given: dict, stamp: Provenance) -> int:
    """Where as_strided begins, from the first element of its tensor; an error unless all that it reads is that
    tensor's, whose elements lie in order."""
    tensor, size, stride = given["self"].meta["val"], list(given["size"]), list(given["stride"])
    offset = given.get("storage_offset")
    first = 0 if offset is None else offset - tensor.storage_offset()
    last = first + sum((n - 1) * step for n, step in zip(size, stride))
    if not tensor.is_contiguous() or first < 0 or last >= tensor.numel() and 0 not in size:
        raise error_at(stamp.stack, f"{op} of size {size}, stride {stride} and offset {offset} reads memory that is "
                       f"not its tensor's alone, in order: that has size {list(tensor.shape)}, stride "
                       f"{list(tensor.stride())} and offset {tensor.storage_offset()}",
                       "take it of a contiguous tensor that has all the elements, or write it with slices, permute, "
                       "expand or unfold")
    return first


def _is_written(name: str, value: Any, given: dict) -> bool:
    """Empty lists are not written, nor the gradients of a fused optimizer without a grad_scale to divide out."""
    if name == "grads":
        return given.get("grad_scale") is not None
    return value is not None and value != []


def _flatten(value: Any, path: tuple[int, ...] = ()) -> list[tuple[tuple[int, ...], Any]]:
    """The results of a node with the getitem path of each; nothing for an op that returns nothing."""
    if isinstance(value, (tuple, list)):
        return [leaf for i, v in enumerate(value) for leaf in _flatten(v, (*path, i))]
    return [] if value is None and not path else [(path, value)]


def _result(node, value, path, values: Values, stamp: Provenance, op: str) -> dict | None:
    if value is None:
        return None
    return {"id": values.define([node], path), **describe(value, stamp, op)}


def describe(value: Any, stamp: Provenance = Provenance("forward", None, ()), op: str = "") -> dict:
    """Shape and dtype of a value; .item() gives a 0-dim one."""
    for kind, dtype in ((torch.SymFloat, "f64"), (torch.SymInt, "i64"), (torch.SymBool, "i1")):
        if isinstance(value, kind):
            return {"shape": [], "dtype": dtype}
    if any(not isinstance(size, int) for size in value.shape):
        raise depends_on_values(stamp.stack, op, stamp.module)
    if value.dtype not in DTYPES:
        raise error_at(stamp.stack, f"{op} returns a tensor of dtype {value.dtype}, which is not supported",
                       f"use one of {', '.join(str(d) for d in DTYPES)}")
    return {"shape": list(value.shape), "dtype": DTYPES[value.dtype]}


def _float(value: float) -> float | str:
    return float(value) if math.isfinite(value) else "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def encode(value: Any, type_name: str, values: Values, stamp: Provenance, op: str) -> dict:
    """One argument, tagged with its type: {"int": 3}, {"float": "inf"}, {"value": 12}, ..."""
    if isinstance(value, (tuple, list, torch.fx.immutable_collections.immutable_list)):
        return _encode_list(list(value), type_name, values, stamp, op)
    if value is None:
        return {"none": None}
    if isinstance(value, torch.fx.Node):
        return {"value": values.of(value)}
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, (int, float)):
        wants_float = type_name in ("float", "Optional[float]")
        return {"float": _float(value)} if wants_float or isinstance(value, float) else {"int": value}
    if isinstance(value, str):
        return {"str": value}
    if isinstance(value, torch.dtype) and value in DTYPES:
        return {"dtype": DTYPES[value]}
    if isinstance(value, torch.memory_format):
        return {"memory_format": str(value).removeprefix("torch.")}
    raise error_at(stamp.stack, f"{op} has an argument of type {type(value).__name__} ({value}), which has no "
                   "counterpart", "use real numbers, tensors and the dtypes of the step format")


def _encode_list(items: list, type_name: str, values: Values, stamp: Provenance, op: str) -> dict:
    if "Tensor" in type_name or any(isinstance(i, torch.fx.Node) for i in items):
        return {"values": [None if i is None else values.of(i) for i in items]}
    if "bool" in type_name or (items and all(isinstance(i, bool) for i in items)):
        return {"bools": items}
    if "float" in type_name or any(isinstance(i, float) for i in items):
        return {"floats": [_float(i) for i in items]}
    if all(isinstance(i, int) for i in items):
        return {"ints": items}
    raise error_at(stamp.stack, f"{op} has a list argument {items}, which has no counterpart",
                   "use lists of numbers or tensors")


def is_view_of_any(node: torch.fx.Node, nodes: set[torch.fx.Node]) -> bool:
    """The node's results lie in the memory of one of `nodes`. A tensor that the step makes of numbers (lift_fresh) is
    new at every step."""
    if node.target is operator.getitem:
        return node.args[0] in nodes
    if not isinstance(node.target, OpOverload) or node.target is torch.ops.aten.lift_fresh.default:
        return False
    shared = _sets_of_results(node.target)
    return bool(shared) and any(value in nodes and not set(a.sets).isdisjoint(shared)
                                for a, value in zip(_arguments_of(node.target), node.args) if isinstance(value, torch.fx.Node))


def written_by(node: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """The values that a node writes, as its operator's schema says."""
    op = node.target
    if node.op != "call_function" or not isinstance(op, OpOverload):
        return
    written = [argument.name for argument in _arguments_of(op) if argument.is_write]
    given = _given(node) if written else {}
    for name in written:
        value = given.get(name)
        yield from (v for v in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(v, torch.fx.Node))


def _given(node: torch.fx.Node) -> dict[str, Any]:
    """The arguments of a node by name."""
    return dict(zip((a.name for a in _arguments_of(node.target)), node.args)) | node.kwargs


def check_pure(node: torch.fx.Node, constants: set[torch.fx.Node], hyper: set[torch.fx.Node]) -> None:
    """Refuses writes that would be lost between steps: to constants and to the learning rate."""
    for target in written_by(node):
        if target in hyper:
            raise error_at(provenance(node).stack, "the step changes a learning rate",
                           "call lr_scheduler.step() after the training step; the learning rate is read from "
                           "optimizer.param_groups at every call")
        if target in constants:
            raise writes_constant(provenance(node).stack, str(node.target))
