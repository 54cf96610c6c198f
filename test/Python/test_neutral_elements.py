"""Reductions over a batch that ranks do not share evenly: the rows that fill the last one never decide, in any type."""
from __future__ import annotations

import pytest
import torch
from step_check import capture_function, run, tool

import spmd

pytestmark = pytest.mark.filterwarnings("ignore:the step does not")
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


def scatter(x: torch.Tensor, reduce: str) -> torch.Tensor:
    rows = (torch.arange(len(x)) % 2)[:, None].expand(-1, 4)
    return torch.zeros(2, 4, dtype=x.dtype).scatter_reduce(0, rows, x, reduce, include_self=False)


REDUCTIONS = {
    "amax": lambda x: x.amax(0),
    "amin": lambda x: x.amin(0),
    "max": lambda x: x.max(),
    "min": lambda x: x.min(),
    "aminmax": lambda x: torch.stack(tuple(torch.aminmax(x, dim=0))),
    "max and where": lambda x: x.max(0).values * 1 + x.max(0).indices.to(x.dtype),
    "min and where": lambda x: x.min(0).values * 1 + x.min(0).indices.to(x.dtype),
    "argmax": lambda x: x.argmax(0),
    "argmin": lambda x: x.argmin(0),
    "sum": lambda x: x.sum(0),
    "prod": lambda x: x.prod(0),
    "any": lambda x: x.any(0),
    "all": lambda x: x.all(0),
    "any of all": lambda x: x.any(),
    "all of all": lambda x: x.all(),
    "count_nonzero": lambda x: x.count_nonzero(0),
    "cummax": lambda x: x.cummax(0).values,
    "cummin": lambda x: x.cummin(0).values,
    "scattered amin": lambda x: scatter(x, "amin"),
    "scattered amax": lambda x: scatter(x, "amax"),
    "scattered prod": lambda x: scatter(x, "prod"),
}


def edges(dtype: torch.dtype) -> list[torch.Tensor]:
    """Five rows each: at the lower and at the upper end of the type, so that any number from outside would win."""
    if dtype == torch.bool:
        return [torch.zeros(5, 4, dtype=torch.bool), torch.ones(5, 4, dtype=torch.bool)]
    info = torch.iinfo(dtype) if dtype in INTEGERS else torch.finfo(dtype)
    steps = torch.arange(20).view(5, 4)
    if dtype in INTEGERS:
        return [(info.min + steps).to(dtype), (info.max - steps).to(dtype), (steps + 1).to(dtype)]
    wide = (1 + steps / 32).to(torch.float64)
    return [(-wide * info.max / 2).to(dtype), (wide * info.max / 2).to(dtype), wide.to(dtype)]


def applies(name: str, x: torch.Tensor) -> bool:
    """Of truth values only some; sums and products of large floating numbers overflow in another order."""
    if x.dtype == torch.bool:
        return name in ("any", "all", "any of all", "all of all", "amax", "amin", "max", "min", "sum", "count_nonzero")
    return not (x.is_floating_point() and name in ("sum", "prod", "scattered prod") and float(x.abs().max()) > 1e4)


@pytest.mark.parametrize("target", ["--target=host", "--target=emulate:sm_90"])
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("dtype", [torch.bool, *INTEGERS, *FLOATS], ids=lambda dtype: str(dtype).removeprefix("torch."))
@pytest.mark.sample(4)
def test_rows_that_are_not_there_never_decide(dtype: torch.dtype, ranks: int, target: str, tmp_path) -> None:
    inputs = edges(dtype)
    chosen = [[name for name in REDUCTIONS if applies(name, x)] for x in inputs]

    def function(*batch: torch.Tensor) -> list[torch.Tensor]:
        return [REDUCTIONS[name](x) for x, names in zip(batch, chosen) for name in names]
    capture_function(function, inputs, batch_dim=0).save(tmp_path / "s.step")
    run(tool("spmd-compile"), tmp_path / "s.step", "--quiet", f"--ranks={ranks}", target, "-o", tmp_path / "s.spmd")
    with spmd.load(tmp_path / "s.spmd") as trainer:
        got = trainer.step(*inputs)
    for name, ours, expected in zip(sum(chosen, []), got, function(*inputs), strict=True):
        assert ours.dtype == expected.dtype, name
        if expected.is_floating_point():
            torch.testing.assert_close(ours, expected, rtol=8 * torch.finfo(dtype).eps, atol=0)
        else:
            assert torch.equal(ours, expected), (name, ours, expected)
