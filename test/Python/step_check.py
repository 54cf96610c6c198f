"""A captured step through the compiler: partitioned for N ranks and compared in float64 with itself, and run on the
host."""
from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, Callable, Sequence

import spmd
import torch
from safetensors.torch import load_file, save_file
from spmd import StepPackage
from spmd.tools import find_tool


def tool(name: str) -> Path:
    """A tool of the build under test (SPMD_BIN), or the one the package finds."""
    folder = os.environ.get("SPMD_BIN")
    return Path(folder) / name if folder else find_tool(name)


def run(*command: Any) -> str:
    """Runs a command; a failure shows what it printed."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def capture_function(function: Callable, inputs: Sequence[torch.Tensor], batch_dim: int | None = None) -> StepPackage:
    """A step that computes `function` of its batch, of which every rank has all, or rows along `batch_dim`."""
    def train_step(model, optimizer, *batch):
        (model.weight * 2).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        return function(*batch)
    model = torch.nn.Module()
    model.register_parameter("weight", torch.nn.Parameter(torch.ones(2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    dims = {f"batch.{i}": batch_dim for i in range(len(inputs))}
    return spmd.capture(train_step, model, optimizer, *inputs, batch_dims=dims)


def compute(function: Callable, inputs: Sequence[torch.Tensor], folder: Path, *options: str) -> list[torch.Tensor]:
    """What such a step gives, compiled with `options` and run; or in the interpreter, if the only one is that."""
    package = capture_function(function, inputs)
    package.save(folder / "s.step")
    if options == ("interpreter",):
        return interpret(package, inputs, folder)
    run(tool("spmd-compile"), folder / "s.step", "--quiet", *options, "-o", folder / "s.spmd")
    with spmd.load(folder / "s.spmd") as trainer:
        return list(trainer.step(*inputs))


def interpret(package: StepPackage, inputs: Sequence[torch.Tensor], folder: Path) -> list[torch.Tensor]:
    """The outputs of a step of such a package, saved as s.step, with results rounded to the program's types."""
    program, given, results = folder / "s.mlir", folder / "in.safetensors", folder / "out.safetensors"
    run(tool("spmd-translate"), "--import-step", folder / "s.step", "-o", program)
    batch, values = iter(inputs), {}
    for position, entry in enumerate(package.step["inputs"]):
        value = {"param": torch.ones(2), "hyper": torch.tensor(0.5, dtype=torch.float64),
                 "constant": package.weights.get(f"constant/{entry.get('name')}")}.get(entry["kind"])
        values[f"step/{position}"] = (next(batch) if entry["kind"] == "batch" else value).clone()
    save_file(values, given)
    run(tool("spmd-interpret"), program, f"--calls={given}", f"--results={results}", "--dtype=program")
    got = load_file(results)
    return [got[f"step/{i}"] for i, output in enumerate(package.step["outputs"]) if output["path"] != "(backward)"]


class StepCheck:
    """One package, saved and imported once."""

    def __init__(self, package: StepPackage, folder: Path, weights: bool = True):
        self.folder, self.step, self.base = folder, folder / "s.step", folder / "base.mlir"
        package.save(self.step, weights=weights)
        run(tool("spmd-translate"), "--import-step", self.step, "-o", self.base)

    def interpret(self, ranks: int, policy: str = "none", *options: str, steps: int = 2,
                  rounded: float | None = None) -> str:
        """Partition to schedule for `ranks`; loss, outputs, parameters and optimizer state agree to 1e-12 in float64, or
        to `rounded` where results are rounded to the program's types.

        Returns what compiler and interpreter said: warnings, collectives."""
        scheduled = self.folder / "scheduled.mlir"
        said = run(tool("spmd-compile"), self.step, f"--ranks={ranks}", f"--policy={policy}",
                   "--compile-to=collectives", "--quiet", *options, "-o", scheduled)
        arithmetic = ["--dtype=program", f"--rtol={rounded}"] if rounded else []
        return said + run(tool("spmd-interpret"), scheduled, f"--ranks={ranks}", f"--compare={self.base}",
                          f"--steps={steps}", *arithmetic)

    def train(self, ranks: int, policy: str = "none", *options: str, rtol: float = 1e-5) -> str:
        """Compiles and trains on the host; losses and final parameters are eager's, which the package recorded."""
        artifact = self.folder / f"s{ranks}.spmd"
        run(tool("spmd-compile"), self.step, f"--ranks={ranks}", f"--policy={policy}", "--quiet", *options,
            "-o", artifact)
        return run(tool("spmd-run"), artifact, "--check", f"--rtol={rtol}", f"--rtol-loss={rtol}", "--quiet",
                   "--threads=2")
