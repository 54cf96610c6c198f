"""From PyTorch's graph module to a Trace: which inputs the graph uses, and what its constants are."""
from __future__ import annotations

import torch
import torch.fx

from ..loops.iterations import Repeat
from ..model.fakes import FakeStep
from ..model.inputs import Input
from ..model.shared_memory import check_memory
from ..world.environment import Environment
from ..world.held import name_tensors
from .graph import Trace
from .normalize import check_pure, is_view_of_any
from .outputs import Results


def used(placeholders: list[torch.fx.Node], repeats: list[Repeat]) -> set[torch.fx.Node]:
    """Those that a node is given, or an iteration in the place of another one."""
    fed = {node for one in repeats for _, nodes in one.fed for node in nodes}
    return {n for n in placeholders if n.users or n in fed}


def collect(module: torch.fx.GraphModule, fakes: FakeStep, environment: Environment, repeats: list[Repeat], results: Results) -> Trace:
    """The trace that a module of PyTorch's tracer is."""
    graph = module.graph
    for node in reversed(list(graph.nodes)):  # Optimizer.step brackets itself for the profiler
        if node.op == "call_function" and str(node.target).startswith("profiler."):
            graph.erase_node(node)
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    dropped = _drop_unread_gradients(graph, fakes, placeholders)
    with_users = used(placeholders, repeats)
    held = environment.held.only(_used_modules(fakes, placeholders, with_users))
    check_memory(fakes.model, held)
    unused = set(environment.held.modules) - set(held.modules)
    inputs = [(i, [n]) for i, n in zip(fakes.inputs, placeholders, strict=True)
              if (i.kind not in ("state", "rng") or n in with_users or fakes.run.accumulates and i.kind == "state" and n not in dropped
                  or (i.name, i.state) in fakes.run.states)
              and not (i.kind in ("param", "buffer") and i.name.split(".")[0] in unused)]
    constants: dict[str, list[torch.fx.Node]] = {}
    for node in graph.nodes:
        if node.op == "get_attr":
            constants.setdefault(node.target, []).append(node)
    hyper = {n for i, nodes in inputs if i.kind == "hyper" for n in nodes}
    fixed = {n for nodes in constants.values() for n in nodes}
    for node in graph.nodes:
        if node.op != "call_function" or fixed.isdisjoint(given := node.all_input_nodes) and hyper.isdisjoint(given):
            continue
        check_pure(node, fixed, hyper)
        for own in (fixed, hyper):
            if is_view_of_any(node, own):
                own.add(node)
    outputs = list(next(n for n in graph.nodes if n.op == "output").args[0])
    tensors = {name: getattr(module, name) for name in constants}
    places = name_tensors(tensors.items(), environment.reached)
    held.tensors = {places[name][0]: (places[name][1], tensor) for name, tensor in tensors.items()}
    inputs += [(Input("constant", places[name][0], None, tensors[name]), nodes) for name, nodes in constants.items()]
    return Trace(graph, inputs, outputs, results, held=held, repeats=repeats, environment=environment, run=fakes.run)


def _used_modules(fakes: FakeStep, placeholders: list[torch.fx.Node], with_users: set[torch.fx.Node]) -> list[str]:
    """Those held modules of which the graph reads or writes a tensor, or whose parameters the optimizer has."""
    used = {i.name for i, n in zip(fakes.inputs, placeholders) if n in with_users and i.kind in ("param", "buffer")}
    used = {name.split(".")[0] for name in used | _trained(fakes)}
    return [name for name in fakes.held.modules if name in used]


def _drop_unread_gradients(graph: torch.fx.Graph, fakes: FakeStep,
                           placeholders: list[torch.fx.Node]) -> set[torch.fx.Node]:
    """The gradient of a held parameter that this step neither trains nor clears (a critic's, in its generator's step)
    grows from call to call, for whoever clears it. Where nothing else reads it here, it need not be computed: it is one
    that the step leaves behind and does not keep. Gives the placeholders of such gradients."""
    trained, dropped = _trained(fakes), set()
    for i, placeholder in zip(fakes.inputs, placeholders):
        if i.state != "grad" or i.name in trained or i.name.split(".")[0] not in fakes.held.modules:
            continue
        sums = [placeholder]
        for node in sums:
            sums += (user for user in node.users if user not in sums)
        if all(n.target is torch.ops.aten.add_.Tensor and n.args[0] in sums for n in sums[1:]):
            dropped.add(placeholder)
            for node in reversed(sums[1:]):
                graph.erase_node(node)
    return dropped


def _trained(fakes: FakeStep) -> set[str]:
    """The parameters that the optimizer has."""
    own = set(map(id, fakes.optimizers.parameters))
    return {i.name for i in fakes.inputs if i.kind == "param" and id(i.fake) in own}


