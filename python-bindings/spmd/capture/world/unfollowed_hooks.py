"""Hooks that a trace does not run, which are errors: a trace runs on other tensors than the user's, and reduces nothing.

A hook of a tensor moves to the fake of the tensor. A hook of an AccumulateGrad node does not: it belongs to the node of
the user's own parameter, which a trace never runs, and it reaches that parameter through its closure. A step that
registers a hook on a parameter and leaves it there registers one more in each eager call, and one in all compiled calls.
A communication hook of DistributedDataParallel replaces the collective; a compiled step has collectives of its own.
"""
from __future__ import annotations

import functools
import sys
import types
from typing import Any, Callable, Iterable, Iterator

import torch
from torch.autograd.graph import GradientEdge, Node
from torch.nn.parallel import DistributedDataParallel

from ...torch_api.autograd import accumulation_hooks_of
from ...torch_api.distributed import comm_hooks
from ...torch_api.modules import tensor_hooks_of
from ..errors import Frame, error_at
from .user_code import is_users_file

_FOLLOWED = "p.register_post_accumulate_grad_hook(hook) and p.register_hook(hook)"


class AccumulationHooks:
    """The hooks of the AccumulateGrad nodes of `parameters`, which are named. True while there are any. It keeps the nodes
    alive, and so sees hooks that are registered later, at little cost."""

    def __init__(self, parameters: Iterable[tuple[str, torch.Tensor]]):
        self._nodes = [(name, *accumulation_hooks_of(parameter)) for name, parameter in parameters
                       if parameter.requires_grad]
        self._tables = [table for _, _, tables in self._nodes for table in tables]

    def __bool__(self) -> bool:
        return any(self._tables)

    def refuse(self, step: Callable) -> None:
        """Raises for the first hook, with the line of the step if a library has defined the hook."""
        for name, _, tables in self._nodes:
            for hook in (hook for table in tables for hook in table.values()):
                raise error_at(_lines_of(hook) or _lines_of(step),
                               f"{_name_of(hook)} is a hook of the AccumulateGrad node of parameter {name!r}; a compiled step "
                               "does not run this node",
                               f"{_FOLLOWED} run in a compiled step; the first receives the parameter with its gradient")


def refuse_hooks_with_nodes(parameters: Iterable[tuple[str, torch.Tensor]]) -> None:
    """Raises for a hook of a tensor that has nodes of autograd in its closure: the nodes of the user's own tensors, as
    torch.autograd.graph.register_multi_grad_hook keeps them."""
    for name, parameter in parameters:
        for table in tensor_hooks_of(parameter):
            for hook in (table or {}).values():
                if any(_has_node(value) for value in _held_by(hook)):
                    raise error_at(_lines_of(hook), f"{_name_of(hook)}, a hook of {name!r}, holds nodes of autograd; a "
                                   "compiled step does not run these nodes",
                                   f"{_FOLLOWED} run in a compiled step; or call register_multi_grad_hook in the step, "
                                   "and remove its handle there")


def refuse_comm_hooks(model: torch.nn.Module, step: Callable) -> None:
    """Raises for a hook of DistributedDataParallel that does not just average gradients."""
    known = sys.modules.get("torch.distributed.algorithms.ddp_comm_hooks.default_hooks")
    for module in model.modules():
        for hook, _ in comm_hooks(module) if isinstance(module, DistributedDataParallel) else ():
            if hook is not getattr(known, "allreduce_hook", None):
                raise error_at(_lines_of(hook) or _lines_of(step), f"{_name_of(hook)} is a communication hook of "
                               "DistributedDataParallel; a compiled step has collectives of its own",
                               "leave register_comm_hook() out; to reduce gradients in bf16 use "
                               "spmd.compile(precision=\"reduce=bf16\")")


class TensorHooks:
    """The hooks of named tensors, as they are now."""

    def __init__(self, tensors: Iterable[tuple[str, torch.Tensor]]):
        self._before = [(name, tensor, _numbers(tensor)) for name, tensor in tensors]

    def check(self) -> None:
        """Raises where the tensors have other hooks than before."""
        for name, tensor, before in self._before:
            now = _numbers(tensor)
            for number in {**before, **now}:
                if (number in before) != (number in now):
                    hook = (now if number in now else before)[number]
                    verb = "registers" if number in now else "removes"
                    raise error_at(_lines_of(hook), f"the step {verb} {_name_of(hook)}, a hook of {name!r}: Python code runs "
                                                    "only once, during the capture", "register hooks before the first call, or "
                                   "remove the handle in the step that registers it")


def parameter_of_edge(value: Any) -> torch.Tensor | None:
    """The parameter that a GradientEdge leads to; None for another one, and for what is no edge."""
    return getattr(value.node, "variable", None) if isinstance(value, GradientEdge) else None


def _numbers(tensor: torch.Tensor) -> dict[int, Callable]:
    return {number: hook for table in tensor_hooks_of(tensor) for number, hook in (table or {}).items()}


def _has_node(value: Any) -> bool:
    return isinstance(value, Node) or isinstance(value, (list, tuple)) and any(isinstance(one, Node) for one in value)


def _held_by(hook: Any) -> Iterator[Any]:
    """What the function of a hook holds: the contents of its closure, and the arguments of a partial()."""
    while isinstance(hook, functools.partial):
        yield from (*hook.args, *hook.keywords.values())
        hook = hook.func
    for cell in getattr(getattr(hook, "__func__", hook), "__closure__", None) or ():
        try:
            yield cell.cell_contents
        except ValueError:  # empty
            continue


def _lines_of(hook: Any) -> tuple[Frame, ...]:
    """Where the user defines a hook, or the function that a library's hook holds."""
    reached, seen = [hook], set()
    for one in reached:  # the loop appends to it
        if id(one) in seen:
            continue
        seen.add(id(one))
        call = getattr(type(one), "__call__", None)
        code = getattr(getattr(one, "__func__", one), "__code__", getattr(call, "__code__", None))
        if isinstance(code, types.CodeType) and is_users_file(code.co_filename):
            return (Frame(code.co_filename, code.co_firstlineno, code.co_name),)
        reached += (value for value in _held_by(one) if callable(value) and not isinstance(value, torch.Tensor))
    return ()


def _name_of(hook: Any) -> str:
    while isinstance(hook, functools.partial):
        hook = hook.func
    name = getattr(hook, "__qualname__", type(hook).__qualname__).replace("<locals>.", "")
    module = getattr(hook, "__module__", "") or ""
    return f"{module}.{name}" if module.startswith("torch") else name
