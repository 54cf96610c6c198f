"""Functional collectives that a step calls itself (torch.distributed._functional_collectives): what one rank gets from
the others, where the captured step is one rank's (view="local").

In the graph they are three ops of our own, of which the compiler makes collectives of its own:

    spmd::c10d_all_reduce(self, kind, ranks) -> Tensor           kind: sum, avg, max, min
    spmd::c10d_all_gather(self, ranks) -> Tensor                 along the first dimension
    spmd::c10d_reduce_scatter(self, kind, ranks) -> Tensor       a rank's rows
"""
from __future__ import annotations

from typing import Any, Callable

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode

from .errors import Frame, error_at

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


def in_its_place(func: torch._ops.OpOverload, mode: TorchDispatchMode, stack: tuple[Frame, ...]) -> Callable | None:
    """What is traced, by `mode`, in a collective's place. None for what is none.

    Raises:
      CaptureError: for a collective that a step cannot have, or among some of the ranks only.
    """
    if func.namespace not in NAMESPACES:
        return None
    name = func._opname

    def run(*args: Any, **kwargs: Any) -> Any:
        given = {argument.name: value for argument, value in zip(func._schema.arguments, args)} | kwargs
        if name in _WAITS:
            return next(iter(given.values()))
        ranks, own = _ranks_of(func, given["group_name"], stack), torch.ops.spmd
        kind = given.get("reduce_op", "sum")
        if kind not in KINDS:
            raise error_at(stack, f"{func} combines by {kind!r}", f"allowed: {', '.join(KINDS)}")
        with mode:
            if name == "all_reduce":
                return own.c10d_all_reduce(given["input"], kind=kind, ranks=ranks)
            if name == "reduce_scatter_tensor":
                return own.c10d_reduce_scatter(given["input"], kind=kind, ranks=ranks)
            if name == "broadcast":
                return own.c10d_all_gather(given["input"].unsqueeze(0), ranks=ranks)[given["src"]].clone()
            return own.c10d_all_gather(given["input"], ranks=ranks)
    if func.namespace == "_c10d_functional" and name in (*_WAITS, "all_reduce", "reduce_scatter_tensor", "broadcast",
                                                        "all_gather_into_tensor"):
        return run
    raise error_at(stack, f"{func} communicates between processes, which a captured step does by itself",
                   "leave it out: the step means what it means on one device with the whole batch, and with view='local' "
                   "gradients are averaged, and so is a loss that is given back; or, with view='local', call all_reduce, "
                   "all_gather_tensor, reduce_scatter_tensor or broadcast of torch.distributed._functional_collectives")


def _ranks_of(func: torch._ops.OpOverload, group: Any, stack: tuple[Frame, ...]) -> int:
    """How many ranks a collective is among: all of them."""
    found = dist.distributed_c10d._resolve_process_group(group) if isinstance(group, str) else group
    if found.size() != dist.get_world_size():
        raise error_at(stack, f"{func} is among {found.size()} of {dist.get_world_size()} ranks",
                       "let it be among all: a group of dist.group.WORLD")
    return found.size()


class Exchange(TorchDispatchMode):
    """Computes the collectives of one rank of several that run in threads of this process. `exchange` gives what each rank
    has given, in rank order."""

    def __init__(self, rank: int, exchange: Callable[[torch.Tensor], list[torch.Tensor]]):
        super().__init__()
        self._rank, self._exchange = rank, exchange

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace != "_c10d_functional":
            return func(*args, **(kwargs or {}))
        given = {argument.name: value for argument, value in zip(func._schema.arguments, args)} | (kwargs or {})
        if func._opname in _WAITS:
            return next(iter(given.values()))
        values = self._exchange(given["input"].clone())
        if func._opname == "broadcast":
            return values[given["src"]].clone()
        if func._opname == "all_gather_into_tensor":
            return torch.cat(values)
        stacked, kind = torch.stack(values), given["reduce_op"]
        result = stacked.amax(0) if kind == "max" else stacked.amin(0) if kind == "min" else stacked.sum(0)
        if kind == "avg":
            result = result / len(values)
        return result.chunk(len(values))[self._rank].clone() if func._opname == "reduce_scatter_tensor" else result
