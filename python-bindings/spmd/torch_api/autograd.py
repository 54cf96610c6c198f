"""Autograd: its nodes and their hooks, the running backward(), gradient mode, and hooks of saved tensors."""
from __future__ import annotations

from operator import attrgetter, methodcaller
from typing import Any, Callable

import torch
import torch.utils.checkpoint

from .tracing import DisableTorchFunctionSubclass

# The running node of backward(), else None, and the number of the running backward(), else -1. There are no public
# queries.
current_autograd_node = torch._C._current_autograd_node
current_graph_task_id = torch._C._current_graph_task_id

# The number that the next node of the forward receives, and the number of a node: they map backward to forward.
get_sequence_nr = torch.autograd._get_sequence_nr
sequence_nr_of = methodcaller("_sequence_nr")

# The autograd.Function of a node; the node's own class is generated.
forward_class_of = attrgetter("_forward_cls")

# The function that torch.no_grad() and torch.set_grad_enabled() call, as a TorchFunctionMode receives it.
set_grad_enabled = torch._C._set_grad_enabled

# The attribute that torch.utils.checkpoint.checkpoint calls, of the function that it wraps; checkpoint() sets the attribute at its
# first call. All names and partials of checkpoint() go through it.
CHECKPOINT_CALLEE = "__dynamo_disable"

# The mode of the forward of a selective checkpoint; its `policy_fn` chooses what is saved.
SelectiveCheckpointMode = torch.utils.checkpoint._CachingTorchDispatchMode

# The active hooks of torch.autograd.graph.saved_tensors_hooks, else None; there is no public query. Called with False.
top_saved_tensors_default_hooks = torch._C._autograd._top_saved_tensors_default_hooks


class _Input(torch.autograd.Function):
    """Has the node of its input behind it, as a view has, and does not look at the input's memory."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
        return torch.empty(())

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> None:
        return None


def accumulation_hooks_of(parameter: torch.Tensor) -> tuple[Any, list[dict[int, Callable]]]:
    """The AccumulateGrad node of a leaf, and the tables of the hooks that run after it and before it; there is no public query.
    PyTorch makes another node, without hooks, if nothing holds the old one."""
    if not parameter.is_leaf or parameter.is_inference():
        return None, []
    # Without gradients it has no node; and a parameter that the ranks have, whose memory is away, is not read from them.
    with torch.inference_mode(False), torch.enable_grad(), DisableTorchFunctionSubclass():
        node = _Input.apply(parameter).grad_fn.next_functions[0][0]
    return node, [hooks_table(node.register_hook), hooks_table(node.register_prehook)]


def hooks_table(register: Callable[[Callable], Any]) -> dict[int, Callable]:
    """The table that a method of a node adds hooks to. The handle of a hook has a reference to it."""
    handle = register(lambda *unused: None)
    hooks = handle.hooks_dict_ref()
    handle.remove()
    return hooks
