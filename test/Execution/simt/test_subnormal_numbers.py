"""Results and operands below the smallest normal number are what PyTorch's are: in the interpreter, on CPUs, and as GPU
kernels, emulated."""
from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

sys.path[:0] = [str(Path(__file__).parents[2] / "Python")]
from step_check import compute

pytestmark = pytest.mark.filterwarnings("ignore:the step does not")
TARGETS = ["interpreter", "--target=host", "--target=emulate:sm_90"]
# From below the least exponent to where exponentials are normal numbers.
EXPONENTS = {torch.float32: (-105, -80), torch.float64: (-747, -700), torch.bfloat16: (-94, -80),
             torch.float16: (-18, -8)}
# Of such exponents x, and of numbers s from below the smallest one to the smallest normal one and above.
FUNCTIONS = {
    "exp": lambda x, s: x.exp(),
    "log exp": lambda x, s: x.exp().log(),
    "exp2": lambda x, s: (x * 1.4375).exp2(),
    "sigmoid": lambda x, s: x.sigmoid(),
    "softplus": lambda x, s: F.softplus(x),
    "silu": lambda x, s: F.silu(x),
    "softmax": lambda x, s: torch.stack([x, torch.zeros_like(x)], 1).softmax(1)[:, 0],
    "pow": lambda x, s: torch.pow(torch.full_like(x, 2.0), x),
    "log": lambda x, s: s.log(),
    "log2": lambda x, s: s.log2(),
    "log10": lambda x, s: s.log10(),
    "log1p": lambda x, s: s.log1p(),
    "expm1": lambda x, s: s.expm1(),
    "tanh": lambda x, s: s.tanh(),
    "sin": lambda x, s: s.sin(),
    "asinh": lambda x, s: s.asinh(),
    "sqrt": lambda x, s: s.sqrt(),
    "rsqrt": lambda x, s: s.rsqrt(),
    "quotient": lambda x, s: s / 3,
    "product": lambda x, s: s * 0.3,
    "reciprocal": lambda x, s: (1 / s).reciprocal(),
    "difference": lambda x, s: s - s.flip(0),
    "fmod": lambda x, s: torch.fmod(s, s.max() / 7),
    "elu": lambda x, s: F.elu(-s),
    "lgamma": lambda x, s: torch.lgamma(s),
}
# Where it is more: powers are exponentials of y log |x|, rounded at the exponent's magnitude, below 1024; PyTorch's
# lgamma is off by 1e-12.
UNITS_F64 = {"pow": 1024, "lgamma": 8192}


def all_of_them(x: torch.Tensor, s: torch.Tensor) -> list[torch.Tensor]:
    return [function(x, s) for function in FUNCTIONS.values()]


# The interpreter computes in f64, whatever it rounds to.
CASES = [(dtype, target) for target in TARGETS for dtype in EXPONENTS
         if target != "interpreter" or dtype == torch.float64]


@pytest.mark.parametrize("dtype,target", CASES, ids=lambda value: str(value).removeprefix("torch."))
def test_are_kept(dtype: torch.dtype, target: str, tmp_path) -> None:
    """To 8 units in the last place, PyTorch's own error included."""
    info = torch.finfo(dtype)
    x = torch.linspace(*EXPONENTS[dtype], 97, dtype=torch.float64).to(dtype)
    s = (torch.logspace(-8, 3, 97, dtype=torch.float64) * info.smallest_normal).to(dtype)
    s[0] = 0
    got = compute(all_of_them, (x, s), tmp_path, target)
    for name, ours, expected in zip(FUNCTIONS, got, all_of_them(x, s), strict=True):
        assert ours.dtype == expected.dtype
        units = UNITS_F64.get(name, 8) if dtype == torch.float64 else 8
        finite = torch.isfinite(expected)
        assert torch.equal(ours[~finite].isnan(), expected[~finite].isnan()), name
        assert torch.equal(ours.isinf(), expected.isinf()), name
        place = expected.abs().double().clamp_min(info.smallest_normal) * info.eps
        apart = torch.where(finite, (ours.double() - expected.double()).abs() / place, 0)
        worst = apart.argmax()
        assert apart[worst] <= units, (name, apart[worst], ours[worst], expected[worst])
