"""Checkpoints: parameters that are frozen at some steps, in files of all kinds, of wrapped models, on other ranks.

Each case trains six steps eagerly. A training that is saved before step AT, and resumed by another model on other ranks, takes
the remaining steps to eager's losses. A case "lacks" part of the optimizer's state: a strict load refuses it.
"""
from __future__ import annotations

import copy
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

import spmd

STEPS, CASES = 6, 160
FROZEN = {  # at each step: the modules of the network whose parameters are frozen
    "never": [""] * 6, "always": ["0"] * 6, "later": ["", "", "0", "0", "", ""], "first": ["0", "0", "0", "0", "", ""],
    "head": ["", "2", "2", "2", "2", ""], "twice": ["", "0", "", "0", "", "0"], "in turn": ["0", "2", "0", "2", "0", "2"]}
FILES = ("torch.save", "named", "safetensors", "full", "sharded", "made")
WRAPPERS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "plain": lambda block: block, "checkpoint_wrapper": checkpoint_wrapper, "torch.compile": torch.compile,
    "both": lambda block: torch.compile(checkpoint_wrapper(block))}
OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "AdamW": lambda given: torch.optim.AdamW(given, lr=0.05), "Adagrad": lambda given: torch.optim.Adagrad(given, lr=0.05),
    "SGD": lambda given: torch.optim.SGD(given, lr=0.05, momentum=0.9)}


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.norm = nn.Linear(4, 6), nn.BatchNorm1d(6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.fc(x))


class Training:
    """A network whose first module is wrapped, its optimizer, and a step, eager or compiled."""

    def __init__(self, seed: int, wrapper: str, optimizer: str, step: Callable[..., torch.Tensor]):
        torch.manual_seed(seed)
        self.block = Block().double()
        self.model = nn.Sequential(WRAPPERS[wrapper](self.block), nn.Tanh(), nn.Linear(6, 3).double())
        self.optimizer = OPTIMIZERS[optimizer](self.model.named_parameters())
        self.step = step

    def freeze(self, module: str) -> None:
        for number in ("0", "2"):
            self.model[int(number)].requires_grad_(number != module)

    def run(self, first: int, last: int, frozen: list[str]) -> list[float]:
        losses = []
        for number in range(first, last):
            self.freeze(frozen[number])
            generator = torch.Generator().manual_seed(number)
            x = torch.randn(6, 4, generator=generator, dtype=torch.float64)
            y = torch.randint(3, (6,), generator=generator)
            losses.append(self.step(self.model, self.optimizer, x, y).item())
        return losses


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def names() -> list[str]:
    """The cases by name: drawn with a seed, and all that lack something."""
    draw = random.Random(0)
    found = []
    for _ in range(CASES):
        found.append(", ".join((draw.choice(list(FROZEN)), draw.choice(FILES), draw.choice(list(WRAPPERS)), draw.choice(list(WRAPPERS)),
                                draw.choice(list(OPTIMIZERS)), f"at {draw.choice((3, 4))}", f"{draw.choice((1, 2))} to {draw.choice((1, 2, 3))}",
                                draw.choice(("new", "running")), "lacks nothing")))
    for kind in ("step", "exp_avg", "exp_avg_sq"):
        for state in ("new", "running"):
            found += [f"never, {file}, plain, {wrapper}, AdamW, at 3, 2 to 2, {state}, lacks {kind}"
                      for file in ("torch.save", "made") for wrapper in ("plain", "checkpoint_wrapper")]
    return found


def case(name: str) -> harness.Outcome:
    frozen_name, file, saved, loaded, optimizer, at, ranks, state, lacks = name.split(", ")
    frozen, begin, lacks = FROZEN[frozen_name], int(at[3:]), lacks[6:]
    before, after = (int(number) for number in ranks.split(" to "))
    eager = Training(0, "plain", optimizer, train_step)
    eager.run(0, begin, frozen)
    folder = Path(tempfile.mkdtemp())
    place = _save(folder, eager, Training(0, saved, optimizer, spmd.compile(train_step, ranks=before)), file, begin, frozen, lacks)
    expected = eager.run(begin, STEPS, frozen)
    step = spmd.compile(train_step, ranks=after)
    resumed = Training(1, loaded, optimizer, step)
    if state == "running":
        resumed.run(0, begin + 1, frozen)
    try:
        step.load_checkpoint(place)
        found = resumed.run(begin, STEPS, frozen)
    except (ValueError, spmd.RunError) as error:
        if lacks != "nothing" and lacks in str(error):
            return harness.Outcome("right")
        raise
    if lacks != "nothing":
        return harness.Outcome("wrong", f"a file without {lacks!r} is loaded")
    return harness.compare(expected, found, 1e-9)


def _save(folder: Path, eager: Training, compiled: Training, file: str, begin: int, frozen: list[str], lacks: str) -> Path:
    """A file of the eager training, under the names of a wrapped model, or a folder of the compiled one."""
    if file in ("full", "sharded"):
        compiled.run(0, begin, frozen)
        compiled.step.save_checkpoint(folder / "c", kind=file)
        return folder / "c"
    compiled.model.load_state_dict(dict(zip(compiled.model.state_dict(), eager.model.state_dict().values())))
    optimizer = copy.deepcopy(eager.optimizer.state_dict())
    for state in optimizer["state"].values():
        state.pop(lacks, None)
    names = [name for name, _ in compiled.model.named_parameters()]
    for group in optimizer["param_groups"]:
        group["param_names"] = names
        if file == "torch.save":
            del group["param_names"]
    states = {f"optimizer/{kind}/{names[number]}": value for number, state in optimizer["state"].items() for kind, value in state.items()
              if isinstance(value, torch.Tensor)}
    weights = {key: value.clone() for key, value in compiled.model.state_dict().items()}
    if file in ("torch.save", "named"):
        torch.save({"model": weights, "optimizer": optimizer}, folder / "a.pt")
        return folder / "a.pt"
    save_file(weights | states, folder / "a.safetensors")
    if file == "made":
        spmd.checkpoint.Checkpoint.make(folder / "a.safetensors", folder / "c", step=begin)
    return folder / ("c" if file == "made" else "a.safetensors")


if __name__ == "__main__":
    harness.main("checkpoints", names(), case)
