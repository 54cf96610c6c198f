"""Activation checkpointing of blocks with batch norm: eager computes them again in the backward, and so updates their running
statistics once more."""
from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import spmd


class Model(nn.Module):
    def __init__(self, use_reentrant: bool):
        super().__init__()
        torch.manual_seed(0)
        self.use_reentrant = use_reentrant
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 1)
        self.block = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.BatchNorm1d(8, momentum=0.3))

    def forward(self, x):
        x = self.first(x)
        for _ in range(2):
            x = x + checkpoint(self.block, x, use_reentrant=self.use_reentrant)
        return self.last(x)


def step(model, optimizer, x):
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_running_statistics_are_eagers(use_reentrant: bool) -> None:
    model = Model(use_reentrant).double()
    eager, compiled = copy.deepcopy(model), spmd.compile(step, ranks=2)
    ours, theirs = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, eager))
    for number in range(2):
        x = torch.randn(8, 8, generator=torch.Generator().manual_seed(number)).double()
        torch.testing.assert_close(compiled(model, ours, x), step(eager, theirs, x), rtol=1e-12, atol=1e-12)
    assert model.block[1].num_batches_tracked == 8
    for (name, found), want in zip(model.state_dict().items(), eager.state_dict().values()):
        torch.testing.assert_close(found, want, rtol=1e-11, atol=1e-11, msg=lambda text, name=name: f"{name}: {text}")


def test_without_a_gradient_nothing_is_computed_again() -> None:
    model = Model(False)
    eager = copy.deepcopy(model)

    def evaluate(model, x):
        with torch.no_grad():
            return model(x).mean()

    x = torch.randn(8, 8)
    torch.testing.assert_close(spmd.compile(evaluate, ranks=2)(model, x), evaluate(eager, x))
    for found, want in zip(model.state_dict().values(), eager.state_dict().values()):
        torch.testing.assert_close(found, want)


def test_a_gradient_of_the_batch_is_told_of() -> None:
    """That eager leaves on the tensor, and a compiled step does not."""
    model = nn.Linear(8, 1)
    x = torch.randn(4, 8, requires_grad=True)
    with pytest.warns(spmd.Remark, match="(?s)gradient of 'x'.*hint: return x.grad from the step"):
        spmd.compile(step, ranks=2)(model, torch.optim.SGD(model.parameters(), lr=0.1), x)
    assert x.grad is None
