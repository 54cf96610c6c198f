"""Autograd: its nodes, the running backward(), gradient mode, and hooks of saved tensors."""
from __future__ import annotations

from operator import attrgetter, methodcaller

import torch

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

# The active hooks of torch.autograd.graph.saved_tensors_hooks, else None; there is no public query. Called with False.
top_saved_tensors_default_hooks = torch._C._autograd._top_saved_tensors_default_hooks
