"""parallel_mode= of spmd.compile: torch.distributed._spmd's DataParallel, and modes of the user's own (docs/passes.md)."""
from __future__ import annotations

import collections
import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import spmd

pytestmark = pytest.mark.filterwarnings("ignore::spmd.CompilerWarning")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        return torch.tanh(self.linear(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks, self.head = nn.Sequential(Block(), Block()), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.blocks(x))


def train_step(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


class FirstReplicated:
    """A unit for each block, the first of which every rank has."""

    def partition(self, model):
        first, second = model.blocks
        return {first: {"mode": "replicate"}, second: {}, model: {"reshard_after_forward": False}}


def collectives(program, seen: collections.Counter) -> None:
    seen.update((op.name, op.unit) for op in program.ops if op.name in (
        "spmd.all_gather", "spmd.reduce_scatter", "spmd.all_reduce") and op.unit)


def trained(ranks: int, mode) -> collections.Counter:
    """Three steps to eager's losses and parameters; the collectives of units in the partitioned program."""
    torch.manual_seed(0)
    model, seen = Net(), collections.Counter()
    twin = copy.deepcopy(model)
    optimizer, twins = (torch.optim.AdamW(m.parameters(), lr=0.05) for m in (model, twin))
    step = spmd.compile(train_step, ranks=ranks, parallel_mode=mode, passes=[lambda program: collectives(program, seen)])
    for _ in range(3):
        x, y = torch.randn(8, 8), torch.randint(0, 3, (8,))
        torch.testing.assert_close(step(model, optimizer, x, y), train_step(twin, twins, x, y))
    for a, b in zip(model.parameters(), twin.parameters()):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
    return seen


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_units_of_an_object(ranks: int) -> None:
    seen = trained(ranks, FirstReplicated())
    if ranks > 1:
        assert seen == {("spmd.all_gather", "unit0"): 1, ("spmd.reduce_scatter", "unit0"): 1,  # the model's own: the head
                        ("spmd.all_reduce", "unit1"): 1,
                        ("spmd.all_gather", "unit2"): 2, ("spmd.reduce_scatter", "unit2"): 1}


@pytest.mark.parametrize("style, kind", [("replicate", "spmd.all_reduce"), ("fully_shard", "spmd.reduce_scatter")])
def test_data_parallel(style: str, kind: str) -> None:
    seen = trained(2, spmd.DataParallel(style))
    assert {name for name, _ in seen} == {kind, *(["spmd.all_gather"] if style == "fully_shard" else [])}


def test_its_passes_run_first() -> None:
    order: list[int] = []
    mode = spmd.DataParallel("fully_shard", custom_passes=[lambda program: order.append(1), lambda program: order.append(2)])
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = spmd.compile(train_step, ranks=2, parallel_mode=mode, passes=[lambda program: order.append(3)])
    step(model, optimizer, torch.randn(4, 8), torch.zeros(4, dtype=torch.int64))
    assert order == [1, 2, 3]


def test_errors() -> None:
    with pytest.raises(ValueError, match="parallel_style is 'half'; allowed: replicate, fully_shard, default"):
        spmd.DataParallel("half")
    with pytest.raises(ValueError, match="policy='none' both choose the partition\n  hint: pass only one of them"):
        spmd.compile(train_step, parallel_mode=FirstReplicated(), policy="none")
    with pytest.raises(TypeError, match="expected parallel_mode to be spmd.DataParallel, or an object whose partition.* got 3"):
        spmd.compile(train_step, parallel_mode=3)

    class Wrong:
        def partition(self, model):
            return {nn.Linear(2, 2): {}}
    model = Net()
    step = spmd.compile(train_step, ranks=2, parallel_mode=Wrong())
    with pytest.raises(ValueError, match="which is not in the model"):
        step(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(4, 8), torch.zeros(4, dtype=torch.int64))
