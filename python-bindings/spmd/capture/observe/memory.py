"""Which memory a tensor lies in."""
from __future__ import annotations

import torch


def memory_of(tensor: torch.Tensor) -> int:
    """Equal for tensors that lie in the same memory, real or fake, while one of them lives."""
    return tensor.untyped_storage()._cdata
