"""Operators that come again are traced without PyTorch's tracer: the package is the one that it would have given."""
from __future__ import annotations

from typing import Callable

import pytest
import torch
import torch.nn.functional as F

import spmd
from spmd.capture.observe.operator_forms import OperatorForms

from iterations import trace_each


def captured(make: Callable, step: Callable, monkeypatch, again: bool) -> spmd.StepPackage:
    """What a step gives, of a model and batch of its own; unless `again`, PyTorch traces every operator."""
    torch.manual_seed(0)
    model, *batch = make()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    with monkeypatch.context() as patch:
        trace_each(patch)
        if not again:
            patch.setattr(OperatorForms, "find", lambda *unused: None)
        return spmd.capture(step, model, optimizer, *batch)


def check_equal(make: Callable, step: Callable, monkeypatch) -> None:
    quick, slow = (captured(make, step, monkeypatch, again) for again in (True, False))
    assert quick.step == slow.step
    assert quick.weights.keys() == slow.weights.keys()
    assert all(torch.equal(quick.weights[name], slow.weights[name]) for name in slow.weights)


class Block(torch.nn.Module):
    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.norm, self.qkv, self.out = torch.nn.LayerNorm(8), torch.nn.Linear(8, 24), torch.nn.Linear(8, 8)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = (t.view(*t.shape[:2], 2, 4).transpose(1, 2) for t in self.qkv(self.norm(x)).split(8, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.dropout(self.out(y.transpose(1, 2).reshape(x.shape)))


class Model(torch.nn.Module):
    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(16, 8), torch.nn.Linear(8, 16, bias=False)
        self.head.weight = self.embed.weight
        self.blocks = torch.nn.Sequential(Block(dropout), Block(dropout))

    def forward(self, x, y):
        return F.cross_entropy(self.head(self.blocks(self.embed(x))).flatten(0, 1), y.flatten())


def microbatches(count: int, dropout: float = 0.0) -> Callable:
    def make():
        return Model(dropout), list(torch.randint(16, (count, 4, 6))), list(torch.randint(16, (count, 4, 6)))
    return make


def accumulate(model, optimizer, xs, ys):
    total = 0
    for x, y in zip(xs, ys):
        loss = model(x, y) / len(xs)
        loss.backward()
        total = total + loss.detach()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return total


def test_microbatches(monkeypatch) -> None:
    check_equal(microbatches(4), accumulate, monkeypatch)


def test_dropout_draws_anew(monkeypatch) -> None:
    check_equal(microbatches(3, dropout=0.5), accumulate, monkeypatch)


def test_only_the_first_microbatch_is_traced_by_pytorch(monkeypatch) -> None:
    remember = OperatorForms.remember
    counts = []
    for number in (2, 6):
        noted = []
        monkeypatch.setattr(OperatorForms, "remember", lambda self, call, result: (noted.append(call.func), remember(self, call, result)))
        captured(microbatches(number), accumulate, monkeypatch, again=True)
        counts.append(len(noted))
    assert counts[0] == counts[1] > 30


def linear():
    return torch.nn.Linear(4, 4), torch.randn(4, 4)


# Operators that look alike and give something else, and what one call leaves for the next.
STEPS: dict[str, Callable[[torch.nn.Module, torch.Tensor], torch.Tensor]] = {}


def again(step: Callable) -> Callable:
    STEPS[step.__name__] = step
    return step


@again
def numbers_of_other_types(model, x):
    whole = (x > 0).long()
    return sum((whole * number).sum().float() for number in (1, 1.0, True, 2, 2.0)) + model(x).sum()


@again
def views_of_views(model, x):
    y = model(x)
    for number in range(4):
        y = y.t()[number % 2:].t() if y.shape[0] > 2 else y.unsqueeze(0).squeeze(0)
        y = y.contiguous().view(-1).view(4, -1)
    return y.sum() + y.expand(3, 4, -1).sum()


@again
def writes_through_views(model, x):
    y = model(x).clone()
    for row in range(4):
        y[row].mul_(0.5).add_(y[(row + 1) % 4].detach())
        y.t()[row].add_(1)
    return y.sum()


@again
def writes_to_what_it_reads(model, x):
    y = model(x).detach().clone()
    for _ in range(3):
        y.add_(y.t())
        y.add_(x)
    return (y * model(x)).sum()


@again
def constants_are_written(model, x):
    total = model(x).sum()
    for number in range(3):
        known = torch.tensor(float(number))
        known.add_(1)
        total = total * known + torch.tensor(2.0) * known.expand(3).sum()
    return total


@again
def python_counts(model, x):
    y = model(x)
    for number in range(5):
        y = y * number if number % 2 else y.relu() + number
    return y.sum()


@again
def other_default_dtype(model, x):
    found = []
    for dtype in (torch.float32, torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        found.append(((x > 0).long() * 0.5).double().sum())
    torch.set_default_dtype(torch.float32)
    return sum(found).float() + model(x).sum()


@again
def complex_numbers(model, x):
    y = torch.view_as_complex(model(x).view(4, 2, 2))
    for _ in range(2):
        y = y * torch.polar(torch.ones(4, 2), torch.ones(4, 2))
    return torch.view_as_real(y).sum()


@again
def known_values(model, x):
    y = model(x)
    for _ in range(2):
        y = y * 2 if torch.ones(x.shape[0]).any().item() else y
        y = y + 1 if torch.ones_like(x).sum().item() == 16 else y
    return y.sum()


@again
def gradients_of_gradients(model, x):
    total = 0
    for _ in range(2):
        y = model(x).square().sum()
        gradient, = torch.autograd.grad(y, [model.weight], create_graph=True)
        total = total + y + gradient.square().sum()
    return total


@again
def none_among_results(model, x):
    total = 0
    for _ in range(2):
        for weight, bias in ((model.bias, None), (model.bias, model.bias), (None, None)):
            total = total + F.layer_norm(model(x), (4,), weight, bias).square().sum()
    return total


@again
def operators_that_raise(model, x):
    y = model(x)
    for _ in range(3):
        try:
            y = y @ y[:3]
        except RuntimeError:
            y = y @ y
    return y.sum()


@again
def strides_of_memory(model, x):
    y = model(x).view(2, 2, 2, 2)
    for _ in range(2):
        y = F.conv2d(y.to(memory_format=torch.channels_last), torch.ones(2, 2, 1, 1, dtype=y.dtype)) + y.contiguous()
    return y.sum()


@pytest.mark.parametrize("name", STEPS)
def test_equal_to_the_tracers(name: str, monkeypatch) -> None:
    def step(model, optimizer, x):
        loss = STEPS[name](model, x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    check_equal(linear, step, monkeypatch)


def test_statistics_of_batch_norm(monkeypatch) -> None:
    def make():
        return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)), list(torch.randn(3, 6, 4))

    def step(model, optimizer, xs):
        for x in xs:
            model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    check_equal(make, step, monkeypatch)


def test_what_is_refused_is_refused_again(monkeypatch) -> None:
    teacher = torch.nn.Linear(4, 4)
    kept = list(teacher.parameters())

    def step(model, optimizer, x):
        loss = model(x).sum()
        for _ in range(2):
            loss = loss + model.weight.sum() + kept[0].sum()
        with torch.no_grad():
            kept[0].add_(1)
        loss.backward()
        optimizer.step()

    model, x = linear()
    with pytest.raises(spmd.CaptureError, match="writes into a tensor"):
        spmd.capture(step, model, torch.optim.SGD(model.parameters(), lr=0.1), x)
