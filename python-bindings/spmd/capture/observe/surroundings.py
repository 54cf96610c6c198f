"""What is entered around a call, and changes what its ops do: a graph is traced within it, and is another one without."""
from __future__ import annotations

from typing import Any

import torch

from ...torch_api.autograd import top_saved_tensors_default_hooks
from ...torch_api.tracing import get_current_function_mode_stack


def surroundings() -> tuple[str, ...]:
    """Autocast, no_grad, function modes (a default device is one) and hooks of saved tensors, in words."""
    found = [f"autocast of {device} to {torch.get_autocast_dtype(device)}" for device in ("cpu", "cuda")
             if torch.is_autocast_enabled(device)]
    found += [] if torch.is_grad_enabled() else ["no gradients"]
    found += [f"{_name(type(mode))}({getattr(mode, 'device', '')})" for mode in get_current_function_mode_stack()]
    hooks = top_saved_tensors_default_hooks(False)
    return (*found, *([f"hooks of saved tensors ({', '.join(map(_name, hooks))})"] if hooks else []))


def _name(value: Any) -> str:
    """The same for those that the same line has made."""
    return f"{value.__module__}.{value.__qualname__}" if hasattr(value, "__qualname__") else repr(value)
