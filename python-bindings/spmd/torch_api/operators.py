"""Operators of torch.ops and torch.library: schemas, names, and what custom operators declare."""
from __future__ import annotations

from operator import attrgetter
from typing import Any, Callable, Iterator

import torch
from torch._library import custom_ops as _custom_ops
from torch._library import triton as _triton
# The classes of operators; torch.ops has only instances.
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket

schema_of = attrgetter("_schema")  # arguments, results, and which of them alias; torch.library only takes schemas
opname_of = attrgetter("_opname")  # "add" of aten::add.Tensor; the public name() has the three parts in one string
overloadname_of = attrgetter("_overloadname")  # "Tensor" of aten::add.Tensor

# Whether an operator, by its name, has a kernel for a dispatch key. The public query of OpOverload sees Python kernels
# only.
dispatch_has_kernel_for_dispatch_key = torch._C._dispatch_has_kernel_for_dispatch_key
# The dispatch key of operators that consist of other operators.
COMPOSITE_IMPLICIT_AUTOGRAD = torch._C.DispatchKey.CompositeImplicitAutograd

# Removes the kernels that a Library has registered; in public they stay until the Library is garbage.
destroy_library = torch.library.Library._destroy


def has_schema(target: Any) -> bool:
    """Whether the target of a node is an operator with a schema."""
    return hasattr(target, "_schema")


def overload_of(op: Any) -> Any:
    """The operator behind the object that torch.library.custom_op returns; any other value as it is."""
    return getattr(op, "_opoverload", op)


def qualified_name_of(op: Any) -> str:
    """The name "namespace::name" of an OpOverload or an OpOverloadPacket; empty for any other value."""
    return getattr(op, "_qualified_op_name", None) or getattr(op, "_name", "")


def autograd_functions_of(name: str) -> Iterator[Callable]:
    """The functions that register_autograd received for a custom operator; PyTorch has no public query for them."""
    opdef = getattr(_custom_ops, "OPDEFS", {}).get(name)
    yield from (f for f in (getattr(opdef, "_backward_fn", None), getattr(opdef, "_setup_context_fn", None)) if f)


def is_triton_operator(name: str) -> bool:
    """Whether torch.library.triton_op made the operator; PyTorch has no public query for it."""
    return name in getattr(_triton, "triton_ops_to_kernels", {})
