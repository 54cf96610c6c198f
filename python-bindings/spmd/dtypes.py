"""The element types, in the order of include/spmd/Runtime/dtypes.def, and what they are in numpy and PyTorch: the one
table of them in Python. An installed package has no such file beside it: a test compares them (test/Runtime/header.test).
"""
from __future__ import annotations

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class DType:
    """`numpy` has the size of an element; bf16, which numpy does not know, is carried as its bits. `torch` is the name
    of PyTorch's type, since the runtime does without PyTorch."""

    name: str
    numpy: type
    torch: str
    is_floating: bool = False


TABLE = (
    DType("f32", np.float32, "float32", True),
    DType("f64", np.float64, "float64", True),
    DType("f16", np.float16, "float16", True),
    DType("bf16", np.uint16, "bfloat16", True),
    DType("i64", np.int64, "int64"),
    DType("i32", np.int32, "int32"),
    DType("i16", np.int16, "int16"),
    DType("i8", np.int8, "int8"),
    DType("u8", np.uint8, "uint8"),
    DType("i1", np.bool_, "bool"),
)
NAMES = tuple(dtype.name for dtype in TABLE)  # by number
FLOATING = tuple(dtype.name for dtype in TABLE if dtype.is_floating)
