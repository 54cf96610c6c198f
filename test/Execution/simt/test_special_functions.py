"""Special functions as GPU kernels, emulated: what PyTorch gives in float64, forward and in the gradient."""
from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path[:0] = [str(Path(__file__).parents[2] / "Python")]
from step_check import run, tool

import spmd

ANY, POSITIVE, UNIT = (-4.0, 4.0), (0.1, 9.0), (-0.95, 0.95)
FUNCTIONS = [
    (torch.lgamma, POSITIVE), (torch.digamma, POSITIVE), (lambda x: torch.polygamma(1, x), POSITIVE),
    (lambda x: torch.mvlgamma(x + 2, 3), POSITIVE), (torch.erf, ANY), (torch.erfc, ANY), (torch.erfinv, UNIT),
    (torch.special.erfcx, ANY), (torch.special.ndtr, ANY), (lambda x: torch.special.ndtri((x + 1) / 2), UNIT),
    (torch.special.log_ndtr, ANY), (torch.special.entr, POSITIVE), (torch.sinc, ANY), (torch.i0, ANY),
    (torch.special.i0e, ANY), (torch.special.i1, ANY), (torch.special.i1e, ANY), (torch.logit, (0.05, 0.95)),
    (lambda x: torch.xlogy(x, x), POSITIVE), (lambda x: torch.special.xlog1py(x, x), POSITIVE),
    (torch.expm1, ANY), (torch.log1p, POSITIVE), (torch.asinh, ANY), (torch.acosh, (1.1, 9.0)), (torch.atanh, UNIT),
]


class Inputs(torch.nn.Module):
    """An input per function, so that gradients become new values of parameters."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.x = torch.nn.ParameterList(torch.empty(301).uniform_(*where) for _, where in FUNCTIONS)


def train_step(model, optimizer, weight):
    values = [function(x) for (function, _), x in zip(FUNCTIONS, model.x)]
    sum((value * weight).sum() for value in values).backward()
    optimizer.step()
    optimizer.zero_grad()
    return [value.detach() for value in values]


@pytest.mark.filterwarnings("ignore:the step does not")
def test_values_and_gradients(tmp_path) -> None:
    model, weight = Inputs(), torch.linspace(-1, 1, 301)
    spmd.capture(train_step, model, torch.optim.SGD(model.parameters(), lr=0.5), weight, batch_dims={"weight": None}) \
        .save(tmp_path / "s.step")
    run(tool("spmd-compile"), tmp_path / "s.step", "--ranks=1", "--target=emulate:sm_90", "--quiet",
        "-o", tmp_path / "s.spmd")
    with spmd.load(tmp_path / "s.spmd") as trainer:
        values = trainer.step(weight)
        updated = [torch.from_numpy(trainer.read("param", f"x.{i}")) for i in range(len(FUNCTIONS))]
    model.double()
    expected = train_step(model, torch.optim.SGD(model.parameters(), lr=0.5), weight.double())
    for got, wanted in zip([*values, *updated], [*expected, *(x.detach() for x in model.x)], strict=True):
        torch.testing.assert_close(got.double(), wanted, rtol=2e-5, atol=2e-6)
