"""Gradients that outlive a call of a step, for the calls after it: accumulation over calls.

[Note: gradients over calls] `if (i + 1) % k == 0: optimizer.step()` makes a step of several programs. One leaves
gradients behind, another adds its own to them, updates and clears them. All of them have the gradients as sharded state
`grad`, and all of the optimizer's state, so that they train one arena; each call's gradients are reduced, and added to
the rank's part. A cleared gradient is zero on the ranks and None in Python. Which gradients are there when a call begins
is part of what chooses its program: zero stands for None only where the step adds to it before it does anything else.
"""
from __future__ import annotations

import dataclasses
from typing import Collection, Iterable, Iterator

import torch
import torch.fx

from ...offloaded import slots
from ...torch_api.operators import has_schema, schema_of
from ...torch_api.tracing import DisableTorchFunctionSubclass
from ..observe.op_recorder import provenance
from .optimizers import Optimizers

aten = torch.ops.aten
_ZEROES = (aten.zero_.default, aten._foreach_zero_.default)


@dataclasses.dataclass(frozen=True)
class Gradients:
    """What a step does with gradients from before it, by the names of their parameters.

    `taken`: those that may be there when it begins; `read`: of these, the ones whose values it reads; `needed`: of these,
    the ones that must be there. `left`: those that are there
    afterwards; `cleared`: those that are not, and of which the ranks then have zeros. What is in neither is as it was.
    `unkept`: those it leaves that the ranks do not keep. `copied`: those that are not there afterwards, and of which the
    ranks have what the optimizer got, to be looked at. `ignored`: it does nothing with any, and all may be there.
    """

    taken: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()
    needed: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()
    cleared: frozenset[str] = frozenset()
    unkept: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    ignored: bool = False


def first_use(graph: torch.fx.Graph, gradient: torch.fx.Node) -> str:
    """What the graph does first with a gradient: "none", "replace" it, "add" to it in backward(), or "read" it in any
    other way. Zero stands for no gradient in all but the last: an optimizer leaves a parameter without a gradient as it
    is, and moves one whose gradient is zero."""
    replaced = False
    for node in _uses(graph, gradient):
        written = node.args[0] if node.args else None
        if node.target in _ZEROES:
            replaced = True
        elif node.target is aten.copy_.default and node.args[1] is not written:
            return "replace"
        elif node.target is aten.add_.Tensor and provenance(node).phase == "backward" and node.args[1] is not written:
            return "replace" if replaced else "add"
        else:
            return "read"
    return "replace" if replaced else "none"


def _uses(graph: torch.fx.Graph, tensor: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """The nodes that use a tensor, or the result of an op that has written it, in order."""
    names = {tensor}
    for node in graph.nodes:
        if names.isdisjoint(node.all_input_nodes) or node.op != "call_function":
            continue
        yield node
        if has_schema(node.target) and schema_of(node.target).name.endswith("_") and node.args and node.args[0] in names:
            names.add(node)


def with_gradient(parameters: Iterable[torch.Tensor]) -> frozenset[int]:
    """The ids of the parameters that have a gradient."""
    with DisableTorchFunctionSubclass():
        return frozenset(id(p) for p in parameters if p.grad is not None)


def names_of(ids: Collection[int], tensors: dict[int, tuple[str, torch.Tensor, list[str]]]) -> list[str]:
    """The first names of the parameters with these ids, of what fakes.tensor_names gave."""
    return [names[0] for number, (kind, _, names) in tensors.items() if kind == "param" and number in ids]


def _gradients_of(ids: Collection[int], model: torch.nn.Module, optimizers: Optimizers) -> list[torch.Tensor]:
    with DisableTorchFunctionSubclass():
        return [p.grad for p in (*model.parameters(), *optimizers.parameters) if id(p) in ids]


def has_values(ids: Collection[int], model: torch.nn.Module, optimizers: Optimizers) -> bool:
    """Whether some of these parameters' gradients are more than what a step has left and the ranks have not kept."""
    return any(not list(slots((gradient,))) for gradient in _gradients_of(ids, model, optimizers))


def fetch_gradients(ids: Collection[int], model: torch.nn.Module, optimizers: Optimizers) -> None:
    """Brings the gradients of these parameters here, but for those that the ranks have not kept."""
    for slot in slots(_gradients_of(ids, model, optimizers)):
        if slot.is_kept:
            slot.fetch()
