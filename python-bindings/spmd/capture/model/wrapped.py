"""Models that another library has sharded already."""
from __future__ import annotations

import sys

import torch

from ..errors import CaptureError


def check_not_wrapped(model: torch.nn.Module) -> None:
    """FSDP's parameters are pieces of tensors, which no graph of the whole step has.

    Raises:
      CaptureError: for a model of FSDP1 or FSDP2, with the way to say the same here.
    """
    for path, module in model.named_modules():
        kind = _wrapper(module)
        if kind:
            where = f"module {path!r}" if path else "the model"
            raise CaptureError(f"{where} is wrapped by {kind}: its parameters are already sharded\n  hint: pass the "
                               "unwrapped model; spmd.compile(policy=...) accepts FSDP's wrap policies, and "
                               "spmd.fully_shard the arguments of PyTorch's fully_shard")


def _wrapper(module: torch.nn.Module) -> str:
    fsdp = sys.modules.get("torch.distributed.fsdp")  # nobody has wrapped anything who has not imported it
    if fsdp is None:
        return ""
    if isinstance(module, fsdp.FullyShardedDataParallel):
        return "FullyShardedDataParallel"
    return "PyTorch's fully_shard" if isinstance(module, fsdp.FSDPModule) else ""
