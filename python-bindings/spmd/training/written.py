"""Whether parameters and buffers are written meanwhile, also in ways that PyTorch does not count (p.data)."""
from __future__ import annotations

import torch

from ..offloaded import slot_of
from ..torch_api.tracing import DisableTorchFunctionSubclass


class WrittenTensors:
    """The values of a model's tensors at a time. What the ranks have is not read before it is used."""

    def __init__(self, model: torch.nn.Module):
        self._copies: list[tuple[str, torch.Tensor, torch.Tensor]] = []
        self._slots = []
        with DisableTorchFunctionSubclass(), torch.no_grad():
            for name, tensor in (*model.named_parameters(), *model.named_buffers()):
                slot = slot_of(tensor)
                if slot is None:
                    self._copies.append((name, tensor, tensor.clone()))
                else:
                    self._slots.append((name, slot))

    def first(self) -> str | None:
        """The name of the first tensor that has another value now; None: all have their values."""
        with torch.no_grad():
            for name, tensor, copy in self._copies:
                if slot_of(tensor) is None and not torch.equal(tensor, copy):
                    return name
        return next((name for name, slot in self._slots if slot.is_written()), None)
