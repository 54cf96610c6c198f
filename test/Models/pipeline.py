"""Takes one model of the zoo from capture to two ranks, and says how far it came."""
from __future__ import annotations

import dataclasses
import re
import subprocess
import tempfile
from pathlib import Path

import torch

import spmd
import zoo
from spmd.tools import find_tool

STAGES = ("capture", "import", "equal in float64", "compile", "train")


class StageError(Exception):
    """The stage that failed and the first line of what it said."""

    def __init__(self, stage: str, message: str):
        super().__init__(message)
        self.stage = stage


@dataclasses.dataclass
class Collectives:
    """What one step issues: gathers, reduce-scatters, all-reduces and the messages they travel in."""

    all_gather: int
    reduce_scatter: int
    all_reduce: int
    units: int


def run(stage: str, *command: object, timeout: float = 300) -> str:
    try:
        done = subprocess.run([str(c) for c in command], text=True, capture_output=True, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise StageError(stage, f"took longer than {timeout:.0f} s") from error
    if done.returncode:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if "error" in line] or \
                (done.stderr or done.stdout).splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise StageError(stage, lines[0])
    return done.stdout + done.stderr


def capture(case: zoo.Case, folder: Path, optimizer: str = "adamw", steps: int = 3) -> Path:
    """The step package of a case: AdamW and clipping as people train, or plain SGD, which hides nothing."""
    model = zoo.build(case)
    if optimizer == "adamw":
        step, made = zoo.train_step, torch.optim.AdamW(model.parameters(), lr=1e-3)
    else:
        step, made = zoo.plain_step, torch.optim.SGD(model.parameters(), lr=1e-2)
    batches = zoo.batches(case, max(steps, 1))
    zero = zoo.zero_gradients(model, batches[0])
    path = folder / f"{optimizer}.step"
    try:
        package = spmd.capture(step, model, made, batches[0], reference=[(b,) for b in batches[:steps]], zero_gradient=zero,
                               reference_state="zero_gradient" if zero else "none")
    except Exception as error:  # whatever it is, it is told
        raise StageError("capture", f"{type(error).__name__}: {error}".splitlines()[0]) from error
    package.save(path)
    return path


def partition(step: Path, case: zoo.Case, ranks: int) -> tuple[Path, Path]:
    """The captured program and one rank's, scheduled."""
    program, local = step.with_suffix(".mlir"), step.with_suffix(f".{ranks}.mlir")
    run("import", find_tool("spmd-translate"), "--import-step", step, "-o", program)
    run("compile", find_tool("spmd-compile"), step, f"--ranks={ranks}", f"--policy=class:{case.block}",
        "--compile-to=collectives", "-o", local)
    return program, local


def compare(step: Path, case: zoo.Case, ranks: int, tolerance: float | None = None) -> Path:
    """One rank's program against the captured one in doubles: loss, parameters, optimizer state."""
    program, local = partition(step, case, ranks)
    run("equal in float64", find_tool("spmd-interpret"), local, f"--ranks={ranks}", f"--compare={program}",
        f"--weights={step}", *([f"--rtol={tolerance}"] if tolerance else []))
    return local


def count(local: Path) -> Collectives:
    text = local.read_text()
    return Collectives(len(re.findall(r"spmd\.all_gather_start", text)),
                       len(re.findall(r"spmd\.reduce_scatter_start", text)),
                       len(re.findall(r"spmd\.all_reduce_start", text)), len(re.findall(r"spmd\.shard_unit @", text)))


def train(step: Path, case: zoo.Case, ranks: int, rtol: float = 1e-3) -> None:
    """Compiles, and trains as many steps as were recorded, against eager PyTorch."""
    artifact = step.with_suffix(f".{ranks}.spmd")
    run("compile", find_tool("spmd-compile"), step, "-o", artifact, f"--ranks={ranks}", f"--policy=class:{case.block}")
    run("train", find_tool("spmd-run"), artifact, "--check", "--quiet", f"--rtol={rtol}")


def check(case: zoo.Case, ranks: int = 2) -> str:
    """Everything, for one case; what the collectives are."""
    with tempfile.TemporaryDirectory() as folder:
        for optimizer in ("sgd", "adamw"):
            step = capture(case, Path(folder), optimizer)
            local = compare(step, case, ranks)
        train(step, case, ranks)
        found = count(local)
        return f"{found.all_gather} gathers, {found.reduce_scatter} reduce-scatters, {found.all_reduce} all-reduces"
