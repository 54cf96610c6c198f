"""The file of a checkpoint with the optimizer state of parameters that no rank trains: a safetensors file, which is read
without PyTorch."""
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import NUMPY
from ..tensor_info import TensorInfo

if TYPE_CHECKING:
    import torch

NAME = "untrained.safetensors"
NOTE = "untrained"  # true in the notes of a checkpoint that has the file
_DTYPES = {"F32": "f32", "F64": "f64", "F16": "f16", "BF16": "bf16", "I64": "i64", "I32": "i32", "I16": "i16", "I8": "i8",
           "U8": "u8", "BOOL": "i1"}


def untrained_file(tensors: Mapping[str, torch.Tensor]) -> bytes:
    """The content of the file."""
    from safetensors.torch import save
    return save({key: value.cpu().contiguous().clone() for key, value in tensors.items()})


class UntrainedFile:
    """The tensors of the file.

    Attributes:
      tensors: by key, "optimizer/exp_avg/fc.weight".
    """

    def __init__(self, content: bytes):
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8:8 + size])
        header.pop("__metadata__", None)
        self._data = memoryview(content)[8 + size:]
        self._offsets = {key: entry["data_offsets"] for key, entry in header.items()}
        self.tensors = {key: TensorInfo(key, "", _DTYPES[entry["dtype"]], tuple(entry["shape"])) for key, entry in header.items()}

    def read(self, key: str) -> np.ndarray:
        """A tensor; bf16 as uint16."""
        info, (begin, end) = self.tensors[key], self._offsets[key]
        return np.frombuffer(self._data[begin:end], NUMPY[info.dtype]).reshape(info.shape).copy()
