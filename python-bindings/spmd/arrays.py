"""Tensors of whatever library as dense CPU memory, and back. PyTorch is used only when it is already loaded."""
from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

from .dtypes import TABLE

NUMPY = {dtype.name: dtype.numpy for dtype in TABLE}
# What numpy itself has; the others are carried as their bits.
_NAMES = {np.dtype(dtype.numpy): dtype.name for dtype in TABLE if np.dtype(dtype.numpy).name == dtype.torch}
_OF_TORCH = {f"torch.{dtype.torch}": dtype.name for dtype in TABLE}


def is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def to_numpy(value: Any) -> tuple[np.ndarray, str]:
    """A contiguous array with the value's content, and its dtype's name; shares memory where it can.

    Takes torch tensors, numpy arrays, what speaks DLPack, and nested lists.

    Raises:
      TypeError: for a dtype without counterpart.
    """
    if is_torch(value):
        return _memory_of(value.detach().cpu().contiguous().resolve_neg())
    elif not isinstance(value, np.ndarray) and hasattr(value, "__dlpack__"):
        value = np.from_dlpack(value)
    array = np.ascontiguousarray(value).reshape(np.shape(value))  # ascontiguousarray makes 0-dim arrays 1-dim
    if array.dtype not in _NAMES:
        raise TypeError(f"dtype {array.dtype} is none of {', '.join(NUMPY)}")
    return array, _NAMES[array.dtype]


def torch_dtype(tensor: Any) -> str:
    """The name of a torch tensor's dtype."""
    name = _OF_TORCH.get(str(tensor.dtype))
    if name is None:
        raise TypeError(f"dtype {tensor.dtype} is none of {', '.join(NUMPY)}")
    return name


def torch_type(dtype: str) -> Any:
    """PyTorch's dtype of a name."""
    return getattr(sys.modules["torch"], next(entry.torch for entry in TABLE if entry.name == dtype))


def _memory_of(tensor: Any) -> tuple[np.ndarray, str]:
    """Of a dense tensor on the CPU. PyTorch's own numpy() would make its memory one that cannot be given back."""
    name = torch_dtype(tensor)
    shape = tuple(tensor.shape)
    if not tensor.numel():
        return np.empty(shape, NUMPY[name]), name
    data = (ctypes.c_char * (tensor.numel() * tensor.element_size())).from_address(tensor.data_ptr())
    data.owner = tensor  # which lives as long as an array of it
    return np.frombuffer(data, NUMPY[name]).reshape(shape), name


def to_torch(array: np.ndarray, dtype: str) -> Any:
    """The array as a torch tensor of the same memory."""
    torch = sys.modules["torch"]
    tensor = torch.from_numpy(array.view(np.int16) if dtype == "bf16" else array)
    return tensor.view(torch.bfloat16) if dtype == "bf16" else tensor
