"""The graph of a traced step, with what its nodes stand for."""
from __future__ import annotations

import dataclasses

import torch
import torch.fx

from ...torch_api.operators import OpOverload
from ..loops.iterations import Repeat, of_iteration
from ..model.activation_checkpoint import Checkpoints
from ..model.inputs import Input
from ..model.run import Run
from ..observe.op_recorder import provenance
from ..optimizer.gradients import Gradients, first_use
from ..optimizer.optimizer_numbers import OptimizerNumbers
from ..values.value_guards import ValueGuards
from ..world.environment import Environment
from ..world.held import Held
from ..world.reads.guards import ReadGuards
from ..world.reads.writes import Write
from ..world.seeds import SeededGenerators
from ..world.settings import Setting
from .outputs import Results


@dataclasses.dataclass
class Trace:
    """A traced step. `inputs` are the graph's placeholders in order, then its constants, each with its nodes.

    `results` has an Output in the place of each traced value. `held`: what the step reaches without an argument.
    """

    graph: torch.fx.Graph
    inputs: list[tuple[Input, list[torch.fx.Node]]]
    outputs: list[torch.fx.Node]
    results: Results
    gradients: Gradients = Gradients()
    stepped_gradients: list[str] = dataclasses.field(default_factory=list)  # of parameters that optimizers got
    held: Held = dataclasses.field(default_factory=Held)
    environment: Environment | None = None  # of which `held` is what is used
    run: Run = Run()
    updates: int = 1  # how often the step calls an optimizer's step()
    stepped: frozenset[int] = frozenset()  # the ids of the optimizers whose step() it calls
    optimizer_numbers: OptimizerNumbers = dataclasses.field(default_factory=OptimizerNumbers)
    untouched: frozenset[str] = frozenset()  # gradients that are as they were
    seeds: SeededGenerators = dataclasses.field(default_factory=SeededGenerators)
    reads: ReadGuards = dataclasses.field(default_factory=ReadGuards)  # what its Python has read
    python_writes: list[Write] = dataclasses.field(default_factory=list)  # what its Python writes
    guards: ValueGuards = dataclasses.field(default_factory=ValueGuards)  # what the step was told of its batch
    first_step_differs: bool = False  # an optimizer has taken no step, and computes its first one otherwise
    repeats: list[Repeat] = dataclasses.field(default_factory=list)
    settings: list[Setting] = dataclasses.field(default_factory=list)  # of modules
    checkpoints: Checkpoints = dataclasses.field(default_factory=Checkpoints)


def gradients_of(traced: Trace, leftover: list[str]) -> Gradients:
    """What the traced run does with the gradients that it begins with. `leftover`: parameters whose gradients outlive it."""
    taken = traced.run.gradients
    kept = {i.name: nodes[0] for i, nodes in traced.inputs if i.state == "grad"}
    uses = {name: first_use(traced.graph, node) for name, node in kept.items()}
    used = {name for name, use in uses.items() if use != "none"}
    return Gradients(frozenset(taken), frozenset(name for name, use in uses.items() if use in ("add", "read")),
                     frozenset(name for name, use in uses.items() if use == "read"),
                     frozenset(used & set(leftover)), frozenset(taken) - set(leftover),
                     tuple(name for name in leftover if name not in kept and name not in traced.untouched), traced.run.copied)


def loss_output(traced: Trace) -> tuple[int | None, torch.fx.Node | None]:
    """Which output is the loss: (its index, its node).

    It is the tensor that backward() was called on, possibly detached or read with .item() before it is returned. When
    the step returns something else (a sum of microbatch losses), the first floating 0-dim output stands for it; when it
    returns none, the index is None and the node is the tensor of the first backward().
    """
    seeds = [n.args[0] for n in traced.graph.nodes if n.op == "call_function" and provenance(n).seed]
    for index, node in enumerate(traced.outputs):
        while node not in seeds and (node.target is of_iteration or isinstance(node.target, OpOverload)
                                     and node.target.overloadpacket.__name__ in ("detach", "alias", "clone", "_to_copy", "_local_scalar_dense")):
            node = node.args[0]
        if node in seeds:
            return index, traced.outputs[index]
    for index, node in enumerate(traced.outputs):
        value = node.meta["val"]
        if isinstance(value, torch.SymFloat) or (isinstance(value, torch.Tensor) and value.dim() == 0
                                                 and value.dtype in (torch.float32, torch.float64)):
            return index, node
    return None, seeds[0] if seeds else None
