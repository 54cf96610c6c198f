"""Python arithmetic on what .item() gave: in the graph it is an op on 0-dim tensors of f64 and i64, which give the bits that
Python's floats and integers give (integers as far as 64 bits go).

Of a floating tensor .item() gives a Number while a step runs, whose arithmetic is calls of PyTorch's functions, as that of
tensors is: iterations that add up losses are compared like all others (microbatches.py). Whoever wants anything else of it
meets PyTorch's symbol of a number that a graph has, as .item() gives of other tensors."""
from __future__ import annotations

import operator
from typing import Any, Callable, Iterable

import torch
from torch.fx import Graph, Node

from ...torch_api.tracing import pytree
from ..errors import error_at
from ..observe.function_mode import FunctionPhase
from .number import Number, is_like_number, is_number_tensor, mark_number, symbol_of
from .number_arguments import OF_NUMBERS, call_with_tensors, with_numbers

_aten = torch.ops.aten
_BINARY = {operator.add: _aten.add.Tensor, operator.sub: _aten.sub.Tensor, operator.mul: _aten.mul.Tensor,
           operator.truediv: _aten.div.Tensor}
_MOST = 2**31  # of a whole number that others are computed with, so that counts stay far from 64 bits
_UNARY = {operator.neg: _aten.neg.default, operator.abs: _aten.abs.default}


def name_numbers(graph: Graph) -> None:
    """Makes each such node of a trace an op, in place; what has none stays, and is an error when it is written down."""
    for node in list(graph.nodes):
        if node.op != "call_function" or node.kwargs:
            continue
        if node.target is torch.sym_float:
            node.target, node.kwargs = _aten._to_copy.default, {"dtype": torch.float64}
        elif node.target in _UNARY:
            node.target = _UNARY[node.target]
        elif node.target is operator.pos:
            node.target = _aten.alias.default
        elif node.target in _BINARY:
            # True division of integers is one of floats.
            kind = float if isinstance(node.meta["val"], torch.SymFloat) else int
            node.args = tuple(_operand(node, value, kind) for value in node.args)
            node.target = _BINARY[node.target]


def _operand(node: Node, value: Any, kind: type) -> Node:
    """An operand of `node`, of `kind`."""
    dtype = torch.float64 if kind is float else torch.int64
    if isinstance(value, Node) and isinstance(value.meta["val"], torch.SymFloat) == (kind is float):
        return value
    if kind is int and not isinstance(value, Node) and abs(value) > _MOST:
        stamp = (node.meta.get("custom") or {}).get("spmd")
        raise error_at(stamp.stack if stamp else (), f"the integer {value} does not fit 64 bits: integers of a compiled step "
                                                     "have 64 bits",
                       f"use float({value}), or compute after the call with the step's return value")
    with node.graph.inserting_before(node):
        if isinstance(value, Node):
            made = node.graph.call_function(_aten._to_copy.default, (value,), {"dtype": dtype})
        else:
            made = node.graph.call_function(_aten.full.default, ([], kind(value)), {"dtype": dtype})
    made.meta = node.meta | {"val": torch.empty((), dtype=dtype, device="meta")}
    return made


class PythonNumbers:
    """Gives Numbers for .item() of tensors of which `is_computed` says so, and takes Numbers in the arguments of PyTorch's
    functions: as tensors where the graph has none of them (number_arguments.py), otherwise as symbols."""

    function_phase = FunctionPhase.NUMBER

    def __init__(self, is_computed: Callable[[torch.Tensor], bool]):
        self._is_computed = is_computed

    def call(self, func: Callable, args: tuple, kwargs: dict[str, Any], below: Callable) -> Any:
        """As FunctionHandler.call."""
        if func is torch.Tensor.item and self._is_computed(args[0]):
            return Number(below(torch.Tensor.to, (below(torch.Tensor.detach, args, {}), torch.float64), {"copy": True}))
        if getattr(func, "__name__", "") in OF_NUMBERS:
            args, kwargs = with_numbers(args, kwargs)
        if len(args) == 2 and not kwargs and is_like_number(args[0]) \
                and (found := _on_tensors(func, args, below)) is not NotImplemented:
            return found
        if not has_numbers(args) and not has_numbers(kwargs.values()):
            return below(func, args, kwargs)
        other = call_with_tensors(func, args, kwargs, below)
        return below(func, with_symbols(args), with_symbols(kwargs)) if other is NotImplemented else other


_OPERATORS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "truediv": operator.truediv,
              "pow": operator.pow}
_COMPARISONS = {"gt", "ge", "lt", "le", "eq", "ne"}


def _on_tensors(func: Callable, args: tuple, below: Callable) -> Any:
    """Arithmetic of a 0-dim tensor of f64 on a number; NotImplemented for any other function."""
    left, right = args
    name = getattr(func, "__name__", "")
    base = name.strip("_")
    is_reflected = base.startswith("r") and base[1:] in _OPERATORS
    base = base[1:] if is_reflected else base
    if base not in _OPERATORS and base not in _COMPARISONS:
        return NotImplemented
    is_in_place = name.endswith("_") and not name.endswith("__") or name.startswith("__i")
    if isinstance(right, Number):
        if not is_number_tensor(left) or is_in_place or base in _COMPARISONS:
            return below(func, (left, right.tensor), {})
        number = Number(left, is_known=True)
        return _OPERATORS[base](right, number) if is_reflected else _OPERATORS[base](number, right)
    if is_in_place or base in _COMPARISONS or not is_number_tensor(left) \
            or not (is_number_tensor(right) or type(right) in (int, float, bool)):
        return NotImplemented
    if base in ("div", "truediv") and (left if is_reflected else right) == 0:  # of a learning rate a guard
        raise ZeroDivisionError("float division by zero")
    return mark_number(below(func, args, {}))


def has_numbers(values: Iterable[Any]) -> bool:
    """Whether a Number is among the arguments of a function, or in their lists."""
    values = list(values)
    return any(type(value) in (Number, list, tuple) for value in values) \
        and any(isinstance(leaf, Number) for leaf in pytree.tree_leaves(values))


def with_symbols(arguments: Any) -> Any:
    """The arguments of one of PyTorch's functions, which knows symbols only."""
    return pytree.tree_map(symbol_of, arguments)
