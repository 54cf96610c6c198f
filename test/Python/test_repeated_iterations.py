"""A package that has iterations once is the program of the one with all of them spelled out, to the letter."""
from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path
from typing import Any, Callable

import pytest
import torch
import torch.nn.functional as F
from iterations import roll, unroll
from step_check import run, tool
from step_interpreter import StepInterpreter
from torch import nn

import spmd

COUNT = 7


def imported(step: dict[str, Any], folder: Path) -> str:
    """The program of a step.json, with locations."""
    folder.mkdir(exist_ok=True)
    (folder / "step.json").write_text(json.dumps(step))
    run(tool("spmd-translate"), "--import-step", folder, "-o", folder / "step.mlir")
    return (folder / "step.mlir").read_text()


# -- Loops that were captured ------------------------------------------------------------------------------------------

class Net(nn.Module):
    """Running statistics that are written in place, and memory that goes from one microbatch to the next."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.inner, self.out = nn.BatchNorm1d(6), nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x, memory):
        memory = torch.tanh(self.norm(self.inner(x)) + memory)
        return self.out(memory), memory


def accumulate(model, optimizer, xs, ys):
    total, memory = 0, torch.zeros(4, 6)
    for x, y in zip(xs, ys):
        logits, memory = model(x, memory)
        loss = F.cross_entropy(logits, y) / len(xs)
        loss.backward()
        memory, total = memory.detach(), total + loss.detach()
    optimizer.step()
    optimizer.zero_grad()
    return total


def all_losses(model, optimizer, xs, ys):
    """Every iteration's loss is an output, and what the last one has is written behind the loop."""
    losses, memory = [], torch.zeros(4, 6)
    for x, y in zip(xs, ys):
        logits, memory = model(x, memory)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        memory = memory.detach().view(2, 12).view(4, 6)
        losses.append(loss.detach())
    optimizer.step()
    optimizer.zero_grad()
    memory.mul_(2)
    return {"losses": losses, "last": memory, "sum": sum(losses)}


def in_place(model, optimizer, xs, ys):
    """A sum that is written in place, also through a view of it that was made before the loop."""
    total = torch.zeros(2, 4)
    row = total[0]
    for x, y in zip(xs, ys):
        logits, _ = model(x, 0)
        losses = F.cross_entropy(logits, y, reduction="none")
        losses.sum().backward()
        row.add_(losses.detach())
        total.mul_(0.5)
    optimizer.step()
    optimizer.zero_grad()
    return row.sum(), total


def captured(function: Callable, count: int = COUNT) -> spmd.StepPackage:
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    xs = [torch.randn(4, 6) for _ in range(count)]
    ys = [torch.randint(3, (4,)) for _ in range(count)]
    package = spmd.capture(function, model, optimizer, xs, ys)
    return dataclasses.replace(package, step=unroll(json.loads(package.text())))


@pytest.mark.parametrize("function, each", [(accumulate, 0), (all_losses, 1), (in_place, 0)],
                         ids=["accumulate", "all_losses", "in_place"])
def test_a_captured_loop(function: Callable, each: int, tmp_path: Path) -> None:
    package = captured(function)
    flat = package.step
    rolled = roll(flat)
    (repeat,) = rolled["repeats"]
    assert repeat["count"] >= COUNT - 2 and len(rolled["nodes"]) < len(flat["nodes"]) * 5 / COUNT
    assert len(repeat["fed"]) >= 1 and len(repeat.get("each", [])) == each
    spelled_out = imported(flat, tmp_path / "flat")
    assert imported(rolled, tmp_path / "rolled") == spelled_out
    assert imported(unroll(rolled), tmp_path / "unrolled") == spelled_out
    batch = {i["name"]: torch.full(i["shape"], 1 + i["id"] % 2) if i["dtype"] == "i64" else torch.randn(i["shape"])
             for i in flat["inputs"] if i["kind"] == "batch"}
    one, other = (StepInterpreter(step, package.weights)(batch) for step in (flat, rolled))
    assert all(torch.equal(a, b) for a, b in zip(one, other))


def test_an_artifact_of_a_rolled_package(tmp_path: Path) -> None:
    """The compiler takes it, and what it makes is the same file for file."""
    flat = captured(accumulate)
    plans = []
    for name, step in (("flat", flat.step), ("rolled", roll(flat.step))):
        dataclasses.replace(flat, step=step).save(tmp_path / f"{name}.step")
        run(tool("spmd-compile"), tmp_path / f"{name}.step", "--ranks=2", "--quiet", "-o", tmp_path / f"{name}.spmd")
        plans.append(next((tmp_path / f"{name}.spmd").glob("*.plan.json")).read_text())
    assert plans[0] == plans[1]


# -- Programs that no loop of ours gives -------------------------------------------------------------------------------

SHAPE = [4, 6]


class Writer:
    """Writes a random step.json: nodes on tensors of one shape, views of them, and writes in place."""

    def __init__(self, seed: int, step: dict[str, Any]) -> None:
        self.rng, self.step = random.Random(seed), step
        self.roots = {entry["id"]: entry["id"] for entry in step["inputs"]}
        self.next = len(self.roots)
        self.values = [entry["id"] for entry in step["inputs"] if entry["shape"] == SHAPE]
        step.update(version=9, nodes=[], outputs=[], repeats=[], operators=[])
        del step["operators"]

    def add(self, op: str, args: list, source: int | None = None, **extra: Any) -> int:
        self.step["nodes"].append({
            "op": op, "phase": "forward", "module": None, "stack": None, "args": args,
            "results": [{"id": self.next, "shape": SHAPE, "dtype": "f32"}], **extra})
        self.roots[self.next] = self.next if source is None else self.roots[source]
        self.next += 1
        return self.next - 1

    def number(self) -> int:
        self.next += 1
        return self.next - 1

    def sum(self, a: int, b: int) -> int:
        return self.add("aten.add.Tensor", [["self", {"value": a}], ["other", {"value": b}], ["alpha", {"int": 1}]])

    def nodes(self, count: int, forbidden: set[int]) -> list[int]:
        """Random nodes; what is forbidden is memory that they must not write. Returns their results."""
        made = []
        for _ in range(count):
            values = self.values + made * 3
            value, other = self.rng.choice(values), {"value": self.rng.choice(values)}
            kind = self.rng.choice(["new", "new", "view", "write"])
            if kind == "new":
                made.append(self.sum(value, other["value"]))
            elif kind == "view":  # the same elements in another order, so that a view is no value of its own
                turned = self.add("aten.view.default", [["self", {"value": value}], ["size", {"ints": [6, 4]}]], value,
                                  view_of="self")
                self.step["nodes"][-1]["results"][0]["shape"] = [6, 4]
                made.append(self.add("aten.view.default", [["self", {"value": turned}], ["size", {"ints": SHAPE}]],
                                     turned, view_of="self"))
            elif self.roots[value] not in forbidden:
                made.append(self.add("aten.mul_.Tensor", [["self", {"value": value}], ["other", other]], value,
                                     mutates=["self"], view_of="self"))
        return made

    def loop(self) -> None:
        """A range that is run several times, with a random choice of what it is fed, carries and gives."""
        count, before = self.rng.randint(2, 4), list(self.values)
        chosen = self.rng.sample(before, min(len(before), self.rng.randint(1, 3)))
        fed = [{"value": v, "of": [v] + self.rng.choices(before, k=count - 1)} for v in chosen[1:]]
        carried = chosen[:1]
        begin, stays = len(self.step["nodes"]), self.rng.random() < 0.4
        root = self.roots[carried[0]]
        kept = {self.roots[n] for entry in fed for n in entry["of"]} | (set() if stays else {root})
        made = self.nodes(self.rng.randint(3, 8), kept)
        if stays:  # carried in place: the same memory in every iteration
            made.append(self.add("aten.detach.default", [["self", {"value": carried[0]}]], carried[0], view_of="self"))
            good = [n for n in made if self.roots[n] == root]
        else:
            made.append(self.sum(carried[0], before[-1]))
            good = [n for n in made if self.roots[n] in made or not self._is_written(self.roots[n], begin)]
        each = [{"value": v, "of": [self.number() for _ in range(count)]}
                for v in self.rng.sample(made, min(len(made), self.rng.randint(0, 2)))]
        for entry in each:
            self.roots |= {n: self.roots[entry["value"]] for n in entry["of"]}
        self.step["repeats"].append({
            "begin": begin, "end": len(self.step["nodes"]), "count": count, "fed": fed,
            "carried": [{"value": v, "next": self.rng.choice(good)} for v in carried],
            **({"each": each} if each else {})})
        self.values = before + made + [n for entry in each for n in entry["of"]]

    def _is_written(self, root: int, begin: int) -> bool:
        return any("mutates" in node and self.roots[node["args"][0][1]["value"]] == root
                   for node in self.step["nodes"][begin:])

    def write(self) -> dict[str, Any]:
        self.values += self.nodes(5, set())
        for _ in range(2):
            self.loop()
            self.values += self.nodes(4, set())
        values = self.rng.sample(self.values, min(len(self.values), 8))
        self.step["outputs"] = [{"kind": "output", "path": str(i), "value": v} for i, v in enumerate(values)]
        return self.step


@pytest.mark.parametrize("part", range(4))
def test_random_programs(part: int, tmp_path: Path) -> None:
    def scale(model, optimizer, a, b, c):
        (model.weight * (a * b * c)).sum().backward()
        return a
    model = nn.Module()
    model.register_parameter("weight", nn.Parameter(torch.ones(SHAPE)))
    package = spmd.capture(scale, model, torch.optim.SGD(model.parameters()), *(torch.randn(SHAPE) for _ in range(3)))
    seen = set()
    for seed in range(part * 25, part * 25 + 25):
        step = Writer(seed, json.loads(package.text())).write()
        flat = unroll(step)
        assert imported(step, tmp_path / "rolled") == imported(flat, tmp_path / "flat"), seed
        seen |= {key for repeat in step["repeats"] for key in ("fed", "carried", "each") if repeat.get(key)}
    assert seen == {"fed", "carried", "each"}
