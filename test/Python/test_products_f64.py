"""Products of f64 in a step: bits by definition, memory that is listed beside the arena."""
from __future__ import annotations

import json

import pytest
import torch
from step_check import StepCheck, run, tool
from torch import nn

import spmd


def train_step(model, optimizer, x, y):
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    """Depths of more than a block, in forward and backward."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(300, 270), nn.Tanh(), nn.Linear(270, 5)).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    batches = [(torch.randn(280, 300, dtype=torch.float64), torch.randn(280, 5, dtype=torch.float64)) for _ in range(3)]
    check = StepCheck(spmd.capture(train_step, model, optimizer, *batches[0], reference=batches),
                      tmp_path_factory.mktemp("f64"))
    made = check.folder / "f64.spmd"
    run(tool("spmd-compile"), check.step, "--ranks=1", "--quiet", "-o", made)
    return made


def test_bits_do_not_depend_on_threads(artifact):
    saved = [artifact.with_name(f"{threads}.safetensors") for threads in (1, 2, 3)]
    for threads, file in enumerate(saved, 1):
        run(tool("spmd-run"), artifact, "--quiet", "--check", f"--threads={threads}", f"--save={file}")
    assert saved[0].read_bytes() == saved[1].read_bytes() == saved[2].read_bytes()


def test_workspace_is_listed_and_steps_allocate_nothing(artifact):
    outside = json.loads((artifact / "manifest.json").read_text())["outside_arena"]
    assert outside == [{"name": "workspace of f64 GEMMs, per thread", "bytes": 2179072},
                       {"name": "thread stacks", "bytes": None}]
    measure = tool("spmd-run").parents[1] / "test" / "bin" / "spmd-measure-memory"
    assert "allocations in steps 2 and 3: 0" in run(measure, artifact)
