"""What matrix products take over changes no bit, and no number: a block with attention's shape, in two microbatches."""
from __future__ import annotations

import json

import pytest
import torch
from step_check import StepCheck, run, tool
from torch import nn

import spmd

# The first dim of a batch is the microbatches.
DIMS = ("--batch-dim=x=1", "--batch-dim=y=1")


class Block(nn.Module):
    """Three projections of one input, a residual, an MLP with gelu and a residual."""

    def __init__(self, width: int = 24):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.o, self.up, self.down = nn.Linear(width, width), nn.Linear(width, 40), nn.Linear(40, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        h = self.norm(x)
        x = x + self.o(torch.sigmoid(self.q(h)) * self.k(h).cos() + self.v(h))
        return x + self.down(nn.functional.gelu(self.up(x), approximate="tanh"))


def train_step(model, optimizer, x, y):
    total = 0
    for rows, wanted in zip(x, y):
        loss = nn.functional.mse_loss(model(rows), wanted) / 2
        loss.backward()
        total = total + loss.detach()
    optimizer.step()
    optimizer.zero_grad()
    return total


@pytest.fixture(scope="module")
def check(tmp_path_factory) -> StepCheck:
    torch.manual_seed(0)
    model = nn.Sequential(Block(), Block())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    batches = [(torch.randn(2, 8, 24), torch.randn(2, 8, 24)) for _ in range(3)]
    return StepCheck(spmd.capture(train_step, model, optimizer, *batches[0], reference=batches),
                     tmp_path_factory.mktemp("epilogues"))


def gemms(artifact) -> list[dict]:
    plan = json.loads((artifact / "train_step.plan.json").read_text())
    return [command for command in plan["commands"] if command["op"] == "gemm"]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_numbers_stay(check: StepCheck, ranks: int):
    """In float64 the step with epilogues, those of the host and those of cuBLASLt, is the step without."""
    none, host, cuda = (check.folder / f"{name}.mlir" for name in ("none", "host", "cuda"))
    library = "bias,residual,relu,gelu_tanh,bias_gradient"
    for program, epilogues in ((none, "none"), (host, "bias,residual"), (cuda, library)):
        run(tool("spmd-compile"), check.step, f"--ranks={ranks}", "--compile-to=kernels", *DIMS, "--quiet",
            f"--epilogues={epilogues}", "-o", program)
    assert "residual(" in host.read_text() and ", pre_activation tensor" in cuda.read_text()
    # Of three layers with a bias, in two blocks and two microbatches; a gather comes before one product of the second.
    assert cuda.read_text().count(", bias_gradient tensor") == 11
    run(tool("spmd-interpret"), host, f"--ranks={ranks}", f"--compare={none}", "--steps=2")
    # The constants of a cluster's gelu are rounded to f32.
    run(tool("spmd-interpret"), cuda, f"--ranks={ranks}", f"--compare={none}", "--steps=2", "--rtol=1e-6")


def train(check: StepCheck, name: str, epilogues: str) -> tuple[bytes, list[dict]]:
    """Parameters and optimizer state after three steps on two ranks, and the products of the plan."""
    artifact, saved = check.folder / f"{name}.spmd", check.folder / f"{name}.safetensors"
    run(tool("spmd-compile"), check.step, "--ranks=2", *DIMS, "--quiet", f"--epilogues={epilogues}", "-o", artifact)
    run(tool("spmd-run"), artifact, "--quiet", "--check", "--threads=2", f"--save={saved}")
    return saved.read_bytes(), gemms(artifact)


def test_bits_stay(check: StepCheck):
    """On the host with and without epilogues: every byte is the same."""
    plain_bytes, plain = train(check, "plain", "none")
    fused_bytes, fused = train(check, "fused", "bias,residual")
    assert plain_bytes == fused_bytes
    assert len(plain) == len(fused)
    assert not any(g["beta"] or "bias" in g or "residual" in g for g in plain)
    # Residuals with a bias, and the sums of three input gradients: two each, in two blocks and two microbatches.
    assert any("residual" in g and "bias" in g for g in fused)
    assert sum(g["beta"] == 1 for g in fused) >= 8


@pytest.mark.parametrize("target", ["host", "emulate:sm_90"])
def test_bias_gradients_run(check: StepCheck, target: str):
    """Products that give bias gradients train to the reference, on a target that has them and on one that need not."""
    artifact = check.folder / f"gradients-{target.partition(':')[0]}.spmd"
    run(tool("spmd-compile"), check.step, "--ranks=2", *DIMS, "--quiet", f"--target={target}",
        "--epilogues=bias,residual,bias_gradient", "-o", artifact)
    run(tool("spmd-run"), artifact, "--quiet", "--check", "--threads=2")
    assert any("bias_gradient" in g for g in gemms(artifact))
