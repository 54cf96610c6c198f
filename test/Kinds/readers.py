"""Ways to read a tensor whose value the ranks hold: python test/Kinds/readers.py --all

Each case reads one tensor behind a compiled step: a parameter, a buffer, an optimizer's state or a gradient. The tensor has
another value than behind the step before. "right": the function gives what it gives of a plain copy of the value. "refused": an
error with a hint. "wrong": anything else. A way that a plain copy does not allow is no case. readers_of_torch.py has the ways.

    python test/Kinds/readers.py "parameter; f32; torch.tensor"
    torchrun --nproc-per-node=2 test/Kinds/readers.py --all      # each process reads
"""
from __future__ import annotations

import os
import warnings
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

import harness
import spmd
from readers_of_torch import READERS

PROCESSES = int(os.environ.get("WORLD_SIZE", 1))
# The options of spmd.compile, and how many steps come before each read: memory is given back behind the second.
SETTINGS: dict[str, tuple[dict[str, Any], int]] = {
    "f32": ({}, 1), "f32, freed": ({}, 3), "masters": ({"precision": "param=bf16,master=f32"}, 1),
    "masters, freed": ({"precision": "param=bf16,master=f32"}, 3)}


class Net(nn.Module):
    """A layer, and buffers that each step writes: of one dim, of none, of integers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("scale", torch.zeros(()))
        self.register_buffer("count", torch.full((), 2))
        self.register_buffer("counts", torch.tensor([[2, 4]]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mean.copy_(x.detach().float().mean(0))
        self.scale.mul_(0.5).add_(x.detach().float().mean().abs())
        self.count.sub_(1).remainder_(5).add_(2)  # 2 to 6
        self.counts.sub_(1).remainder_(5).add_(2)
        return self.layer(x)


def step(model: Net, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Gradients outlive the call."""
    loss = F.cross_entropy(model(x).float(), y)
    loss.backward()
    optimizer.step()
    return loss


class Training:
    """A compiled training, and its tensors by kind."""

    def __init__(self, setting: str) -> None:
        options, self.steps = SETTINGS[setting]
        torch.manual_seed(0)
        self.model = Net()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-2, momentum=0.5)
        self.generator = torch.Generator().manual_seed(int(os.environ.get("RANK", 0)))
        self.rows = 4 // PROCESSES
        self.compiled = spmd.compile(step, **options, **({} if PROCESSES > 1 else {"ranks": 2}))

    def step(self) -> None:
        for _ in range(self.steps):
            x, y = torch.randn(self.rows, 4, generator=self.generator), torch.randint(3, (self.rows,), generator=self.generator)
            self.compiled(self.model, self.optimizer, x, y)

    def tensor(self, kind: str) -> torch.Tensor:
        weight = self.model.layer.weight
        if kind == "gradient":
            return weight.grad
        if kind == "momentum":
            return self.optimizer.state[weight]["momentum_buffer"]
        return weight if kind == "parameter" else getattr(self.model, kind)


KINDS = ("parameter", "mean", "scale", "count", "counts", "momentum", "gradient")
_trainings: dict[str, Training] = {}


def plain(kind: str) -> torch.Tensor:
    """A tensor of the same shape, dtype and class that no compiled step has."""
    if kind in ("count", "counts"):
        return torch.full((1, 2) if kind == "counts" else (), 2, dtype=torch.int64)
    made = torch.full({"mean": (4,), "scale": ()}.get(kind, (3, 4)), 0.5)
    return nn.Parameter(made) if kind == "parameter" else made


def read(name: str, tensor: torch.Tensor) -> Any:
    """What a way of reading gives of a tensor, with values of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _values(READERS[name](tensor))


def _values(found: Any) -> list[Any]:
    if isinstance(found, torch.Tensor):
        found = torch.stack(found.unbind()) if found.is_nested else found
        return [found.detach().to_dense().resolve_neg().cpu().clone() if found.layout != torch.strided else found.detach().clone()]
    if isinstance(found, dict):
        return _values(list(found.values()))
    if isinstance(found, (list, tuple)):
        return [value for one in found for value in _values(one)]
    return [found]


def _is_allowed(name: str, kind: str) -> bool:
    try:
        read(name, plain(kind))
    except Exception:
        return False
    return True


def names() -> list[str]:
    """All cases."""
    ways = {kind: [name for name in READERS if _is_allowed(name, kind)] for kind in KINDS}
    return [f"{kind}; {setting}; {name}" for setting in SETTINGS for kind in KINDS for name in ways[kind]]


def case(name: str) -> harness.Outcome:
    """Reads behind steps; a training goes on with the next case, unless this one is wrong."""
    kind, setting, reader = name.split("; ")
    training = _trainings.pop(setting, None) or Training(setting)
    training.step()
    before = training.tensor(kind).detach().clone()
    training.step()
    tensor = training.tensor(kind)
    found, error = None, None
    try:
        found = read(reader, tensor)
    except Exception as caught:
        error = caught
    value = training.tensor(kind).detach().clone()
    if torch.equal(value, before):
        return harness.Outcome("wrong", "the step has left the tensor as it was")
    if error is not None:
        _trainings[setting] = training
        raise error
    expected = read(reader, nn.Parameter(value) if kind == "parameter" else value)
    outcome = compare(expected, found)
    if outcome.kind == "right":
        _trainings[setting] = training
    return outcome


def compare(expected: list[Any], found: list[Any]) -> harness.Outcome:
    """Bit by bit: both are of one value."""
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        same = torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other
        if type(one) is not type(other) or not same:
            return harness.Outcome("wrong", f"value {number} is {other!r}, expected {one!r}"[:180].replace("\n", " "))
    return harness.Outcome("right")


if __name__ == "__main__":
    harness.main("readers", names(), case)
