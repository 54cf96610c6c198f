"""What matrix products take over changes no bit, and no number: a block with attention's shape, in two microbatches."""
from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
import torch
from step_check import StepCheck, run, tool
from torch import nn

import spmd

SOURCE = pathlib.Path(os.environ["SPMD_SOURCE"])

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
    backward = check.folder / "backward.mlir"
    library = "bias,residual,relu,gelu_tanh,bias_gradient"
    for program, epilogues in ((none, "none"), (host, "bias,residual"), (cuda, library),
                               (backward, f"{library},gelu_tanh_backward")):
        run(tool("spmd-compile"), check.step, f"--ranks={ranks}", "--compile-to=kernels", *DIMS, "--quiet",
            f"--epilogues={epilogues}", "-o", program)
    assert "residual(" in host.read_text() and ", pre_activation tensor" in cuda.read_text()
    # Of three layers with a bias, in two blocks and two microbatches; a gather comes before one product of the second.
    assert cuda.read_text().count(", bias_gradient tensor") == 11
    run(tool("spmd-interpret"), host, f"--ranks={ranks}", f"--compare={none}", "--steps=2")
    # In each block and microbatch a product gives the gradient before gelu and its sums, which another one gave.
    text = backward.read_text()
    assert len(re.findall(r"gelu_tanh_backward pre_activation\(%\w+ : .*\) bias_gradient_of +c", text)) == 4
    assert text.count(", bias_gradient tensor") == 11 and "gelu_tanh_backward" not in cuda.read_text()
    # The constants of a cluster's gelu are rounded to f32.
    for program in (cuda, backward):
        run(tool("spmd-interpret"), program, f"--ranks={ranks}", f"--compare={none}", "--steps=2", "--rtol=1e-6")


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


@pytest.mark.parametrize("target", ["host", "emulate:sm_90"])
@pytest.mark.parametrize("more", [",bias_gradient", ""])
def test_gelu_gradients_run(check: StepCheck, target: str, more: str):
    """The same of products that take the gradient of gelu; none does unless it is asked for."""
    artifact = check.folder / f"gelu-{target.partition(':')[0]}{len(more)}.spmd"
    options = ("--ranks=2", *DIMS, "--quiet", f"--target={target}", "-o", artifact)
    run(tool("spmd-compile"), check.step, *options)
    assert not any("activation" in g for g in gemms(artifact))
    run(tool("spmd-compile"), check.step, *options, f"--epilogues=bias,residual,gelu_tanh_backward{more}")
    run(tool("spmd-run"), artifact, "--quiet", "--check", "--threads=2")
    gradients = [g for g in gemms(artifact) if g.get("activation") == "gelu_tanh_backward"]
    assert [g["pre_activation"]["access"] for g in gradients] == ["r"] * 4
    assert all(g.get("bias_gradient_of") == ("c" if more else None) for g in gradients)


@pytest.fixture(scope="module")
def exact(tmp_path_factory) -> StepCheck:
    """A layer with gelu by erf, in bf16 one by tanh without biases, whose gradients have no sums."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
    return StepCheck(_capture(model), tmp_path_factory.mktemp("exact"))


@pytest.fixture(scope="module")
def narrow(tmp_path_factory) -> StepCheck:
    torch.manual_seed(2)
    layers = (nn.Linear(16, 72, bias=False), nn.GELU(approximate="tanh"), nn.Linear(72, 16, bias=False))
    return StepCheck(_capture(nn.Sequential(*layers).bfloat16(), torch.bfloat16), tmp_path_factory.mktemp("narrow"))


def _capture(model: nn.Module, dtype: torch.dtype = torch.float32):
    def step(model, optimizer, x, y):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss
    batches = [(torch.randn(8, 16).to(dtype), torch.randn(8, 16).to(dtype)) for _ in range(3)]
    return spmd.capture(step, model, torch.optim.SGD(model.parameters(), lr=1e-2), *batches[0], reference=batches)


def test_gelu_by_erf_stays(exact: StepCheck):
    artifact = exact.folder / "exact.spmd"
    run(tool("spmd-compile"), exact.step, "--ranks=2", "--quiet", "--target=emulate:sm_90",
        "--epilogues=bias,residual,gelu_tanh_backward", "-o", artifact)
    assert not any("activation" in g for g in gemms(artifact))


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_narrow_gelu_gradients_run(narrow: StepCheck, ranks: int):
    artifact = narrow.folder / f"narrow{ranks}.spmd"
    run(tool("spmd-compile"), narrow.step, f"--ranks={ranks}", "--quiet", "--target=emulate:sm_90",
        "--epilogues=gelu_tanh_backward", "-o", artifact)
    run(tool("spmd-run"), artifact, "--quiet", "--check")
    assert [g["activation"] for g in gemms(artifact) if g["dtype"] == "bf16" and "activation" in g] == ["gelu_tanh_backward"]


@pytest.mark.skipif("SPMD_PTXAS" not in os.environ, reason="needs ptxas for cubins")
@pytest.mark.parametrize("options", [(), ("--row-alignment=128",)])
def test_narrow_gelu_gradients_have_the_bits_of_the_emulation(narrow: StepCheck, options: tuple[str, ...]):
    """On the stand-ins of NVIDIA's libraries, also where rows are longer than they are wide."""
    saved = []
    for target, more in (("emulate", ()), ("cuda", ("--emulation",))):
        artifact, state = (narrow.folder / f"{target}.{kind}" for kind in ("spmd", "safetensors"))
        run(tool("spmd-compile"), narrow.step, "--ranks=2", "--quiet", f"--target={target}:sm_90", *more, *options,
            "--epilogues=gelu_tanh_backward", "-o", artifact)
        (command,) = [g for g in gemms(artifact) if g.get("activation") == "gelu_tanh_backward"]
        assert command["ldc"] == (128 if options else 72)
        launcher = [SOURCE / "scripts/with-standins"] if target == "cuda" else []
        run(*launcher, tool("spmd-run"), artifact, "--quiet", f"--save={state}")
        saved.append(state.read_bytes())
    assert saved[0] == saved[1]


def test_damaged_gelu_gradients_are_refused(check: StepCheck):
    """A plan that lacks what the gradient is taken at, has less of it, or has another layer's."""
    good, bad = check.folder / "gelu-good.spmd", check.folder / "gelu-bad.spmd"
    run(tool("spmd-compile"), check.step, "--ranks=2", *DIMS, "--quiet", "--target=emulate:sm_90",
        "--epilogues=bias,residual,gelu_tanh_backward", "-o", good)
    manifest = json.loads((good / "manifest.json").read_text())
    del manifest["programs"][0]["hash"]

    def refuse(change, expected: str):
        shutil.rmtree(bad, ignore_errors=True)
        shutil.copytree(good, bad)
        plan = json.loads((good / "train_step.plan.json").read_text())
        first, second = [g for g in plan["commands"] if g.get("activation") == "gelu_tanh_backward"][:2]
        change(first, second)
        (bad / "train_step.plan.json").write_text(json.dumps(plan))
        (bad / "manifest.json").write_text(json.dumps(manifest))
        done = subprocess.run([str(tool("spmd-run")), str(bad), "--steps=1"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and expected in done.stderr, (done.returncode, done.stderr)

    refuse(lambda g, other: g.pop("pre_activation"),
           "expected pre_activation, where the gradient of the activation is taken")
    refuse(lambda g, other: g["pre_activation"].update(bytes=64),
           "matrix pre_activation needs 640 bytes, its reference has 64")
    refuse(lambda g, other: g.update(pre_activation=other["pre_activation"]), "certificate rule 8: ")
    refuse(lambda g, other: g.update(activation="gelu_tanh"), "certificate rule ")
