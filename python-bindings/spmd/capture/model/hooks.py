"""Hooks of parameters, on what stands for them."""
from __future__ import annotations

import torch

from ...torch_api.modules import tensor_hooks_of


def copy_hooks(source: torch.Tensor, target: torch.Tensor) -> None:
    """The hooks of a parameter, which neither a twin nor a deep copy has."""
    backward_hooks, accumulate_hooks = tensor_hooks_of(source)
    for hook in (backward_hooks or {}).values():
        target.register_hook(hook)
    for hook in (accumulate_hooks or {}).values():
        target.register_post_accumulate_grad_hook(hook)
