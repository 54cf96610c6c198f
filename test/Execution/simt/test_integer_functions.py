"""gcd, lcm and nextafter to the bit, and igamma to float32's rounding: on CPUs, and as GPU kernels, emulated."""
from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path

import mpmath
import pytest
import torch

sys.path[:0] = [str(Path(__file__).parents[2] / "Python")]
from step_check import compute

TARGETS = ["--target=host", "--target=emulate:sm_90"]


def worst_pairs(bits: int) -> list[tuple[int, int]]:
    """Neighbours in Fibonacci's sequence, for which Euclid takes the most steps with remainders that are not negative,
    and in that of Pell, for which it does with remainders nearest to zero."""
    pairs = []
    for factor in (1, 2):
        small, large = 0, 1
        while large < 2 ** bits:
            pairs.append((small, large))
            small, large = large, factor * large + small
    return pairs


@pytest.mark.filterwarnings("ignore:the step does not")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
@pytest.mark.sample(3)
def test_divisors(target: str, dtype: torch.dtype, tmp_path) -> None:
    info = torch.iinfo(dtype)
    pairs = worst_pairs(info.bits - (info.min < 0))
    pairs += [(0, 0), (0, 5), (12, 18), (info.max, info.max - 1), (info.max, 7), (96, 36)]
    if info.min < 0:
        pairs += [(-12, 18), (12, -18), (-7, -7), (info.min, 3), (3, info.min), (info.min, -1), (-1, info.min),
                  (info.min, 12)]
    torch.manual_seed(0)
    random = torch.randint(info.min, info.max, (97, 2), dtype=dtype)
    x, y = torch.cat([torch.tensor(pairs, dtype=dtype), random, random.flip(1)]).unbind(1)
    x, y = x.contiguous(), y.contiguous()
    divisors, multiples = compute(lambda x, y: (torch.gcd(x, y), torch.lcm(x, y)), (x, y), tmp_path, target)
    assert torch.equal(divisors, torch.gcd(x, y))
    assert torch.equal(multiples, torch.lcm(x, y))


@pytest.mark.filterwarnings("ignore:the step does not")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.sample(3)
def test_neighbours(target: str, dtype: torch.dtype, tmp_path) -> None:
    info = torch.finfo(dtype)
    tiny = info.smallest_normal * info.eps
    edges = [0.0, -0.0, 1.0, -1.0, tiny, -tiny, info.smallest_normal, -info.smallest_normal, info.max, info.min,
             float("inf"), -float("inf"), float("nan"), 2.0, 0.1]
    x, y = (column.contiguous() for column in torch.cartesian_prod(*[torch.tensor(edges, dtype=dtype)] * 2).unbind(1))
    got, = compute(lambda x, y: (torch.nextafter(x, y),), (x, y), tmp_path, target)
    expected = torch.nextafter(x, y)
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
    is_nan = expected.isnan()
    assert torch.equal(got.isnan(), is_nan)
    assert torch.equal(got[~is_nan].view(bits), expected[~is_nan].view(bits))


def incomplete_gamma(a: float, x: float) -> float:
    """The lower one by its series in 50 digits; PyTorch's own is off by 3e-10 (at a = 30)."""
    if not (a >= 0 and x >= 0) or a == x and a in (0, math.inf):
        return math.nan
    if a in (0, math.inf) or x in (0, math.inf):
        return float(a == 0 or x == math.inf)
    with mpmath.workdps(50):
        term = total = mpmath.mpf(1)
        for k in itertools.count(1):
            term *= x / (mpmath.mpf(a) + k)
            total += term
            if term < total * mpmath.mpf(10) ** -45:
                break
        return float(mpmath.exp(a * mpmath.log(x) - x - mpmath.loggamma(mpmath.mpf(a) + 1)) * total)


# Below, at and above the places where the way of computing changes (a = 60, x = a + 1), and far tails.
SHAPES = (0.0, 1e-3, 0.3, 1.0, 2.5, 7.0, 8.0, 30.0, 59.9, 60.0, 75.0, 500.0, 1e5, math.inf)
PLACES = (0.0, 1e-4, 0.5, 0.999, 1.001, 1.2, 3.0, math.inf)


@pytest.mark.filterwarnings("ignore:the step does not")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.sample(2)
def test_incomplete_gamma(target: str, dtype: torch.dtype, tmp_path) -> None:
    """In float64: terms left out are below 1e-13 (ScalarIncompleteGamma.cpp); exponents are sums of terms of at most a
    few thousand where the value is not negligible, each off by 2^-53 of itself: together below 1e-12. In float32 it is
    that, rounded once."""
    pairs = [(a, place * (a + 1) if a < math.inf else place) for a in SHAPES for place in PLACES]
    pairs += [(-1.0, 1.0), (1.0, -1.0), (math.nan, 1.0), (1.0, math.nan)]
    a, x = (column.contiguous() for column in torch.tensor(pairs, dtype=dtype).unbind(1))
    lower, upper = compute(lambda a, x: (torch.igamma(a, x), torch.igammac(a, x)), (a, x), tmp_path, target)
    expected = torch.tensor([incomplete_gamma(*pair) for pair in zip(a.tolist(), x.tolist())], dtype=torch.float64)
    for ours, exact in ((lower, expected), (upper, 1 - expected)):
        assert torch.equal(ours.isnan(), exact.isnan())
        bound = 1e-12 + (2.0 ** -24 * exact if dtype == torch.float32 else 0)
        apart = torch.where(exact.isnan(), 0, (ours.double() - exact).abs() - bound)
        worst = apart.argmax()
        assert float(apart[worst]) <= 0, (a[worst], x[worst], apart[worst])
