"""Operators of the user's own (torch.library): traced as the ATen ops of a function that stands in their place.

What an operator does is code that no compiler sees: a C++ or a Triton kernel, or Python that reads memory. So its
function of ATen ops is declared, and traced where the operator is called, below autograd: register_autograd, autocast
and functorch of the operator are its own. Sharding follows from the ops of the function.
"""
from __future__ import annotations

import functools
from typing import Any, Callable, Iterator

import torch
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from .errors import Frame, error_at

# Whose operators the graph itself is made of.
_OWN_NAMESPACES = ("aten", "prim", "prims", "spmd")

_decompositions: dict[str, Callable] = {}  # by "namespace::name" or "namespace::name.overload"


def register_decomposition(op: Any, function: Callable | None = None) -> Callable:
    """Declares what a captured step computes where it calls an operator of torch.library: `function`, in ATen ops.

    The function gets the operator's arguments and returns its results; it is traced below autograd, so gradients are
    those of the operator's register_autograd. It is what ranks compute, forward and backward: the operator's own
    implementation runs in eager only.

    Args:
      op: "namespace::name", "namespace::name.overload", what torch.library.custom_op or triton_op returned, or
        torch.ops.namespace.name.
      function: without it, a decorator is returned.

    Raises:
      ValueError: no such operator, one of ATen, or one that has a decomposition already.
    """
    if function is None:
        return functools.partial(register_decomposition, op)
    overload = _overload(op)
    name = overload.name()
    if not callable(function):
        raise ValueError(f"the decomposition of {name} is {function!r}; expected a function of its arguments")
    if _decompositions.setdefault(name, function) is not function:
        raise ValueError(f"{name} has a decomposition already, with which steps may have been compiled; a process can "
                         "declare one only")
    return function


def _overload(op: Any) -> torch._ops.OpOverload:
    found = getattr(op, "_opoverload", op)  # of torch.library.custom_op
    if isinstance(found, str):
        namespace, separator, name = found.partition("::")
        name, _, overload = name.partition(".")
        packet = getattr(getattr(torch.ops, namespace), name, None) if separator and namespace and name else None
        if packet is None:
            raise ValueError(f"there is no operator {found!r}; expected 'namespace::name' of one that torch.library has")
        if overload and overload not in packet.overloads():
            raise ValueError(f"{namespace}::{name} has no overload {overload!r}; it has {', '.join(packet.overloads())}")
        found = getattr(packet, overload) if overload else packet
    qualified = getattr(found, "_qualified_op_name", None) or getattr(found, "_name", "")
    if qualified.split("::")[0] in _OWN_NAMESPACES:
        raise ValueError(f"{qualified} is none of your own operators; decompositions are for those of torch.library")
    if isinstance(found, torch._ops.OpOverloadPacket):
        if len(found.overloads()) > 1:
            raise ValueError(f"{found} has the overloads {', '.join(found.overloads())}; name one: "
                             f"'{found._qualified_op_name}.{found.overloads()[0]}'")
        found = getattr(found, found.overloads()[0])
    if not isinstance(found, torch._ops.OpOverload):
        raise ValueError(f"{op!r} is no operator; expected 'namespace::name', or what torch.library.custom_op returned")
    return found


def functions() -> Iterator[Callable]:
    """The user's code that a step may reach through declared operators: decompositions, and what
    register_autograd got. What they read from globals counts as read by the step."""
    opdefs = getattr(torch._library.custom_ops, "OPDEFS", {})
    for name, function in _decompositions.items():
        yield function
        opdef = opdefs.get(name)
        yield from (f for f in (getattr(opdef, "_backward_fn", None), getattr(opdef, "_setup_context_fn", None)) if f)


def decomposition(func: torch._ops.OpOverload, mode: TorchDispatchMode, stack: tuple[Frame, ...]) -> Callable | None:
    """What is traced, by `mode`, in an operator's place. None for what stays one op of the graph: the compiler's own,
    and those that a dialect plugin may know (the import says so where none does)."""
    function = _decompositions.get(func.name())
    return functools.partial(_run, func, mode, function, stack) if function is not None else None


def _run(func: torch._ops.OpOverload, mode: TorchDispatchMode, function: Callable, stack: tuple[Frame, ...],
         *args: Any, **kwargs: Any) -> Any:
    """The function's results, as the operator would give them: new tensors of its types."""
    given = {t.untyped_storage()._cdata for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
    with mode:
        result = function(*args, **kwargs)
    leaves, spec = pytree.tree_flatten(result)
    # An operator's results share no memory with its arguments: a later write to one must not change the other.
    with mode:
        leaves = [t.clone() if isinstance(t, torch.Tensor) and t.untyped_storage()._cdata in given else t
                  for t in leaves]
    _check(func, function, stack, leaves, _expected(func, args, kwargs))
    return pytree.tree_unflatten(leaves, spec)


def _expected(func: torch._ops.OpOverload, args: tuple, kwargs: dict[str, Any]) -> list[Any] | None:
    """What register_fake says of the results; None if nobody has said it. A Triton operator's own code is its shape
    function, and launches kernels."""
    if func.name() in getattr(torch._library.triton, "triton_ops_to_kernels", {}):
        return None
    try:
        with disable_proxy_modes_tracing():
            return pytree.tree_leaves(func(*args, **kwargs))
    except (RuntimeError, NotImplementedError) as error:
        if "fake impl" not in str(error):
            raise
        return None


def _check(func: torch._ops.OpOverload, function: Callable, stack: tuple[Frame, ...], results: list[Any],
           expected: list[Any] | None) -> None:
    def words(leaves: list[Any]) -> str:
        return ", ".join(f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)}" if isinstance(t, torch.Tensor)
                         else repr(t) for t in leaves) or "nothing"

    if expected is not None and words(results) != words(expected):
        raise error_at(stack, f"the decomposition {getattr(function, '__qualname__', function)!r} of {func.name()} gives "
                       f"{words(results)}, and its register_fake says {words(expected)}",
                       "let both give the same shapes and types")
