"""Steps in bf16, and in f32 under autocast, on any number of ranks: in float64 what was captured, in bf16 what eager
PyTorch computes, to epsilons of bf16."""
from __future__ import annotations

from pathlib import Path

import own
import pytest
import torch
from pipeline import find_tool, run
from safetensors.torch import load_file

import spmd

VOCABULARY, ROWS, TIME = 50, 8, 9
EPSILON = 2.0**-7


def autocast(model, optimizer, x, y):
    with torch.autocast(x.device.type, torch.bfloat16):
        loss = model(x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def capture(folder: Path, kind: str, steps: int, **options) -> Path:
    """A Llama of two blocks; `bf16` keeps everything in it, AdamW's state too, `autocast` parameters in f32."""
    torch.manual_seed(0)
    model = own.Llama(fused=kind == "bf16", vocabulary=VOCABULARY, width=32)
    if kind == "bf16":
        model = model.to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, **options)
    batches = [(torch.randint(0, VOCABULARY, (ROWS, TIME)), torch.randint(0, VOCABULARY, (ROWS, TIME)))
               for _ in range(steps)]
    package = spmd.capture(own.clipped_step if kind == "bf16" else autocast, model, optimizer, *batches[0],
                           reference=batches)
    package.save(folder / "s.step")
    return folder / "s.step"


def compile_step(step: Path, ranks: int, to: Path, *options: str) -> Path:
    run("compile", find_tool("spmd-compile"), step, f"--ranks={ranks}", "--policy=class:LlamaBlock",
        "--quiet", *options, "-o", to)
    return to


@pytest.mark.parametrize("kind", ["bf16", "autocast"])
def test_equal_on_any_number_of_ranks(kind, tmp_path) -> None:
    """Every phase up to the kernels, on ranks that divide the batch and that do not. Numbers that kernels hold as f32
    differ by its rounding."""
    step, base = capture(tmp_path, kind, 1, fused=True), tmp_path / "base.mlir"
    run("import", find_tool("spmd-translate"), "--import-step", step, "-o", base)
    for ranks in (1, 2, 3, 4):
        for phase, tolerance in (("collectives", 1e-12), ("kernels", 1e-6)):
            program = compile_step(step, ranks, tmp_path / f"{phase}.mlir", f"--compile-to={phase}")
            run("interpret", find_tool("spmd-interpret"), program, f"--ranks={ranks}", f"--compare={base}", "--steps=2",
                f"--rtol={tolerance}")


@pytest.mark.parametrize("kind, options, ranks", [
    ("bf16", {"foreach": True}, 2), ("bf16", {"fused": True}, 2), ("bf16", {"fused": True}, 4),
    ("autocast", {"foreach": True}, 2), ("autocast", {"fused": True}, 1)])
@pytest.mark.sample(2)
def test_trains_like_eager(kind, options, ranks, tmp_path) -> None:
    """20 steps; --check allows losses 2, parameters 8 epsilons of bf16."""
    artifact = compile_step(capture(tmp_path, kind, 20, **options), ranks, tmp_path / "s.spmd")
    said = run("train", find_tool("spmd-run"), artifact, "--check", "--quiet", "--threads=2")
    assert "tolerance 0.0156" in said and "tolerance 0.0625" in said, said


def test_autocast_multiplies_in_bf16_and_moves_f32(tmp_path) -> None:
    """The cast of a parameter follows its gather, as in eager: gathers and gradients are f32."""
    plan = compile_step(capture(tmp_path, "autocast", 1), 2, tmp_path / "plan.mlir", "--compile-to=plan").read_text()
    products = [line for line in plan.splitlines() if "plan.gemm(" in line]
    assert len(products) > 20 and all(": bf16 " in line for line in products)
    moved = [line for line in plan.splitlines() if "plan.all_gather(" in line or "plan.reduce_scatter " in line]
    assert len(moved) == 9 and all(": f32 " in line for line in moved)


@pytest.mark.parametrize("kind", ["bf16", "autocast"])
def test_the_interpreter_rounds_where_the_kernels_do(kind, tmp_path) -> None:
    """And fusion moves no rounding: every light op alone gives the same bits."""
    step = capture(tmp_path, kind, 2, foreach=True)
    program = compile_step(step, 2, tmp_path / "kernels.mlir", "--compile-to=kernels")
    run("interpret", find_tool("spmd-interpret"), program, "--ranks=2", f"--weights={step}", "--steps=2",
        "--dtype=program", f"--save={tmp_path / 'interpreted'}")
    artifact = compile_step(step, 2, tmp_path / "s.spmd")
    run("train", find_tool("spmd-run"), artifact, "--steps=2", "--quiet", f"--save={tmp_path / 'trained.safetensors'}")
    alone = compile_step(step, 2, tmp_path / "alone.spmd", "--fuse=false")
    run("train", find_tool("spmd-run"), alone, "--steps=2", "--quiet", f"--save={tmp_path / 'alone.safetensors'}")
    assert (tmp_path / "trained.safetensors").read_bytes() == (tmp_path / "alone.safetensors").read_bytes()
    interpreted, trained = load_file(tmp_path / "interpreted"), load_file(tmp_path / "trained.safetensors")
    compared = 0
    for name, ours in trained.items():
        if name.startswith("optimizer/"):
            continue
        expected = interpreted[f"final/{name}"]
        difference = float((ours.double() - expected).norm() / expected.norm())
        print(name, difference)
        assert difference <= 4 * EPSILON, f"{name}: {difference}"
        compared += 1
    assert compared == 21
