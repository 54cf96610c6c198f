"""Broken programs after partition and after collectives are refused by their verifiers, or compute the same bits.

SPMD_MUTANTS=1000 makes that many of every program, instead of a sample."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import spmd
from spmd.tools import find_tool

sys.path.insert(0, os.path.join(os.environ["SPMD_SOURCE"], "examples"))
import gpt2  # noqa: E402

MUTATE = Path(os.environ["SPMD_BIN"]).parent / "test" / "bin" / "spmd-mutate-ir"
COUNT = int(os.environ.get("SPMD_MUTANTS", "25"))


def gpt2_nano() -> dict:
    return gpt2.setup("tiny", steps=0)


def llama() -> dict:
    pytest.importorskip("transformers")
    import llama3_8b
    return llama3_8b.setup("tiny", batch=6, length=8, device="cpu", dtype=torch.float32)


def accumulation() -> dict:
    """Two microbatches of an uneven batch, whose gradients are summed before the optimizer; a buffer of running means."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 10), nn.BatchNorm1d(10), nn.ReLU(), nn.Linear(10, 10), nn.Linear(10, 4))

    def step(model, optimizer, x, y):
        for part in range(2):
            loss = F.cross_entropy(model(x[part]), y[part]) / 2
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=True)
    return dict(train_step=step, model=model, optimizer=optimizer,
                args=(torch.randn(2, 5, 6), torch.randint(4, (2, 5))))


def first_step() -> dict:
    """The first call makes the state of the optimizer."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(model, optimizer, x, y):
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return dict(train_step=step, model=model, optimizer=optimizer, args=(torch.randn(5, 6), torch.randn(5, 3)))


STEPS = [(gpt2_nano, "class:Block"), (llama, "class:LlamaDecoderLayer"), (accumulation, "class:Linear"),
         (first_step, "class:Linear")]


@pytest.mark.parametrize("setup, policy", STEPS, ids=lambda value: getattr(value, "__name__", ""))
def test_no_broken_program_gets_through(setup, policy, tmp_path) -> None:
    example = setup()
    package = spmd.capture(example["train_step"], example["model"], example["optimizer"], *example["args"],
                           name=setup.__name__)
    package.save(tmp_path / "a.step")
    folder = tmp_path / "a.step"
    if setup is first_step and package.first_step is not None:
        folder = folder / "first_step"
    for phase in ("partition", "collectives"):
        ir = tmp_path / f"{phase}.mlir"
        subprocess.run([find_tool("spmd-compile"), folder, "--ranks=2", f"--policy={policy}", f"--compile-to={phase}",
                        "-o", ir, "--quiet"], check=True)
        done = subprocess.run([MUTATE, ir, f"--count={COUNT}", "--seed=7"],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        refused, harmless = map(int, re.search(r"mutants: (\d+) refused, (\d+) harmless, 0 survived", done.stdout).groups())
        made = refused + harmless  # a small program has fewer places than were asked for
        assert made >= min(COUNT, 200) and refused >= made // 2, done.stdout
        print(f"counts: {setup.__name__}, {phase}: of {made} broken programs {refused} are refused, {harmless} harmless")
        if "SPMD_MUTANTS" in os.environ:
            print(done.stdout)
