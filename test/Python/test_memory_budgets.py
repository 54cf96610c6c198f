"""Backward recomputes what a memory budget requires, and, without a budget, what costs little time."""
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers")
import llama3_8b  # noqa: E402

import spmd  # noqa: E402

sys.path.append(str(Path(__file__).parent.parent.parent / "benchmark"))
import plan_time  # noqa: E402

UNITS = "--policy=class:LlamaDecoderLayer"


def save(folder: Path, *sizes, **options) -> Path:
    example = llama3_8b.setup(*sizes, **options)
    package = spmd.capture(example["train_step"], example["model"], example["optimizer"], *example["args"])
    package.save(folder / "a.step", weights=False)
    return folder / "a.step"


def plan(step: Path, name: str, *options: str) -> tuple[int, Path]:
    """Bytes of the arena, and the folder of the IR of all phases."""
    folder = step.parent / name
    done = subprocess.run(["spmd-compile", step, UNITS, *options, "--compile-to=plan", f"--dump-ir={folder}", "-o", folder / "plan.mlir"],
                          check=True, capture_output=True, text=True)
    found = re.search(r"^arena: ([0-9,]+) bytes", done.stdout + done.stderr, re.MULTILINE)
    return int(found[1].replace(",", "")), folder


def step_ms(folder: Path) -> float:
    return plan_time.model(folder / "plan.mlir")["step_ms"]


def test_ten_budgets_are_met_and_change_no_bit(tmp_path) -> None:
    step = save(tmp_path, "tiny", batch=2, length=128)
    most, kept = plan(step, "kept", "--ranks=2")
    least, _ = plan(step, "all", "--ranks=2", "--recompute=1000")
    assert least < 0.9 * most
    assert "spmd.recomputed" not in (kept / "04-collectives.mlir").read_text(), "a small step is not traded"
    counts, programs = [], {}
    for i in range(10):
        budget = least + (most - least) * i // 9
        arena, folder = plan(step, f"budget{i}", "--ranks=2", f"--memory-budget={budget}")
        assert arena <= budget
        program = (folder / "04-collectives.mlir").read_text()
        counts.append(len(re.findall(r"spmd\.recompute\b", next(folder.glob("*-decompose.mlir")).read_text())))
        programs[program] = folder
    assert counts == sorted(counts, reverse=True) and counts[-1] == 0
    assert len(programs) >= 4
    for folder in list(programs.values())[::2]:
        done = subprocess.run(["spmd-interpret", folder / "04-collectives.mlir", f"--compare={kept / '04-collectives.mlir'}",
                               "--dtype=program", "--rtol=1e-300"], check=True, capture_output=True, text=True)
        assert re.search(r"loss +[0-9]+ +0.00e\+00", done.stdout) and re.search(r"parameters +[0-9]+ +0.00e\+00", done.stdout)


def test_without_a_budget_little_time_is_traded_for_memory(tmp_path) -> None:
    step = save(tmp_path, batch=8, layers=2, length=8192)
    kept, whole = plan(step, "kept", "--ranks=8", "--no-budget-trades")
    traded, folder = plan(step, "traded", "--ranks=8")
    # Twice silu(gate) * up and the outputs of two norms.
    assert kept - traded == 2 * 2 * 8192 * (14336 + 2 * 4096)
    assert step_ms(whole) < step_ms(folder) <= 1.006 * step_ms(whole)
    assert "spmd.recomputed" in (folder / "04-collectives.mlir").read_text()
    # Where each rank has all gradients, the peak is at the end of backward.
    _, folder = plan(step, "replicated", "--ranks=8", "--mode=replicate")
    assert "spmd.recomputed" not in (folder / "04-collectives.mlir").read_text()
