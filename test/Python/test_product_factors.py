"""alpha and beta of addmm and baddbmm in bf16 and f16: factors are not rounded to the type, only results are."""
from __future__ import annotations

import pytest
import torch
from step_check import compute

FUNCTIONS = {
    "addmm": lambda c, a, b: torch.addmm(c, a, b, beta=-4.775, alpha=3.4445),
    "addmm beta": lambda c, a, b: torch.addmm(c, a * 0, b, beta=3.4445),
    "baddbmm": lambda c, a, b: torch.baddbmm(c[None], a[None], b[None], beta=-4.775, alpha=3.4445)[0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype, target", [(torch.bfloat16, "host"), (torch.float16, "host"),
                                           (torch.bfloat16, "emulate:sm_90")])
def test_factors_are_not_rounded(name: str, dtype: torch.dtype, target: str, tmp_path) -> None:
    """Roundings of 4,096 results go both ways; those of a factor, all one way. Rounded to bf16, 3.4445 would be 0.2 %
    smaller."""
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(64, 64, generator=generator).to(dtype) for _ in range(3)]
    exact = FUNCTIONS[name](*(x.double() for x in inputs))
    found = torch.stack(compute(FUNCTIONS[name], inputs, tmp_path, f"--target={target}")).double()
    epsilon = torch.finfo(dtype).eps
    # Three roundings, each of at most half an epsilon: of the product, of the two terms, of the sum.
    terms = FUNCTIONS[name](*(x.double().abs() * sign for x, sign in zip(inputs, (-1, 1, 1))))
    assert ((found - exact).abs() <= 2 * epsilon * terms.abs()).all()
    assert abs((found * exact).sum() / exact.square().sum() - 1) < epsilon / 16
