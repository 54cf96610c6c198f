"""Takes one model of the zoo from capture to two ranks, and says how far it came."""
from __future__ import annotations

import contextlib
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
    """The stage that failed, and what it said: what is wrong, at which op, module and line."""

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
        raise StageError(stage, told(done.stdout, done.stderr) or f"exit status {done.returncode}")
    return done.stdout + done.stderr


def told(output: str, errors: str) -> str:
    """The first error of a tool in one line: its message, with the op and the module that its next lines name, and with
    the tensors that differ most, where a comparison failed."""
    lines = errors.splitlines() or output.splitlines()
    at = next((i for i, line in enumerate(lines) if "error: " in line or "differ by" in line), len(lines) - 1)
    context = [line.split("note: ")[-1].strip() for line in lines[at + 1:at + 4]
               if line.startswith("  in ") or "note: op " in line]
    apart = re.findall(r"largest .*? (\S+ \(.*?\))", output)
    rows = re.findall(r"^\S+ +\d+ +(\d\S+)  (\S.*)$", output, re.MULTILINE)
    if rows:
        apart.append("{1} ({0})".format(*max(rows, key=lambda row: float(row[0]))))
    return "; ".join([*lines[max(at, 0):at + 1], *context, *apart])


def refused(stage: str, error: Exception) -> StageError:
    """An error of ours in one line: what is wrong, and at which line of the model."""
    lines = f"{type(error).__name__}: {error}".splitlines()
    place = [re.sub(r'"[^"]*/', '"', line.strip()) for line in lines if line.startswith("  File ")]
    return StageError(stage, "; ".join(lines[:1] + place[-1:]))


def prepare(case: zoo.Case, dtype: torch.dtype) -> torch.nn.Module:
    """The model in a type."""
    model = zoo.build(case).to(dtype)
    for name, module in model.named_modules():
        if case.in_f32 and name.split(".")[-1] == case.in_f32:  # the whole model's own name is empty
            module.float()
    return model


def capture(case: zoo.Case, folder: Path, optimizer: str = "adamw", steps: int = 3, dtype: torch.dtype = torch.float32) -> Path:
    """The step package of a case: AdamW and clipping as people train, or plain SGD, which hides nothing."""
    model = prepare(case, dtype)
    if optimizer == "adamw":
        step, made = zoo.train_step, torch.optim.AdamW(model.parameters(), lr=1e-3)
    else:
        step, made = zoo.plain_step, torch.optim.SGD(model.parameters(), lr=1e-2)
    batches = zoo.batches(case, max(steps, 1))
    path = folder / f"{optimizer}.step"
    try:
        with zoo.first_of_ties() if case.ties else contextlib.nullcontext():
            package = spmd.capture(step, model, made, batches[0], reference=[(b,) for b in batches[:steps]],
                                   reference_state="zero_gradient")
    except Exception as error:  # whatever it is, it is told
        raise refused("capture", error) from error
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


def train(step: Path, case: zoo.Case, ranks: int, rtol: float = 1e-3, target: str = "host") -> None:
    """Compiles, and trains as many steps as were recorded, against eager PyTorch."""
    artifact = step.with_suffix(f".{ranks}.spmd")
    run("compile", find_tool("spmd-compile"), step, "-o", artifact, f"--ranks={ranks}", f"--policy=class:{case.block}",
        f"--target={target}")
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
