"""Every kernel of a model's training step on an emulated GPU equals the CPU's, from the same memory (lockstep.py)."""
import os
import subprocess
import sys

import pytest
import torch
from lockstep import CPU, compare_step

import spmd

ROOT = os.environ["SPMD_SOURCE"]
sys.path.insert(0, os.path.join(ROOT, "test", "Models"))
import own  # noqa: E402


def run(folder, step):
    """Compares the kernels of a step package; how many they are."""
    kernels, emulated, on_cpu = folder / "kernels.mlir", folder / "emulated.spmd", folder / "cpu.spmd"

    def compile_step(*arguments):
        subprocess.run([os.path.join(os.environ["SPMD_BIN"], "spmd-compile"), *arguments, "--quiet"], check=True)

    compile_step(step, "-o", kernels, "--compile-to=kernels", "--ranks=1", "--target=emulate:sm_90")
    for artifact, target in ((emulated, "emulate:sm_90"), (on_cpu, "host")):
        compile_step(kernels, "-o", artifact, "--compile-from=kernels", f"--cpu={CPU}", f"--target={target}")
    return compare_step(step, emulated, on_cpu, kernels.read_text())


def test_gpt2_nano(tmp_path):
    number, launches, same = run(tmp_path, os.path.join(ROOT, "examples", "gpt2-nano.step"))
    print(f"GPT-2 nano: {number} kernels, {launches} launches equal the CPU's, {same} to the bit")
    assert number >= 20 and launches >= 50


@pytest.mark.parametrize("spelled", [False, True])
def test_llama_nano(spelled, tmp_path):
    """Rotary positions, grouped-query attention, SwiGLU, RMS norm; AdamW and clipping."""
    torch.manual_seed(0)
    model = own.Llama(vocabulary=93, width=128, heads=4, kv_heads=2, spelled=spelled)
    x, y = (torch.randint(0, 93, (2, 40)) for _ in range(2))
    package = spmd.capture(own.clipped_step, model, torch.optim.AdamW(model.parameters(), lr=1e-3), x, y,
                           reference=[(x, y)])
    package.save(tmp_path / "llama.step")
    number, launches, same = run(tmp_path, tmp_path / "llama.step")
    print(f"Llama nano: {number} kernels, {launches} launches equal the CPU's, {same} to the bit")
    assert number >= 20 and launches >= 30
