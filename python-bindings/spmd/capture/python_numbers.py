"""Python arithmetic on what .item() gave: in the graph it is an op on 0-dim tensors of f64 and i64, which give the bits that
Python's floats and integers give (integers as far as 64 bits go)."""
from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, Node

_aten = torch.ops.aten
_BINARY = {operator.add: _aten.add.Tensor, operator.sub: _aten.sub.Tensor, operator.mul: _aten.mul.Tensor,
           operator.truediv: _aten.div.Tensor}
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
    with node.graph.inserting_before(node):
        if isinstance(value, Node):
            made = node.graph.call_function(_aten._to_copy.default, (value,), {"dtype": dtype})
        else:
            made = node.graph.call_function(_aten.full.default, ([], kind(value)), {"dtype": dtype})
    made.meta = node.meta | {"val": torch.empty((), dtype=dtype, device="meta")}
    return made
