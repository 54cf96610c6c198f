"""Shape functions that PyTorch lacks: without one, a fake tensor mode runs the operator on real zeros of full size.

The fused optimizers with a tensor learning rate write in place and return nothing, so there is nothing to compute; but
for Llama-3-8B their zeros (parameters, gradients and two moments) would take 64 GB and most of a capture's time.
"""
from __future__ import annotations

import contextlib
from typing import Iterator

import torch

from ...torch_api.operators import dispatch_has_kernel_for_dispatch_key
from ..observe import patches


def _writes_in_place(*args, **kwargs) -> None:
    return None


@contextlib.contextmanager
def meta_kernels() -> Iterator[None]:
    """While entered, the fused optimizers have shape functions. Process-wide, hence scoped."""
    kernels = {}
    for name in patches.FUSED_OPTIMIZERS.operators:
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads():
            qualified = getattr(packet, overload).name()
            if not dispatch_has_kernel_for_dispatch_key(qualified, "Meta"):
                kernels[f"{name}.{overload}" if overload != "default" else name] = _writes_in_place
    with patches.replaced({patches.FUSED_OPTIMIZERS: kernels}):
        yield
