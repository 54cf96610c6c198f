"""An op that this project does not know, from capture to two ranks: its ODS entry (Mylib.td) is all there is of it."""
import json
import os
import struct
import subprocess
from pathlib import Path

import pytest
import torch

import spmd

BIN = Path(os.environ["SPMD_BIN"])
PLUGIN = f"--load-dialect-plugin={BIN.parent / 'lib' / 'libSpmdTestMylib.so'}"
SLOPE = 0.3

library = torch.library.Library("mylib", "DEF")
library.define("swoosh(Tensor self, Tensor gate, float slope) -> Tensor")
library.define("swoosh_gate_backward(Tensor grad_output, Tensor self, Tensor gate, float slope) -> Tensor")


def swoosh(x, gate, slope):
    return (x + slope * gate) * gate.sigmoid()


def swoosh_gate_backward(grad, x, gate, slope):
    sigmoid = gate.sigmoid()
    return grad * (slope * sigmoid + (x + slope * gate) * sigmoid * (1 - sigmoid))


for name, function in (("swoosh", swoosh), ("swoosh_gate_backward", swoosh_gate_backward)):
    library.impl(name, function, "CPU")
    torch.library.register_fake(f"mylib::{name}", lambda *args: torch.empty_like(args[-3]), lib=library)


class Swoosh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gate):
        ctx.save_for_backward(x, gate)
        return torch.ops.mylib.swoosh(x, gate, SLOPE)

    @staticmethod
    def backward(ctx, grad):
        x, gate = ctx.saved_tensors
        return grad * gate.sigmoid(), torch.ops.mylib.swoosh_gate_backward(grad, x, gate, SLOPE)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(5, 7)
        self.gate = torch.nn.Linear(5, 7)

    def forward(self, x):
        return Swoosh.apply(self.up(x), self.gate(x))


def train_step(model, optimizer, x, y):
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def run(tool, *arguments):
    done = subprocess.run([BIN / tool, PLUGIN, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def step(tmp_path):
    torch.manual_seed(3)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [(torch.randn(6, 5), torch.randn(6, 7)) for _ in range(4)]
    package = spmd.capture(train_step, model, optimizer, *batches[0], reference=batches)
    assert {"mylib.swoosh.default", "mylib.swoosh_gate_backward.default"} <= {n["op"] for n in package.step["nodes"]}
    return package.save(tmp_path / "swoosh.step")


def test_interpreter_gives_pytorchs_values(step, tmp_path):
    run("spmd-translate", "--import-step", step, "-o", tmp_path / "swoosh.mlir")
    assert "mylib.swoosh" in (tmp_path / "swoosh.mlir").read_text()
    run("spmd-interpret", tmp_path / "swoosh.mlir", f"--weights={step}", "--reference")


def test_sharding_rules_are_right(step, tmp_path):
    run("spmd-translate", "--import-step", step, "-o", tmp_path / "swoosh.mlir")
    report = run("spmd-interpret", tmp_path / "swoosh.mlir", "--check-rules")
    for op in ("swoosh", "swoosh_gate_backward"):
        assert f"mylib.{op}: 2 factors" in report, report


def test_trains_like_eager_on_two_ranks(step, tmp_path):
    run("spmd-compile", step, "-o", tmp_path / "swoosh.spmd", "--ranks=2", "--quiet")
    done = subprocess.run([BIN / "spmd-run", tmp_path / "swoosh.spmd", "--check", "--quiet"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_trains_like_eager_on_an_emulated_gpu(step, tmp_path):
    run("spmd-compile", step, "-o", tmp_path / "swoosh.spmd", "--ranks=2", "--target=emulate:sm_90", "--quiet")
    done = subprocess.run([BIN / "spmd-run", tmp_path / "swoosh.spmd", "--check", "--quiet"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_compiles_to_cubins(step, tmp_path):
    # Where there is no ptxas, a script stands in for it; the PTX is the same.
    stand_in = tmp_path / "cuda" / "bin" / "ptxas"
    stand_in.parent.mkdir(parents=True)
    stand_in.symlink_to(Path(os.environ["SPMD_SOURCE"]) / "test" / "Kernels" / "Gpu" / "Inputs" / "ptxas")
    ptxas = Path(os.environ.get("SPMD_PTXAS", stand_in))
    run("spmd-compile", step, "-o", tmp_path / "swoosh.spmd", "--ranks=2", "--target=cuda:sm_80,sm_90",
        f"--cuda={ptxas.parents[1]}",
        "--kernel-cache=none", "--fuse=false", "--quiet")
    manifest = json.loads((tmp_path / "swoosh.spmd" / "manifest.json").read_text())
    assert {launch["chip"] for launch in manifest["launches"]} == {"sm_80", "sm_90"}
    assert all(launch["bytes"] > 0 and launch["spill_store_bytes"] == 0 for launch in manifest["launches"])
    # Each op has a kernel of its own, not fused, with the slope as a constant: the bits of an f32.
    slope = "0f" + struct.pack(">f", SLOPE).hex().upper()
    for chip in ("sm_80", "sm_90"):
        entries = (tmp_path / "swoosh.spmd" / f"kernels.{chip}.ptx").read_text().split(".visible .entry")[1:]
        assert sum(slope in entry for entry in entries) >= 2, slope


def test_without_the_plugin_the_op_is_named(step):
    done = subprocess.run([BIN / "spmd-translate", "--import-step", step], capture_output=True, text=True)
    assert done.returncode == 2 and "unknown op 'mylib::swoosh'" in done.stderr, done.stderr
