"""Eager backward() and writes to gradients between two calls of a compiled step, against eager training."""
from __future__ import annotations

import copy
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import spmd

pytestmark = pytest.mark.filterwarnings("ignore")


def step(model, optimizer, x, y, updates: bool):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    if updates:
        optimizer.step()
        optimizer.zero_grad()
    return loss.detach()


def penalty(model) -> torch.Tensor:
    return 0.3 * sum(p.square().sum() for p in model.parameters())


def before(model, call, seen):
    penalty(model).backward()
    call()


def after(model, call, seen):
    call()
    penalty(model).backward()
    seen += [p.grad.clone() for p in model.parameters()]


def with_graph(model, call, seen):
    """Autograd adds out of place."""
    penalty(model).backward(create_graph=True)
    call()


def of_an_older_graph(model, call, seen):
    loss = 0.3 * sum(p.sum() for p in model.parameters())
    call()
    loss.backward()


def of_one_parameter(model, call, seen):
    call()
    model[0].bias.sum().backward()
    model[2].bias.grad = torch.ones(3, dtype=torch.float64)


def written(model, call, seen):
    call()
    for p in model.parameters():
        if p.grad is not None:
            p.grad.data.add_(p.detach())


def train(between, compiled):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    function, seen, generator = compiled(step), [], torch.Generator().manual_seed(1)
    for number in range(6):
        x, y = torch.randn(6, 5, generator=generator).double(), torch.randint(3, (6,), generator=generator)
        between(model, lambda: seen.append(function(model, optimizer, x, y, number % 3 == 2)), seen)
    return [*seen, *(p.detach().clone() for p in model.parameters())], model


@pytest.mark.parametrize("between", [before, after, with_graph, of_an_older_graph, of_one_parameter, written])
@pytest.mark.sample(2)
def test_gradients_are_added(between) -> None:
    expected, _ = train(between, lambda function: function)
    found, _ = train(between, lambda function: spmd.compile(function, ranks=2, launcher="none"))
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def test_a_copy_of_the_model_has_no_hooks_of_ours() -> None:
    _, model = train(before, lambda function: spmd.compile(function, ranks=1, launcher="none"))
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert all(not p._backward_hooks for p in other.parameters())
