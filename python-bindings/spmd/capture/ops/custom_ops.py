"""Operators of the user's own (torch.library): traced as the ATen ops of a function that stands in their place, or
calls of a function in a shared library, or of a kernel in a cubin.

What an operator does is code that no compiler sees: a C++ or a Triton kernel, or Python that reads memory. So its
function of ATen ops is declared, and traced where the operator is called, below autograd: register_autograd, autocast
and functorch of the operator are its own. Sharding follows from the ops of the function. Or it stays one op of the
graph, with what is declared of it: the function or kernel that computes it, and its sharding.
"""
from __future__ import annotations

import ctypes
import dataclasses
import functools
import hashlib
import os
import re
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

import torch

from ...torch_api.operators import (OpOverload, OpOverloadPacket, autograd_functions_of, is_triton_operator, opname_of,
                                    overload_of, overloadname_of, qualified_name_of, schema_of)
from ...torch_api.tracing import disable_proxy_modes_tracing, pytree
from ..errors import Frame, error_at
from ..observe.dispatch_mode import Handler, OpCall, Phase
from ..observe.memory import memory_of

# Whose operators the graph itself is made of.
_OWN_NAMESPACES = ("aten", "prim", "prims", "spmd")

# Arguments that a function in a library gets: a tensor, or numbers.
_ARGUMENTS = ("Tensor", "int", "float", "bool", "number", "Scalar", "SymInt", "List[int]", "List[float]", "List[SymInt]")

# The machine of an ELF file that is a cubin.
_MACHINE_CUDA = 190

_decompositions: dict[str, Callable] = {}  # by "namespace::name" or "namespace::name.overload"
_kernels: dict[str, Kernel] = {}  # likewise


@dataclasses.dataclass(frozen=True)
class Kernel:
    """An operator that is a function in a shared library, a kernel in cubins, or both."""

    op: str  # as nodes name it
    library: Path | None
    symbol: str
    sharding: str
    reduce: tuple[str, ...]
    dtypes: tuple[torch.dtype, ...]
    cubins: dict[str, Path]  # by chip
    launch: str

    def files(self) -> list[Path]:
        return [*([self.library] if self.library else []), *self.cubins.values()]

    def record(self) -> dict[str, Any]:
        """Its entry in step.json."""
        def content(file: Path) -> str:
            return hashlib.sha256(file.read_bytes()).hexdigest()

        entry: dict[str, Any] = {"op": self.op, "sharding": self.sharding, "reduce": list(self.reduce)}
        if self.library:
            entry |= {"library": self.library.name, "sha256": content(self.library), "symbol": self.symbol}
        if self.cubins:
            entry |= {"launch": self.launch, "cubins": [{"chip": chip, "file": file.name, "sha256": content(file)}
                                                        for chip, file in self.cubins.items()]}
        return entry

    def __str__(self) -> str:
        return f"a function in '{self.library}'" if self.library else f"the kernel {self.launch.partition('<')[0]!r}"


def register_kernel(op: Any, library: str | os.PathLike | None = None, symbol: str | None = None, sharding: str = "",
                    reduce: str | Sequence[str | None] | None = None, dtypes: Sequence[torch.dtype] = (torch.float32,), *,
                    cubins: Mapping[str, str | os.PathLike] | None = None, launch: str | None = None) -> None:
    """Declares that an operator of torch.library is a function in a shared library, which the ranks call, or on GPUs a
    kernel that they launch, and how its tensors may be sharded.

    The function is `void symbol(const DLTensor *arguments, const DLTensor *results)` of dlpack.h. It gets the operator's
    arguments in the order of its schema, numbers as 0-dimensional tensors (int64, float64, bool), lists of them as
    1-dimensional ones, and writes the results. Tensors are on the CPU, contiguous, and those of one rank: smaller where
    they are sharded. Ranks call it from several threads at once.

    The kernel gets what `launch` says: "gained<<<(row * column + 255) / 256, 256>>>(x, gain, float power, result)" is a
    kernel, its grid, its block, bytes of shared memory if any, and its parameters. A tensor is named, as in the operator's
    schema ("result", or "result0", "result1", … are those that it returns), and given as a pointer; a number has a type
    in front: bool, int, unsigned, int64_t, float or double. Numbers are computed from constants, the operator's numbers,
    the names in `sharding`, size(tensor, dim) and numel(tensor): of what a rank has.

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
      cubins: files with the kernel's machine code, by chip: {"sm_90": "gained.sm_90.cubin"}. Artifacts have a copy.
      launch: how the kernel is launched; with cubins.

    Raises:
      ValueError: no such operator, one that has a declaration already, or that has arguments or results which a function
        in a library cannot have; no such library or function, no such cubin; a `reduce` that is none, `dtypes` that are
        none; neither a library nor cubins.
    """
    overload = _overload(op)
    schema = schema_of(overload)
    name = overload.name()
    if name in _decompositions or name in _kernels:
        raise ValueError(f"{name} has a declaration already, with which steps may have been compiled; a process can "
                         "declare one only")
    for argument in schema.arguments:
        if str(argument.type) not in _ARGUMENTS or argument.alias_info is not None and argument.alias_info.is_write:
            raise ValueError(f"argument {argument.name!r} of {name} is {'written to' if argument.alias_info else argument.type}; "
                             "a function in a library gets tensors that it reads, and numbers\n  hint: declare what the "
                             "operator computes: spmd.register_decomposition")
    if not schema.returns or any(str(r.type) != "Tensor" or r.alias_info is not None for r in schema.returns):
        raise ValueError(f"{name} does not return new tensors; a function in a library does\n  hint: declare what the operator "
                         "computes: spmd.register_decomposition")
    if not dtypes or any(not isinstance(dtype, torch.dtype) or not dtype.is_floating_point for dtype in dtypes):
        raise ValueError(f"dtypes of {name} are {list(dtypes)}; expected floating types: torch.float32, …")
    if library is None and not cubins:
        raise ValueError(f"{name} has neither a function for CPUs (library and symbol) nor a kernel for GPUs (cubins and launch)")
    if (library is None) != (symbol is None) or bool(cubins) != bool(launch):
        raise ValueError(f"{name} has one half of a declaration; library comes with symbol, cubins with launch")
    _kernels[name] = Kernel(f"{overload.namespace}.{opname_of(overload)}.{overloadname_of(overload)}",
                            _library(name, library, symbol) if library is not None else None, symbol or "", sharding,
                            _reductions(name, sharding, reduce, len(schema.returns)), tuple(dtypes),
                            {chip: _cubin(name, chip, file) for chip, file in (cubins or {}).items()}, launch or "")


def _library(name: str, library: str | os.PathLike, symbol: str) -> Path:
    file = Path(library).absolute()
    try:
        getattr(ctypes.CDLL(str(file)), symbol)
    except (OSError, AttributeError) as error:
        raise ValueError(f"{name} cannot be the function {symbol!r} of '{file}': {error}") from error
    return file


def _cubin(name: str, chip: str, cubin: str | os.PathLike) -> Path:
    file = Path(cubin).absolute()
    if not re.fullmatch(r"sm_\d+[a-z]?", chip):
        raise ValueError(f"{name} has a cubin for {chip!r}; chips are called sm_80, sm_90, …")
    try:
        head = file.read_bytes()[:20]
    except OSError as error:
        raise ValueError(f"{name} has no cubin for {chip}: {error}") from error
    if head[:4] != b"\x7fELF" or int.from_bytes(head[18:20], "little") != _MACHINE_CUDA:
        raise ValueError(f"'{file}', for {chip}, is no cubin, which nvcc -cubin and ptxas write")
    return file


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


class KernelArguments(Handler):
    """Refuses calls of a function in a library with tensors of types that it does not take."""

    phase = Phase.CHECK

    def sees(self, func: Any) -> bool:
        return bool(_kernels) and func.name() in _kernels

    def answer(self, call: OpCall) -> Any:
        kernel = _kernels[call.func.name()]
        for leaf in call.leaves:
            if isinstance(leaf, torch.Tensor) and leaf.dtype.is_floating_point and leaf.dtype not in kernel.dtypes:
                raise error_at(call.stack, f"{call.func.name()} is called with a tensor of {leaf.dtype}, and its function takes "
                               + ", ".join(map(str, kernel.dtypes)),
                               "cast it, or say that the function takes more: spmd.register_kernel(dtypes=[…])")
        return NotImplemented


def kernels_of(ops: Iterable[str]) -> list[Kernel]:
    """Those of the operators of a graph that are functions in libraries, or kernels.

    Raises:
      ValueError: two files have one name.
    """
    named = {kernel.op: kernel for kernel in _kernels.values()}
    found = [named[op] for op in dict.fromkeys(ops) if op in named]
    files: dict[str, Path] = {}
    for file in (file for kernel in found for file in kernel.files()):
        if files.setdefault(file.name, file) != file:
            raise ValueError(f"'{files[file.name]}' and '{file}' have one name, and a package has both in one folder; rename one")
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
        raise ValueError(f"{name} is {_kernels[name]} already, with which steps may have been compiled; a process can declare "
                         "one only")
    if not callable(function):
        raise ValueError(f"the decomposition of {name} is {function!r}; expected a function of its arguments")
    if _decompositions.setdefault(name, function) is not function:
        raise ValueError(f"{name} has a decomposition already, with which steps may have been compiled; a process can "
                         "declare one only")
    return function


def _overload(op: Any) -> OpOverload:
    found = overload_of(op)
    if isinstance(found, str):
        namespace, separator, name = found.partition("::")
        name, _, overload = name.partition(".")
        packet = getattr(getattr(torch.ops, namespace), name, None) if separator and namespace and name else None
        if packet is None:
            raise ValueError(f"there is no operator {found!r}; expected 'namespace::name' of one that torch.library has")
        if overload and overload not in packet.overloads():
            raise ValueError(f"{namespace}::{name} has no overload {overload!r}; it has {', '.join(packet.overloads())}")
        found = getattr(packet, overload) if overload else packet
    qualified = qualified_name_of(found)
    if qualified.split("::")[0] in _OWN_NAMESPACES:
        raise ValueError(f"{qualified} is not an operator of torch.library; only those can have decompositions")
    if isinstance(found, OpOverloadPacket):
        if len(found.overloads()) > 1:
            raise ValueError(f"{found} has the overloads {', '.join(found.overloads())}; name one: "
                             f"'{qualified}.{found.overloads()[0]}'")
        found = getattr(found, found.overloads()[0])
    if not isinstance(found, OpOverload):
        raise ValueError(f"expected an operator as 'namespace::name' or as returned by torch.library.custom_op, got {op!r}")
    return found


def functions() -> Iterator[Callable]:
    """The user's code that a step may reach through declared operators: decompositions, and what
    register_autograd got. What they read from globals counts as read by the step."""
    yield from _decompositions.values()
    for name in (*_decompositions, *_kernels):
        yield from autograd_functions_of(name)


def decomposition(call: OpCall) -> Callable | None:
    """What is traced in an operator's place. None for what stays one op of the graph: the compiler's own, and those that a dialect
    plugin may know (the import says so where none does)."""
    function = _decompositions.get(call.func.name())
    return functools.partial(_run, call, function) if function is not None else None


def _run(call: OpCall, function: Callable, *args: Any, **kwargs: Any) -> Any:
    """The function's results, as the operator would give them: new tensors of its types."""
    given = {memory_of(t) for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
    with call.traced():
        result = function(*args, **kwargs)
    leaves, spec = pytree.tree_flatten(result)
    # An operator's results share no memory with its arguments: a later write to one must not change the other.
    with call.traced():
        leaves = [t.clone() if isinstance(t, torch.Tensor) and memory_of(t) in given else t
                  for t in leaves]
    _check(call.func, function, call.stack, leaves, _expected(call.func, args, kwargs))
    return pytree.tree_unflatten(leaves, spec)


def _expected(func: OpOverload, args: tuple, kwargs: dict[str, Any]) -> list[Any] | None:
    """What register_fake says of the results; None if nobody has said it. A Triton operator's own code is its shape
    function, and launches kernels."""
    if is_triton_operator(func.name()):
        return None
    try:
        with disable_proxy_modes_tracing():
            return pytree.tree_leaves(func(*args, **kwargs))
    except (RuntimeError, NotImplementedError) as error:
        if "fake impl" not in str(error):
            raise
        return None


def _check(func: OpOverload, function: Callable, stack: tuple[Frame, ...], results: list[Any],
           expected: list[Any] | None) -> None:
    def words(leaves: list[Any]) -> str:
        return ", ".join(f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)}" if isinstance(t, torch.Tensor)
                         else repr(t) for t in leaves) or "nothing"

    if expected is not None and words(results) != words(expected):
        raise error_at(stack, f"the decomposition {getattr(function, '__qualname__', function)!r} of {func.name()} returns "
                              f"{words(results)}; expected {words(expected)}, as its register_fake",
                       "return the same shapes and dtypes from both")
