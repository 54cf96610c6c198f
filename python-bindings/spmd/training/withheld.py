"""The memory of an offloaded tensor, out of reach of functions that do not go through __torch_function__.

Most functions of PyTorch ask the tensor's class first, and offloaded_class.py fetches the value. Some read the memory at once:
torch.tensor(p), torch.as_tensor(p, dtype=...), torch.Tensor(p), torch.nested.nested_tensor([p]). Without its storage, the tensor
makes each of them an error at the user's line.
"""
from __future__ import annotations

import torch

from ..tensor_info import TensorInfo
from ..torch_api.tensors import set_storage_access_error
from ..torch_api.tracing import DisableTorchFunctionSubclass

_KINDS = {"param": "parameter", "buffer": "buffer", "grad": "gradient of parameter"}


def withhold(tensor: torch.Tensor, info: TensorInfo) -> torch.Tensor:
    """Takes the storage of a tensor away, and returns a tensor that has it."""
    what = f"{_KINDS.get(info.state, f'optimizer state {info.state!r} of parameter')} {info.name!r}"
    with DisableTorchFunctionSubclass():
        memory = tensor.detach()
        set_storage_access_error(
            tensor, f"the ranks of a compiled step hold the value of {what}, and this function of PyTorch reads memory without "
                    "__torch_function__, which fetches the value\n  hint: give the function p.detach() instead of p")
    return memory


def give_back(tensor: torch.Tensor, memory: torch.Tensor) -> None:
    """Gives a tensor the storage that withhold() has taken."""
    with DisableTorchFunctionSubclass():
        tensor.data = memory
