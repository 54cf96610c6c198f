"""Steps that assign to `.data`, of parameters, gradients and activations: as eager, whatever views there are of it."""
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import spmd


def update(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def clipped(model, slow, optimizer, x, y):
    loss = update(model, optimizer, x, y)
    for p in model.parameters():
        p.data = p.data.clamp(-0.2, 0.2)
    return loss


def by_hand(model, slow, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    for p in model.parameters():
        p.data = p.data - 0.1 * p.grad.data
        p.grad = None
    return loss


def average(model, slow, optimizer, x, y):
    """MoCo's key encoder."""
    loss = update(model, optimizer, x, y)
    for p, q in zip(model.parameters(), slow.parameters()):
        q.data = q.data * 0.9 + p.data * 0.1
    return loss, slow(x).sum()


def swapped(model, slow, optimizer, x, y):
    """What was there before stays what it was."""
    loss, saved = update(model, optimizer, x, y), [p.data for p in model.parameters()]
    for p, q in zip(model.parameters(), slow.parameters()):
        p.data = q.data
    with torch.no_grad():
        other = F.cross_entropy(model(x), y)
    for p, old in zip(model.parameters(), saved):
        p.data = old
    return loss, other


def ascent(model, slow, optimizer, x, y):
    """Sharpness-aware minimization."""
    F.cross_entropy(model(x), y).backward()
    saved = [p.data.clone() for p in model.parameters()]
    for p in model.parameters():
        p.data = p.data + 0.05 * p.grad / (p.grad.norm() + 1e-12)
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    for p, old in zip(model.parameters(), saved):
        p.data = old
    optimizer.step()
    optimizer.zero_grad()
    return loss


def from_a_vector(model, slow, optimizer, x, y):
    """Views of one tensor, each of a part of its own."""
    loss = update(model, optimizer, x, y)
    nn.utils.vector_to_parameters(0.9 * nn.utils.parameters_to_vector(model.parameters()), model.parameters())
    return loss


def gradients(model, slow, optimizer, x, y):
    out = model(x)
    out.data = out.data * 2
    loss = F.cross_entropy(out, y)
    optimizer.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.grad.data = p.grad.data.clamp(-0.01, 0.01)
    optimizer.step()
    return loss


def train(body, step_of):
    torch.manual_seed(0)
    model, slow = (nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)) for _ in range(2))
    slow.requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step = step_of(lambda x, y: body(model, slow, optimizer, x, y))
    results = [step(torch.randn(6, 8), torch.randint(0, 4, (6,))) for _ in range(3)]
    return results, list(model.parameters()), list(slow.parameters())


@pytest.mark.sample(2)
@pytest.mark.parametrize("body", [average, clipped, swapped, by_hand, from_a_vector, ascent,
                                  gradients])
def test_trains_as_eager(body, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("SPMD_CACHE", str(tmp_path))
    torch.testing.assert_close(train(body, lambda step: spmd.compile(step, ranks=2)), train(body, lambda step: step))


def tied(model, slow, optimizer, x, y):
    loss = update(model, optimizer, x, y)
    for p, q in zip(model.parameters(), slow.parameters()):
        q.data = p.data
    return loss


def from_outside(model, slow, optimizer, x, y):
    model[0].bias.data = OUTSIDE
    return update(model, optimizer, x, y)


def of_the_batch(model, slow, optimizer, x, y):
    x.data = x * 2
    return update(model, optimizer, x, y)


OUTSIDE = torch.ones(16)
REFUSED = {tied: "shares memory with another one", from_outside: "from outside of it to .data of param '0.bias'",
           of_the_batch: "to .data of batch 'x'"}


@pytest.mark.parametrize("body", REFUSED, ids=lambda body: body.__name__)
def test_refused_at_the_line(body) -> None:
    with pytest.raises(spmd.CaptureError, match=f"(?s){REFUSED[body]}.*in {body.__name__}.*hint"):
        train(body, lambda step: spmd.compile(step, ranks=2))
