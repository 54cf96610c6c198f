"""Python arithmetic on what .item() gave: in the graph it is an op on 0-dim tensors of f64 and i64, which give the bits that
Python's floats and integers give (integers as far as 64 bits go).

Of a floating tensor .item() gives a Number while a step runs, whose arithmetic is calls of PyTorch's functions, as that of
tensors is: iterations that add up losses are compared like all others (microbatches.py). Whoever wants anything else of it
meets PyTorch's symbol of a number that a graph has, as .item() gives of other tensors."""
from __future__ import annotations

import operator
from typing import Any, Callable

import torch
from torch.fx import Graph, Node

from ...torch_api.tracing import pytree
from ..errors import error_at
from ..observe.function_mode import FunctionPhase

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
        raise error_at(stamp.stack if stamp else (), f"whole numbers of a step have 64 bits, and one is computed with {value}",
                       f"compute with float({value}), or with what the step returns")
    with node.graph.inserting_before(node):
        if isinstance(value, Node):
            made = node.graph.call_function(_aten._to_copy.default, (value,), {"dtype": dtype})
        else:
            made = node.graph.call_function(_aten.full.default, ([], kind(value)), {"dtype": dtype})
    made.meta = node.meta | {"val": torch.empty((), dtype=dtype, device="meta")}
    return made


class Number(torch.SymFloat):
    """A number that a step computes; `tensor` is it, 0-dim and of f64."""

    def __init__(self, tensor: torch.Tensor):
        self.tensor, self._symbol = tensor, None

    @property
    def node(self) -> Any:
        return self.symbol.node

    @property
    def symbol(self) -> torch.SymFloat:
        """PyTorch's symbol of it, which is a node of the graph from here on."""
        if self._symbol is None:
            self._symbol = _aten._local_scalar_dense.default(self.tensor)
        return self._symbol

    def __pos__(self) -> Number:
        return self

    def __neg__(self) -> Number:
        return Number(-self.tensor)

    def __abs__(self) -> Number:
        return Number(self.tensor.abs())


def _arithmetic(name: str, compute: Callable, is_reflected: bool) -> Callable:
    """A method of Number on another one, or on a Python number."""
    def method(self: Number, other: Any) -> Any:
        if isinstance(other, Number):
            value = other.tensor
        elif type(other) in (float, int, bool):
            if compute is torch.div and not is_reflected and other == 0:
                raise ZeroDivisionError("float division by zero")
            value = torch.full((), float(other), dtype=torch.float64)
        else:
            return getattr(super(Number, self), name)(other)
        return Number(compute(value, self.tensor) if is_reflected else compute(self.tensor, value))
    return method


for _name, _compute in (("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("truediv", torch.div)):
    setattr(Number, f"__{_name}__", _arithmetic(f"__{_name}__", _compute, False))
    setattr(Number, f"__r{_name}__", _arithmetic(f"__r{_name}__", _compute, True))


class PythonNumbers:
    """Gives Numbers for .item() of tensors of which `is_computed` says so, and symbols in their place to PyTorch's functions."""

    function_phase = FunctionPhase.NUMBER

    def __init__(self, is_computed: Callable[[torch.Tensor], bool]):
        self._is_computed = is_computed

    def call(self, func: Callable, args: tuple, kwargs: dict[str, Any], below: Callable) -> Any:
        """As FunctionHandler.call."""
        if func is torch.Tensor.item and self._is_computed(args[0]):
            return Number(below(torch.Tensor.to, (below(torch.Tensor.detach, args, {}), torch.float64), {"copy": True}))
        return below(func, with_symbols(args), with_symbols(kwargs))


def symbol_of(value: Any) -> Any:
    """A number as PyTorch knows it; any other value as it is."""
    return value.symbol if isinstance(value, Number) else value


def with_symbols(arguments: Any) -> Any:
    """The arguments of one of PyTorch's functions, which knows symbols only."""
    values = arguments.values() if isinstance(arguments, dict) else arguments
    if not any(type(value) in (Number, list, tuple) for value in values):
        return arguments
    if not any(isinstance(leaf, Number) for leaf in pytree.tree_leaves(arguments)):
        return arguments
    return pytree.tree_map(symbol_of, arguments)
