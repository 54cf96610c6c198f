"""Operators of the user's own (torch.library): traced as the ATen ops of a function that stands in their place, or
calls of a function in a shared library.

What an operator does is code that no compiler sees: a C++ or a Triton kernel, or Python that reads memory. So its
function of ATen ops is declared, and traced where the operator is called, below autograd: register_autograd, autocast
and functorch of the operator are its own. Sharding follows from the ops of the function. Or it stays one op of the
graph, with what is declared of it: the function that computes it and its sharding.
"""
from __future__ import annotations

import ctypes
import dataclasses
import functools
import hashlib
import os
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Sequence

import torch
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from .errors import Frame, error_at

# Whose operators the graph itself is made of.
_OWN_NAMESPACES = ("aten", "prim", "prims", "spmd")

# Arguments that a function in a library gets: a tensor, or numbers.
_ARGUMENTS = ("Tensor", "int", "float", "bool", "number", "Scalar", "SymInt", "List[int]", "List[float]", "List[SymInt]")

_decompositions: dict[str, Callable] = {}  # by "namespace::name" or "namespace::name.overload"
_kernels: dict[str, Kernel] = {}  # likewise


@dataclasses.dataclass(frozen=True)
class Kernel:
    """An operator that is a function in a shared library."""

    op: str  # as nodes name it
    library: Path
    symbol: str
    sharding: str
    reduce: tuple[str, ...]
    dtypes: tuple[torch.dtype, ...]

    def record(self) -> dict[str, Any]:
        """Its entry in step.json."""
        content = hashlib.sha256(self.library.read_bytes()).hexdigest()
        return {"op": self.op, "sharding": self.sharding, "reduce": list(self.reduce), "library": self.library.name,
                "sha256": content, "symbol": self.symbol}


def register_kernel(op: Any, library: str | os.PathLike, symbol: str, sharding: str,
                    reduce: str | Sequence[str | None] | None = None,
                    dtypes: Sequence[torch.dtype] = (torch.float32,)) -> None:
    """Declares that an operator of torch.library is a function in a shared library, which the ranks call, and how its
    tensors may be sharded.

    The function is `void symbol(const DLTensor *arguments, const DLTensor *results)` of dlpack.h. It gets the operator's
    arguments in the order of its schema, numbers as 0-dimensional tensors (int64, float64, bool), lists of them as
    1-dimensional ones, and writes the results. Tensors are on the CPU, contiguous, and those of one rank: smaller where
    they are sharded. Ranks call it from several threads at once.

    Args:
      op: as for register_decomposition.
      library: the file of the shared library; packages and artifacts have a copy of it.
      symbol: the function's name in it.
      sharding: the dimensions of each tensor argument, an arrow, and those of each result: "b d, d -> b d". Equal names
        are dimensions that are cut alike: the function gives the same when it is called for each part. "..." stands for
        any leading dimensions, "_" for one that every rank needs whole.
      reduce: how results combine that lack a dimension of the arguments: "sum", "max" or "min", for all of them or one
        entry for each (None: it lacks none).
      dtypes: the floating types that the function takes; a step that calls it with others is a CaptureError.

    Raises:
      ValueError: no such operator, one that has a declaration already, or that has arguments or results which a function
        in a library cannot have; no such library or function; a `reduce` that is none, `dtypes` that are none.
    """
    overload = _overload(op)
    schema, file = overload._schema, Path(library).absolute()
    name = overload.name()
    if name in _decompositions or name in _kernels:
        raise ValueError(f"{name} has a declaration already, with which steps may have been compiled; a process can "
                         "declare one only")
    for argument in schema.arguments:
        if str(argument.type) not in _ARGUMENTS or argument.alias_info is not None and argument.alias_info.is_write:
            raise ValueError(f"argument {argument.name!r} of {name} is {'written to' if argument.alias_info else argument.type}; "
                             "a function in a library gets tensors that it reads, and numbers\n  cure: declare what the "
                             "operator computes: spmd.register_decomposition")
    if not schema.returns or any(str(r.type) != "Tensor" or r.alias_info is not None for r in schema.returns):
        raise ValueError(f"{name} does not return new tensors; a function in a library does\n  cure: declare what the operator "
                         "computes: spmd.register_decomposition")
    if not dtypes or any(not isinstance(dtype, torch.dtype) or not dtype.is_floating_point for dtype in dtypes):
        raise ValueError(f"dtypes of {name} are {list(dtypes)}; expected floating types: torch.float32, …")
    try:
        getattr(ctypes.CDLL(str(file)), symbol)
    except (OSError, AttributeError) as error:
        raise ValueError(f"{name} cannot be the function {symbol!r} of '{file}': {error}") from error
    _kernels[name] = Kernel(f"{overload.namespace}.{overload._opname}.{overload._overloadname}", file, symbol, sharding,
                            _reductions(name, sharding, reduce, len(schema.returns)), tuple(dtypes))


def _reductions(name: str, sharding: str, reduce: str | Sequence[str | None] | None, results: int) -> tuple[str, ...]:
    """One entry for each result, "" where it lacks no dimension."""
    before, arrow, after = sharding.partition("->")
    if not arrow:
        raise ValueError(f"the sharding of {name} is {sharding!r}; expected the dimensions of each tensor argument, an arrow, "
                         "and those of each result: 'b d, d -> b d'")
    given = [reduce] * results if reduce is None or isinstance(reduce, str) else list(reduce)
    if len(given) != results or any(kind not in (None, "sum", "max", "min") for kind in given):
        raise ValueError(f"reduce of {name} is {reduce!r}; allowed: 'sum', 'max', 'min', or one of them or None for each of "
                         f"{results} results")
    dims = set(before.replace(",", " ").split()) - {"_"}
    lacking = [bool(dims - set(entry.split())) for entry in after.split(",")]
    return tuple(kind or "" for kind in given) if len(lacking) != results else \
        tuple((kind or "") if lacks else "" for kind, lacks in zip(given, lacking))


def check_kernel(func: torch._ops.OpOverload, leaves: Iterable[Any], stack: tuple[Frame, ...]) -> None:
    """Raises where a function in a library is called with tensors of types that it does not take."""
    kernel = _kernels.get(func.name()) if _kernels else None
    for leaf in leaves if kernel is not None else ():
        if isinstance(leaf, torch.Tensor) and leaf.dtype.is_floating_point and leaf.dtype not in kernel.dtypes:
            raise error_at(stack, f"{func.name()} is called with a tensor of {leaf.dtype}, and its function takes "
                           + ", ".join(map(str, kernel.dtypes)),
                           "cast it, or say that the function takes more: spmd.register_kernel(dtypes=[…])")


def kernels_of(ops: Iterable[str]) -> list[Kernel]:
    """Those of the operators of a graph that are functions in libraries.

    Raises:
      ValueError: two libraries have one name.
    """
    named = {kernel.op: kernel for kernel in _kernels.values()}
    found = [named[op] for op in dict.fromkeys(ops) if op in named]
    files: dict[str, Path] = {}
    for kernel in found:
        if files.setdefault(kernel.library.name, kernel.library) != kernel.library:
            raise ValueError(f"'{files[kernel.library.name]}' and '{kernel.library}' have one name, and a package has both in "
                             "one folder; rename one")
    return found


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
    if name in _kernels:
        raise ValueError(f"{name} is a function in '{_kernels[name].library}' already, with which steps may have been "
                         "compiled; a process can declare one only")
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
    yield from _decompositions.values()
    for name in (*_decompositions, *_kernels):
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
