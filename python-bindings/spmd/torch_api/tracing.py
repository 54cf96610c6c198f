"""Fake tensors, the tracer of operators, dispatch modes, trees of values, and graphs of torch.fx."""
from __future__ import annotations

import inspect
from operator import attrgetter
from typing import Any

import torch
import torch.fx
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
# Tensors without values, and the mode that computes their shapes. torch.export makes a mode of its own.
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
# A region in which torch.fx generates no Python code for a graph.
from torch.fx._lazy_graph_module import _use_lazy_graph_module as use_lazy_graph_module
# The tracer, its active mode, and a region that it does not record. torch.export traces forward functions only.
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, get_proxy_mode, get_proxy_slot, make_fx
# The active TorchFunctionModes; a default device is one of them.
from torch.overrides import _get_current_function_mode_stack as get_current_function_mode_stack
# Nested containers as leaves and a structure. torch.utils.pytree is public in newer releases only.
from torch.utils import _pytree as pytree
# The base of modes that handle each operator, and a region without any of them.
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._python_dispatch import _disable_current_modes as disable_current_modes

# The modules that compute the shapes of operators, by the beginnings of their names.
SHAPE_FUNCTION_MODULES = ("torch._meta_registrations", "torch._refs", "torch._decomp", "torch._prims",
                          "torch._subclasses")

# Regions without __torch_dispatch__, without __torch_function__, and without the __torch_function__ of subclasses
# (function modes stay active). torch.overrides and torch.utils have no equivalent of the first and the third.
DisableTorchDispatch = torch._C._DisableTorchDispatch
DisableTorchFunction = torch._C.DisableTorchFunction
DisableTorchFunctionSubclass = torch._C.DisableTorchFunctionSubclass

# A region outside of the transforms of torch.func that are active, which would wrap the tensors of the region.
outside_transforms = temporarily_clear_interpreter_stack

# The number of active dispatch modes; there is no public query.
len_torch_dispatch_stack = torch._C._len_torch_dispatch_stack


def make_fx_options() -> dict[str, Any]:
    """The options of make_fx, as far as this release has them: 2.10 cannot turn off the mode that records torch
    functions, whose records are not used."""
    # "real" under the caller's own fake mode: "fake" would make new fakes, unknown to model and optimizer
    options = {"tracing_mode": "real", "_disable_torch_fn_metadata_mode": True}
    return {name: value for name, value in options.items() if name in inspect.signature(make_fx).parameters}


def traced_node(tensor: torch.Tensor) -> torch.fx.Node:
    """The node of the running trace that made a tensor."""
    return get_proxy_slot(tensor, get_proxy_mode().tracer).proxy.node


# ---- Graphs of torch.fx ----

CAN_APPEND_NODES = all(hasattr(torch.fx.Graph(), name) for name in ("_insert", "_find_nodes_lookup_table", "_len"))


def append_node(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    """Appends a node as Graph.create_node does after its search for a unique name. Requires CAN_APPEND_NODES."""
    graph._insert(node)
    graph._find_nodes_lookup_table.insert(node)
    graph._len += 1


def last_node_of(graph: torch.fx.Graph) -> torch.fx.Node:
    """The last node of a graph; graph.nodes can only be iterated."""
    return graph._root.prev


# Parts of the module that ExportedProgram.module() returns: the structures of inputs and outputs, and the name of the
# submodule that checks the inputs. The public in_spec and out_spec belong to the program, which the module does not
# refer to.
in_spec_of = attrgetter("_in_spec")
out_spec_of = attrgetter("_out_spec")
GUARDS_MODULE = "_guards_fn"


def has_specs(module: torch.fx.GraphModule) -> bool:
    """Whether the module has in_spec_of() and out_spec_of()."""
    return hasattr(module, "_in_spec") and hasattr(module, "_out_spec")
