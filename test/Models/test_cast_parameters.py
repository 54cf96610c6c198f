"""Modules that cast their own parameters in their forward, masters in f32: the cast stands before the gather, and no bit
changes by that."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from pipeline import find_tool, run

import spmd

ROWS, WIDTH = 9, 24


class Cast(torch.nn.Module):
    """A layer with weights in f32 and arithmetic in `dtype`."""

    def __init__(self, width: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(width, width) / width**0.5)
        self.bias = torch.nn.Parameter(torch.randn(width) / 4)
        self.dtype = dtype

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(torch.nn.functional.linear(x, self.weight.to(self.dtype), self.bias.to(self.dtype)))


class Net(torch.nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([Cast(WIDTH, dtype) for _ in range(3)])
        self.scale = torch.nn.Parameter(torch.ones(WIDTH))
        self.dtype = dtype

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = x.to(self.dtype)
        for layer in self.layers:
            x = layer(x)
        return torch.nn.functional.mse_loss(x.float() * self.scale, y)


def train_step(model, optimizer, x, y):
    loss = model(x, y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad()
    return loss


def capture(folder: Path, steps: int) -> Path:
    torch.manual_seed(0)
    model = Net(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
    batches = [(torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)) for _ in range(steps)]
    spmd.capture(train_step, model, optimizer, *batches[0], reference=batches).save(folder / "s.step")
    return folder / "s.step"


def compile_step(step: Path, ranks: int, to: Path, *options: str) -> Path:
    run("compile", find_tool("spmd-compile"), step, f"--ranks={ranks}", "--policy=class:Cast", "--quiet", *options,
        "-o", to)
    return to


def test_gathers_are_bf16_and_reductions_f32(tmp_path) -> None:
    """Layers gather in bf16, the first once: nothing wants its input's gradient. What the root gathers is read in f32.
    Every gradient is reduced in f32."""
    plan = compile_step(capture(tmp_path, 1), 2, tmp_path / "plan.mlir", "--compile-to=plan").read_text()
    gathers = re.findall(r'plan\.all_gather\(.*: (\w+) unit "(\w+)"', plan)
    assert sorted(gathers) == [("bf16", "unit1"), *[("bf16", "unit2")] * 2, *[("bf16", "unit3")] * 2,
                               *[("f32", "unit0")] * 2]
    scatters = re.findall(r'plan\.reduce_scatter .*: (\w+) unit "(\w+)"', plan)
    assert sorted(scatters) == [("f32", f"unit{i}") for i in (0, 1, 2, 3)]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_no_bit_changes(ranks, tmp_path) -> None:
    """In doubles it is the captured step; in the program's types, the bits of the program that gathers f32."""
    step, base = capture(tmp_path, 2), tmp_path / "base.mlir"
    run("import", find_tool("spmd-translate"), "--import-step", step, "-o", base)
    program = compile_step(step, ranks, tmp_path / "program.mlir", "--compile-to=collectives")
    run("interpret", find_tool("spmd-interpret"), program, f"--ranks={ranks}", f"--compare={base}", "--steps=2")
    wide, narrow = tmp_path / "wide.mlir", tmp_path / "narrow.mlir"
    passes = ["--spmd-merge-optimizer-lists", f"--spmd-assign-shard-units=policy=class:Cast ranks={ranks}",
              "--spmd-split-means", "--spmd-partition", "--spmd-record-values", "--spmd-dedup-collectives"]
    run("without", find_tool("spmd-opt"), base, *passes, "-o", wide)
    run("with", find_tool("spmd-opt"), base, *passes, "--spmd-cast-before-gather", "--spmd-verify-partition",
        "-o", narrow)
    assert ranks == 1 or wide.read_text() != narrow.read_text()
    for each in (wide, narrow):
        run("bits", find_tool("spmd-interpret"), each, f"--ranks={ranks}", f"--weights={step}", "--steps=2",
            "--dtype=program", f"--save={each.with_suffix('.out')}")
    assert wide.with_suffix(".out").read_bytes() == narrow.with_suffix(".out").read_bytes()


@pytest.mark.parametrize("ranks", [1, 3])
def test_trains_like_eager(ranks, tmp_path) -> None:
    artifact = compile_step(capture(tmp_path, 20), ranks, tmp_path / "s.spmd")
    run("train", find_tool("spmd-run"), artifact, "--check", "--quiet", "--threads=2")
