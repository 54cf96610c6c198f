"""Of a loop over microbatches a few iterations go through the passes; the kernels are those that all would have given."""
from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Callable

import pytest
import torch
import torch.nn.functional as F
from artifact_iterations import unroll_commands, unroll_values
from iterations import roll, unroll
from small_net import Net
from step_check import run, tool
from torch import nn
from torch.nn.utils import clip_grad_norm_

import spmd

COUNT = 9
FALLBACK = "all iterations of the loop go through all passes"


def accumulate(model, optimizer, xs, ys):
    total = 0
    for x, y in zip(xs, ys):
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / len(xs)
        loss.backward()
        total = total + loss.detach()
    clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return total


def look_back(model, optimizer, xs, ys):
    """What the loop is fed is read behind it, too."""
    return accumulate(model, optimizer, xs, ys) + model(xs[1]).detach().mean()


class Counting(Net):
    """The additions of one depend on nothing else: behind the loop one kernel does all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count.add_(1)
        return super().forward(x)


class Positions(Net):
    """Each iteration has values that every rank has whole: a list of them is part of the IR."""

    def forward(self, x):
        return super().forward(x) + torch.arange(2048.0).mul(x.sum()).cos().mean()


class Normed(nn.Module):
    """Running statistics over the batches of all iterations."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.norm, self.out = nn.Linear(32, 32), nn.BatchNorm1d(32), nn.Linear(32, 64)

    def forward(self, x):
        hidden = self.inner(F.one_hot(x % 32, 32).float())
        return self.out(self.norm(hidden.flatten(0, 1)).view_as(hidden))


def packages(model: nn.Module, folder: Path, step: Callable = accumulate) -> tuple[Path, Path]:
    """The step with its iterations once, and spelled out."""
    torch.manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    rows = [torch.randint(64, (4, 9)) for _ in range(COUNT)]
    package = spmd.capture(step, model, optimizer, [r[:, :-1].contiguous() for r in rows],
                           [r[:, 1:].contiguous() for r in rows])
    flat = unroll(json.loads(package.text()))
    rolled = roll(flat)
    assert rolled["repeats"][0]["count"] >= 6
    return tuple(dataclasses.replace(package, step=step).save(folder / f"{name}.step")
                 for name, step in (("rolled", rolled), ("flat", flat)))


def compiled(step: Path, *options: str) -> tuple[str, bool]:
    """The IR of its kernels, with locations, and whether few iterations were enough."""
    out = step.with_suffix(".mlir")
    said = run(tool("spmd-compile"), step, "--compile-to=kernels", "--remarks", "--quiet", "-o", out, *options)
    return out.read_text(), FALLBACK not in said


@pytest.fixture(scope="module")
def net(tmp_path_factory) -> tuple[Path, Path]:
    torch.manual_seed(0)
    return packages(Net(), tmp_path_factory.mktemp("net"))


@pytest.mark.parametrize("options", [
    "--ranks=1", "--ranks=2 --policy=class:Block", "--ranks=3 --policy=class:Block --prefetch=0",
    "--ranks=4 --policy=class:Block --reshard-after-forward=false", "--ranks=2 --mode=replicate",
    "--mesh=replicate:2,shard:2 --policy=class:Block", "--ranks=2 --target=emulate:sm_90"])
@pytest.mark.sample(2)
def test_kernels_are_those_of_all_iterations(net: tuple[Path, Path], options: str) -> None:
    (few, is_few), (whole, _) = (compiled(step, *options.split()) for step in net)
    assert is_few
    assert few == whole


def test_values_that_ranks_have_whole(tmp_path: Path) -> None:
    torch.manual_seed(0)
    (few, is_few), (whole, _) = (compiled(step, "--ranks=2") for step in packages(Positions(), tmp_path))
    assert is_few and "spmd.replicated" in few
    assert few == whole


@pytest.mark.parametrize("model", [Counting, Normed], ids=lambda model: model.__name__)
def test_what_depends_on_the_number_of_iterations(model: type[nn.Module], tmp_path: Path) -> None:
    """The program of one iteration more has other ops besides those of the iteration: all iterations are compiled."""
    torch.manual_seed(0)
    rolled, flat = packages(model(), tmp_path)
    (few, is_few), (whole, _) = compiled(rolled, "--ranks=2"), compiled(flat, "--ranks=2")
    assert not is_few
    assert few == whole


def test_a_batch_that_is_read_behind_the_loop(tmp_path: Path) -> None:
    torch.manual_seed(0)
    few, whole = (compiled(step, "--ranks=2")[0] for step in packages(Net(), tmp_path, look_back))
    assert few == whole


def artifact(step: Path, *options: str) -> tuple[list[dict], list[dict], bool]:
    """Commands and values, with all iterations, and whether the file has them all."""
    out = step.with_suffix(".spmd")
    run(tool("spmd-compile"), step, "--quiet", "-o", out, *options)
    plan = json.loads((out / "train_step.plan.json").read_text())
    manifest = json.loads((out / "manifest.json").read_text())
    assert ("repeats" in plan) == ("repeats" in manifest)
    # Which waits are needed depends on what shares bytes.
    commands = [command for command in unroll_commands(plan) if command["op"] != "wait"]
    return commands, unroll_values(manifest), "repeats" not in plan


@pytest.mark.parametrize("options", [
    "--ranks=1", "--ranks=2 --policy=class:Block", "--ranks=3 --policy=class:Block --prefetch=0",
    "--ranks=4 --policy=class:Block --reshard-after-forward=false", "--ranks=2 --mode=replicate",
    "--mesh=replicate:2,shard:2 --policy=class:Block", "--ranks=2 --target=emulate:sm_90"])
@pytest.mark.sample(2)
def test_an_artifact_is_that_of_all_iterations(net: tuple[Path, Path], options: str) -> None:
    """One iteration stands for the others, and what is left out is what is there when all are planned."""
    (commands, values, is_whole), (all_commands, all_values, _) = (artifact(step, *options.split()) for step in net)
    assert not is_whole
    assert values == all_values
    assert commands == all_commands


def averaged(model, optimizer, xs, ys):
    scale = 1 / (1 + model.norm.weight.detach().square().mean())
    for x, y in zip(xs, ys):
        (F.cross_entropy(model(x).flatten(0, 1), y.flatten()) * scale).backward()
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        model.average.lerp_(model.norm.weight, 0.1)
    return scale


def test_why_all_iterations_are_planned(tmp_path: Path) -> None:
    """A remark of the plan that could not be, as that a value is copied, is no reason."""
    torch.manual_seed(0)
    model = Net()
    model.register_buffer("average", torch.zeros(32))
    rolled, _ = packages(model, tmp_path, averaged)
    said = run(tool("spmd-compile"), rolled, "--ranks=2", "--policy=always", "--remarks", "--quiet", "-o", tmp_path / "a.spmd")
    assert "the new value of average is copied" in said
    assert "all iterations of the loop are planned: 'plan.program' op" in said


def test_ir_of_single_iterations_is_that_of_all(net: tuple[Path, Path], tmp_path: Path) -> None:
    """Who looks at what passes make of an iteration sees all of them."""
    dumps = []
    for step in net:
        run(tool("spmd-compile"), step, "--compile-to=kernels", "--quiet", "-o", tmp_path / "out.mlir",
            f"--dump-ir={tmp_path / step.stem}")
        dumps.append([path.read_text() for path in sorted((tmp_path / step.stem).iterdir())])
    assert dumps[0] == dumps[1] and len(dumps[0]) == 6
