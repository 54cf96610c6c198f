"""Constants of a first step and of the later ones, which are two programs on one state.

The state has a tensor for each name, and both programs list the same names. The tracer names constants by number, so that
one name may stand for different tensors in the two traces.
"""
from __future__ import annotations

import torch

from ..model.inputs import Input
from .graph import Trace


def join_constants(traced: Trace, first: Trace) -> None:
    """Gives both traces the constants of both, in one order; a constant of the first step has a name of its own where its
    value is not that of the later steps."""
    own = _constants(traced)
    taken, names = set(own), {}
    for name, one in _constants(first).items():
        names[name] = name if name in own and _is_same(own[name], one) else _free(name, taken)
        taken.add(names[name])
    first.inputs = [(_renamed(i, names), nodes) for i, nodes in first.inputs]
    first.held.tensors = {names.get(name, name): found for name, found in first.held.tensors.items()}
    _add(traced, first)
    _add(first, traced)
    order = {name: number for number, name in enumerate(_constants(traced))}
    first.inputs.sort(key=lambda entry: order[entry[0].name] if entry[0].kind == "constant" else -1)


def _constants(trace: Trace) -> dict[str, torch.Tensor]:
    return {i.name: i.real for i, _ in trace.inputs if i.kind == "constant"}


def _is_same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a is b or a.dtype == b.dtype and a.shape == b.shape and not (a.is_meta or b.is_meta) and torch.equal(a, b)


def _free(name: str, taken: set[str]) -> str:
    """`name`, or one that is made of it, which is not taken."""
    found, number = name, 0
    while found in taken:
        found, number = f"{name}_first{number or ''}", number + 1
    return found


def _renamed(i: Input, names: dict[str, str]) -> Input:
    return Input("constant", names[i.name], None, i.real) if i.kind == "constant" else i


def _add(trace: Trace, other: Trace) -> None:
    """Lists what only the other one reads as inputs that nothing reads."""
    own = _constants(trace)
    trace.inputs += [(i, []) for i, _ in other.inputs if i.kind == "constant" and i.name not in own]
    trace.held.tensors |= {name: found for name, found in other.held.tensors.items() if name not in trace.held.tensors}
