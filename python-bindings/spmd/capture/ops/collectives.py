"""Collectives of torch.distributed that a step calls itself, functional ones and those that write in place: what one rank
gets from the others, where the captured step is one rank's (view="local").

In the graph they are three ops of our own, of which the compiler makes collectives of its own:

    spmd::c10d_all_reduce(self, kind, ranks) -> Tensor           kind: sum, avg, max, min
    spmd::c10d_all_gather(self, ranks) -> Tensor                 along the first dimension
    spmd::c10d_reduce_scatter(self, kind, ranks) -> Tensor       a rank's rows
"""
from __future__ import annotations

from typing import Any, Callable, Protocol

import torch
import torch.distributed as dist

from ...torch_api.distributed import fake_work, resolve_process_group
from ...torch_api.operators import OpOverload, opname_of, schema_of
from ..errors import Frame, error_at
from ..observe.dispatch_mode import Handler, OpCall, Phase

# Of torch.distributed, in place and functional.
NAMESPACES = {"c10d", "_c10d_functional", "_c10d_functional_autograd", "c10d_functional"}
KINDS = ("sum", "avg", "max", "min")
_WAITS = ("wait_tensor", "_wrap_tensor_autograd")  # which give their argument

_library = torch.library.Library("spmd", "FRAGMENT")
_library.define("c10d_all_reduce(Tensor self, *, str kind, int ranks) -> Tensor")
_library.define("c10d_all_gather(Tensor self, *, int ranks) -> Tensor")
_library.define("c10d_reduce_scatter(Tensor self, *, str kind, int ranks) -> Tensor")


@torch.library.register_fake("spmd::c10d_all_reduce", lib=_library)
def _(self, *, kind, ranks):
    return torch.empty_like(self, memory_format=torch.contiguous_format)


@torch.library.register_fake("spmd::c10d_all_gather", lib=_library)
def _(self, *, ranks):
    return self.new_empty((self.shape[0] * ranks, *self.shape[1:]))


@torch.library.register_fake("spmd::c10d_reduce_scatter", lib=_library)
def _(self, *, kind, ranks):
    return self.new_empty((self.shape[0] // ranks, *self.shape[1:]))


class _Primitives(Protocol):
    """What the collectives of PyTorch are made of."""

    def all_reduce(self, value: torch.Tensor, kind: str) -> torch.Tensor: ...
    def all_gather(self, value: torch.Tensor) -> torch.Tensor: ...  # along the first dimension
    def reduce_scatter(self, value: torch.Tensor, kind: str) -> torch.Tensor: ...  # likewise


def _compute(name: str, given: dict[str, Any], kind: str, ranks: int, ops: _Primitives) -> Any:
    """A collective's results: of _c10d_functional, which makes new tensors, or of c10d, which writes them in place and
    gives something to wait for. NotImplemented for any other."""
    match name:
        case "all_reduce":
            return ops.all_reduce(given["input"], kind)
        case "all_gather_into_tensor":
            return ops.all_gather(given["input"])
        case "reduce_scatter_tensor":
            return ops.reduce_scatter(given["input"], kind)
        case "broadcast":
            return ops.all_gather(given["input"].unsqueeze(0))[given["src"]].clone()
        case "allreduce_":
            for tensor in given["tensors"]:
                tensor.copy_(ops.all_reduce(tensor, kind))
            return given["tensors"], _done()
        case "broadcast_":
            for tensor in given["tensors"]:
                tensor.copy_(ops.all_gather(tensor.unsqueeze(0))[given["root_rank"]])
            return given["tensors"], _done()
        case "_allgather_base_":
            given["output_tensor"].copy_(ops.all_gather(given["input_tensor"].unsqueeze(0)).view_as(given["output_tensor"]))
            return given["output_tensor"], _done()
        case "allgather_":
            for outputs, value in zip(given["output_tensors"], given["input_tensors"]):
                for output, part in zip(outputs, ops.all_gather(value.unsqueeze(0)).unbind()):
                    output.copy_(part)
            return given["output_tensors"], _done()
        case "_reduce_scatter_base_":
            output = given["output_tensor"]
            output.copy_(ops.reduce_scatter(given["input_tensor"].reshape(ranks, *output.shape), kind)[0])
            return output, _done()
        case "barrier":
            return _done()
    return NotImplemented


def _done() -> torch.ScriptObject:
    """Work that needs no waiting for."""
    return fake_work()


def _arguments(func: OpOverload, args: tuple, kwargs: dict[str, Any] | None) -> tuple[dict[str, Any], str]:
    """By name, and how it combines values."""
    given = {argument.name: value for argument, value in zip(schema_of(func).arguments, args)} | (kwargs or {})
    kind = given.get("reduce_op", "sum")
    if isinstance(kind, torch.ScriptObject):
        ops = dist.ReduceOp
        kind = next((name for name, op in (("sum", ops.SUM), ("avg", ops.AVG), ("max", ops.MAX), ("min", ops.MIN))
                     if kind.op() == op), str(kind.op()))
    return given, kind


class _Traced:
    """As ops of the graph."""

    def __init__(self, ranks: int):
        self._ranks = ranks

    def all_reduce(self, value: torch.Tensor, kind: str) -> torch.Tensor:
        return torch.ops.spmd.c10d_all_reduce(value, kind=kind, ranks=self._ranks)

    def all_gather(self, value: torch.Tensor) -> torch.Tensor:
        return torch.ops.spmd.c10d_all_gather(value, ranks=self._ranks)

    def reduce_scatter(self, value: torch.Tensor, kind: str) -> torch.Tensor:
        return torch.ops.spmd.c10d_reduce_scatter(value, kind=kind, ranks=self._ranks)


def in_its_place(call: OpCall) -> Callable | None:
    """What is traced in a collective's place. None for what is none. It raises a CaptureError for a collective that a step cannot
    have, or among some of the ranks only."""
    func, stack = call.func, call.stack
    if func.namespace not in NAMESPACES:
        return None

    def run(*args: Any, **kwargs: Any) -> Any:
        given, kind = _arguments(func, args, kwargs)
        if opname_of(func) in _WAITS:
            return next(iter(given.values()))
        ranks = _ranks_of(func, given.get("group_name", given.get("process_group")), stack)
        if kind not in KINDS:
            raise error_at(stack, f"{func} combines by {kind!r}", f"allowed: {', '.join(KINDS)}")
        with call.traced():
            result = _compute(opname_of(func), given, kind, ranks, _Traced(ranks))
        if result is NotImplemented:
            raise error_at(stack, f"{func} communicates between processes: a compiled step adds its own collectives",
                           "remove it: the step computes what one device computes on the whole batch; with view='local' "
                           "gradients and a returned loss are averaged. Or, with view='local', use all_reduce, all_gather, "
                           "reduce_scatter_tensor or broadcast")
        return result
    return run


def _ranks_of(func: OpOverload, group: Any, stack: tuple[Frame, ...]) -> int:
    """How many ranks a collective is among: all of them."""
    if isinstance(group, str):
        group = resolve_process_group(group)
    elif isinstance(group, torch.ScriptObject):
        group = dist.ProcessGroup.unbox(group)
    if group is not None and group.size() != dist.get_world_size():
        raise error_at(stack, f"{func} is among {group.size()} of {dist.get_world_size()} ranks",
                       "let it be among all: a group of dist.group.WORLD")
    return dist.get_world_size()


class Exchange(Handler):
    """Computes the collectives of one rank of several that run in threads of this process. `exchange` gives what each rank
    has given, in rank order."""

    phase = Phase.EXCHANGE

    def __init__(self, rank: int, exchange: Callable[[torch.Tensor], list[torch.Tensor]]):
        self._rank, self._exchange = rank, exchange

    def sees(self, func: Any) -> bool:
        return func.namespace in NAMESPACES

    def answer(self, call: OpCall) -> Any:
        given, kind = _arguments(call.func, call.args, call.kwargs)
        if opname_of(call.func) in _WAITS:
            return next(iter(given.values()))
        return _compute(opname_of(call.func), given, kind, dist.get_world_size(), self)

    def all_reduce(self, value: torch.Tensor, kind: str) -> torch.Tensor:
        values = torch.stack(self._exchange(value.clone()))
        if kind in ("max", "min"):
            return values.amax(0) if kind == "max" else values.amin(0)
        total = values.sum(0)
        return total / len(values) if kind == "avg" else total

    def all_gather(self, value: torch.Tensor) -> torch.Tensor:
        return torch.cat(self._exchange(value.clone()))

    def reduce_scatter(self, value: torch.Tensor, kind: str) -> torch.Tensor:
        return self.all_reduce(value, kind).chunk(dist.get_world_size())[self._rank].clone()
