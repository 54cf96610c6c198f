"""Tensors that other libraries have on GPUs, by DLPack: where they are, their memory, and the streams that they order.

PyTorch's are taken as they are, since its current stream is known. Of other libraries the protocol says that whoever takes
a tensor names the stream on which it will be read, and that the producer makes that stream wait.
"""
from __future__ import annotations

import ctypes
import dataclasses
import sys
from typing import Any

import numpy as np

from ..arrays import is_torch, torch_dtype
from ..native import Place

HOST, CUDA, PINNED, MANAGED = 1, 2, 3, 13  # DLDeviceType
_LEGACY = 1  # DLPack's number of CUDA's legacy default stream, whose handle is 0


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):  # DLTensor, with which a DLManagedTensor begins
    _fields_ = [("data", ctypes.c_void_p), ("device", Place), ("ndim", ctypes.c_int32), ("dtype", _DataType),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


_DTYPES = {(0, 8): "i8", (0, 16): "i16", (0, 32): "i32", (0, 64): "i64", (1, 8): "u8", (2, 16): "f16", (2, 32): "f32",
           (2, 64): "f64", (4, 16): "bf16", (6, 8): "i1"}
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


@dataclasses.dataclass(frozen=True)
class DeviceTensor:
    """A dense tensor on a device. `keeper` keeps its memory."""

    data: int
    dtype: str
    shape: tuple[int, ...]
    keeper: Any


def place_of(value: Any) -> tuple[int, int] | None:
    """Where a tensor is, if that is a GPU: kind and number, as DLPack has them."""
    if is_torch(value):
        return (CUDA, value.device.index) if value.is_cuda else None
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack_device__"):
        return None
    kind, number = map(int, value.__dlpack_device__())
    return None if kind in (HOST, PINNED) else (kind, number)


def current_stream(value: Any) -> int | None:
    """The stream that the caller's work on a tensor is issued to; None: only its library knows."""
    if not is_torch(value):
        return None
    return sys.modules["torch"].cuda.current_stream(value.device).cuda_stream or _LEGACY


def take(value: Any, stream: int, what: str, *, writes: bool = False) -> DeviceTensor:
    """The memory of a tensor on a device, for a reader on `stream`, which waits for what its library has issued; `writes`:
    for one that writes to it.

    Raises:
      TypeError: for a dtype without counterpart.
      ValueError: for memory that is not dense.
    """
    if is_torch(value):
        tensor = value.detach()
        if not writes:
            tensor = tensor.contiguous().resolve_neg()
        elif not tensor.is_contiguous():
            raise ValueError(f"{what} has strides {list(tensor.stride())}; expected a contiguous tensor")
        return DeviceTensor(tensor.data_ptr(), torch_dtype(tensor), tuple(tensor.shape), tensor)
    capsule = value.__dlpack__(stream=stream)
    found = ctypes.cast(_pointer_of(capsule, b"dltensor"), ctypes.POINTER(_Tensor)).contents
    kind = found.dtype
    name = _DTYPES.get((kind.code, kind.bits)) if kind.lanes == 1 else None
    if name is None:
        raise TypeError(f"{what} has a dtype of DLPack's code {kind.code} with {kind.bits} bits and {kind.lanes} lanes, "
                        f"which is not supported; expected one of {', '.join(sorted(_DTYPES.values()))}")
    shape = tuple(found.shape[d] for d in range(found.ndim))
    dense = _dense(shape)
    strides = dense if not found.strides else tuple(found.strides[d] for d in range(found.ndim))
    if 0 not in shape and any(n > 1 and s != d for n, s, d in zip(shape, strides, dense)):
        raise ValueError(f"{what} has strides {list(strides)}; expected a contiguous tensor")
    return DeviceTensor((found.data or 0) + found.byte_offset, name, shape, capsule)


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, size = [], 1
    for count in reversed(shape):
        strides.append(size)
        size *= count
    return tuple(reversed(strides))
