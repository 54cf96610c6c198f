"""Tensors of a model that share memory."""
from __future__ import annotations

import torch

from ...models import tensor_names
from ...torch_api.tracing import FakeTensor
from ..errors import CaptureError
from ..world.held import Held, whole


def check_memory(model: torch.nn.Module, held: Held) -> None:
    """Different tensors in one memory: eager's update of one changes the other, which no graph would show. Of the
    held modules, those that the step uses."""
    owners: dict[int, str] = {}
    for _, tensor, names in tensor_names(whole(model, held)).values():
        if isinstance(tensor, FakeTensor) or tensor.device.type == "meta" or not tensor.numel():
            continue
        other = owners.setdefault(tensor.untyped_storage().data_ptr(), names[0])
        if other != names[0]:
            raise CaptureError(f"{other!r} and {names[0]!r} share memory without being the same tensor\n"
                               "  hint: tie them by assigning one Parameter to both modules, or clone one of them")
