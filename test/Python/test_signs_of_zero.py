"""Zeros have the sign that eager gives them, and what is not a number stays one: of limits, rounding and arithmetic."""
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from step_check import compute

pytestmark = pytest.mark.filterwarnings("ignore:the step does not")
NAN, INF = float("nan"), float("inf")
# Few elements: eager's maximum() takes the first of two zeros in its loop over elements, the second in that over vectors.
X, Y = [-0.0, 0.0, -0.0, 0.0, NAN, 1.0, -INF], [0.0, -0.0, -0.0, 0.0, 1.0, NAN, INF]
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
ONE = {"relu": torch.relu, "relu6": F.relu6, "hardtanh": F.hardtanh, "leaky_relu": F.leaky_relu, "hardshrink": F.hardshrink,
       "softshrink": F.softshrink, "threshold": lambda x: F.threshold(x, 0, 0), "clamp(min)": lambda x: x.clamp(min=0),
       "clamp(max)": lambda x: x.clamp(max=0), "clamp(min=-0)": lambda x: x.clamp(min=-0.0), "clamp": lambda x: x.clamp(0, 1),
       "clamp down": lambda x: x.clamp(-1, -0.0), "nan_to_num": torch.nan_to_num, "abs": torch.abs, "neg": torch.neg,
       "sign": torch.sign, "round": torch.round, "trunc": torch.trunc, "floor": torch.floor, "ceil": torch.ceil,
       "sqrt": torch.sqrt, "square": torch.square, "reciprocal": torch.reciprocal, "0 x": lambda x: x * 0.0,
       **{name: getattr(torch, name) for name in (
           "sin", "tan", "tanh", "asin", "sinh", "asinh", "atan", "atanh", "expm1", "log1p", "erf", "sgn", "frac", "deg2rad")},
       "tanhshrink": F.tanhshrink, "softsign": F.softsign, "silu": F.silu, "elu": F.elu, "mish": F.mish, "x ** 3": lambda x: x ** 3,
       "x ** 5": lambda x: x ** 5, "fmod": lambda x: torch.fmod(x, 3.0), "remainder": lambda x: torch.remainder(x, 3.0),
       "-1 x": lambda x: x * -1.0, "x + 0": lambda x: x + 0.0, "x - 0": lambda x: x - 0.0, "0 - x": lambda x: 0.0 - x}
TWO = {"maximum": torch.maximum, "minimum": torch.minimum,
       "clamp(min=y)": lambda x, y: x.clamp(min=y), "clamp(max=y)": lambda x, y: x.clamp(max=y), "copysign": torch.copysign,
       "x + y": torch.add, "x - y": torch.sub, "x y": torch.mul, "x / y": torch.div,
       "where": lambda x, y: torch.where(x > y, x, y), "atan2": torch.atan2, "x ** y": torch.pow,
       "x ** 3y": lambda x, y: torch.pow(x, 3.0 + 0.0 * torch.nan_to_num(y, 0.0, 0.0, 0.0))}


def every(*values: torch.Tensor) -> tuple[torch.Tensor, ...]:
    x, y = values
    return tuple([f(x) for f in ONE.values()] + [f(x, y) for f in TWO.values()])


def signs(values: torch.Tensor) -> list[str]:
    return ["nan" if x != x else "" if x else str(x) for x in values.tolist()]


@pytest.mark.parametrize("target", ["interpreter", "--target=host", "--target=emulate:sm_90"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.sample(6)
def test_signs(dtype: torch.dtype, target: str, tmp_path) -> None:
    inputs = torch.tensor(X, dtype=dtype), torch.tensor(Y, dtype=dtype)
    found = compute(every, inputs, tmp_path, target)
    for name, ours, expected in zip([*ONE, *TWO], found, every(*inputs), strict=True):
        assert signs(ours) == signs(expected), name
