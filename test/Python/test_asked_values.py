"""A step that asks its batch for values, and goes its way by them, is told what eager would be; another answer is another
program, and a call that changes no answer compiles nothing."""
from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F

import spmd

WEIGHTS = torch.ones(3)
GENERATOR = torch.Generator().manual_seed(0)
X = [torch.randn(6, 8, generator=GENERATOR) for _ in range(4)]
Y = [torch.tensor(y) for y in ([3, 0, 1, 2, 2, 3], [1, 3, 2, 1, 0, 0], [3, 1, 1, 0, 0, 3], [2, 2, 1, 0, 0, 3])]


def branch(model, x, y):
    return F.cross_entropy(model(x), y) * (2 if (y == 3).sum() > 1 else 1)


def is_true(model, x, y):
    return F.cross_entropy(model(x), y) * (2 if ((y == 3).sum() > 1).item() is True else 1)


def limits(model, x, y):
    assert y.max().item() < 4 and not torch.isnan(x).any(), "a bad batch"
    if x.abs().max() > 100:
        raise ValueError("a bad batch")
    return F.cross_entropy(model(x), y)


def slices(model, x, y):
    first = y[0].item() + 1
    return F.cross_entropy(model(x)[:first], y[:first]) * torch.arange(first).float().mean()


def sections(model, x, y):
    lengths = torch.bincount(y, minlength=4).tolist()
    return sum(part.square().mean() for part in model(x).split(lengths) if len(part))


def classes(model, x, y):
    return -(F.one_hot(y) * F.log_softmax(model(x), -1)[:, :int(y.max()) + 1]).sum()


def weighed(model, x, y):
    return F.cross_entropy(model(x), y, weight=1 / torch.bincount(y, minlength=4).clamp(min=1).float())


def in_numbers(model, x, y):
    """Its answer is computed from a number that .item() gives of the batch."""
    masses = torch.arange(5) * y.eq(3).sum().item()
    return F.cross_entropy(model(x), y) * (2 if masses[-1] > 4 else 1)


def equal(model, x, y):
    return F.cross_entropy(model(x), y) * (2 if torch.equal(y[3:4], y[4:5]) else 1)


def written(model, x, y):
    x.mul_(2)
    if x[0, 0] > 0:
        x.clamp_(max=1)
    return F.cross_entropy(model(x), y)


def assigned(model, x, y):
    """What is asked is what the tensor has got, and a view that was taken before stays with what it had."""
    first, last = x[0, 0] * 2, y.float().sum()
    view, other = first.view(1), last + 0
    view.neg_()
    third = first + 1
    first.data, other.data = x[1, 1] * 1, -last
    return F.cross_entropy(model(x), y) * (2 if first > 0 else 1) * (3 if third > 1 else 1) * (5 if other > 0 else 1)


def reached(model, x, y):
    """What WEIGHTS holds is changed between calls."""
    return F.cross_entropy(model(x), y) * (3 if WEIGHTS.sum().item() > 2 else 1)


def counted(model, x, y):
    """A number that Python does not look at is computed in every step."""
    return F.cross_entropy(model(x), y, reduction="sum") / (y != 2).sum().item()


def train(loss_of):
    def step(model, optimizer, x, y):
        loss = loss_of(model, x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
    return step, model, torch.optim.SGD(model.parameters(), lr=0.1)


# How many programs the four batches make.
CASES = {branch: 2, in_numbers: 2, assigned: 3, reached: 2, classes: 1, slices: 3, weighed: 1, is_true: 2, limits: 1,
         equal: 2, written: 2, sections: 4, counted: 1}


@pytest.mark.sample(2)
@pytest.mark.parametrize("loss_of", CASES, ids=lambda function: function.__name__)
def test_told(loss_of, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("SPMD_CACHE", str(tmp_path))
    step, model, optimizer = train(loss_of)
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    compiled = spmd.compile(step, ranks=2)
    WEIGHTS.fill_(1)
    for number, (x, y) in enumerate(zip(X, Y)):
        if number == 2:
            WEIGHTS.zero_()
        mine, theirs = x.clone(), x.clone()
        torch.testing.assert_close(compiled(model, optimizer, mine, y), step(twin, twin_optimizer, theirs, y))
        torch.testing.assert_close(mine, theirs)
    for own, other in zip(model.parameters(), twin.parameters()):
        torch.testing.assert_close(own, other)
    assert compiled.compiles == CASES[loss_of]


def test_a_later_batch_that_the_step_refuses_is_refused() -> None:
    step, model, optimizer = train(limits)
    compiled = spmd.compile(step, ranks=2)
    compiled(model, optimizer, X[0], Y[0])
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(spmd.CaptureError, match="a bad batch"):
        compiled(model, optimizer, X[1] * 1e3, Y[1])
    with pytest.raises(spmd.CaptureError, match="a bad batch"):
        compiled(model, optimizer, X[1] * float("nan"), Y[1])
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    compiled(model, optimizer, X[1], Y[1])
    assert compiled.compiles == 1


def test_what_was_new_is_told() -> None:
    step, model, optimizer = train(branch)
    compiled = spmd.compile(step, ranks=2, max_compiles=1)
    compiled(model, optimizer, X[0], Y[0])
    with pytest.raises(RuntimeError, match="asks for is .*, it was .*test_asked_values.py, line"):
        compiled(model, optimizer, X[1], Y[1])


def of_the_model(model, x, y):
    out = model(x)
    return F.cross_entropy(out, y) * (2 if out.max() > 0 else 1)


def assigned_by_the_model(model, x, y):
    first = x.sum()
    first.data = model(x).sum()
    return F.cross_entropy(model(x), y) * (2 if first > 0 else 1)


@pytest.mark.parametrize("loss_of, view", [(of_the_model, "global"), (assigned_by_the_model, "global"), (branch, "local")])
def test_what_no_call_can_know_is_refused(loss_of, view) -> None:
    """With view=local each rank would go its own way."""
    step, model, optimizer = train(loss_of)
    with pytest.raises(spmd.CaptureError, match="depends on a tensor's value"):
        spmd.compile(step, ranks=2, view=view)(model, optimizer, X[0], Y[0])


class Counts(torch.nn.Module):
    """Its first call begins it, and its third call is another one: which it is, buffers say."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(8))
        self.register_buffer("is_begun", torch.Tensor([False]))
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x):
        if not self.is_begun:
            self.scale.data.copy_(1 / (x.std(0) + 1e-6))
            self.is_begun.data.copy_(torch.Tensor([True]))
        self.calls += 1
        return x * self.scale * (2 if self.calls == 3 else 1)


def test_small_buffers_are_read(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("SPMD_CACHE", str(tmp_path))
    found = []
    for wrap in (lambda step: spmd.compile(step, ranks=2), lambda step: step):
        torch.manual_seed(0)
        model = torch.nn.Sequential(Counts(), torch.nn.Linear(8, 4))
        mean = torch.optim.swa_utils.AveragedModel(model)  # asks how often it was updated
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        @wrap
        def step(x, y):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean.update_parameters(model)
            return loss
        found.append(([step(x, y).detach() for x, y in zip(X, Y)], model.state_dict(), mean.state_dict()))
    torch.testing.assert_close(*found)


def test_distributions_trust_their_arguments(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("SPMD_CACHE", str(tmp_path))

    def policy(model, x, y):
        choice = torch.distributions.Categorical(logits=model(x))
        return -(choice.log_prob(y) * x[:, 0]).mean() - 0.01 * choice.entropy().mean()
    step, model, optimizer = train(policy)
    twin, twins = copy.deepcopy((model, optimizer))
    torch.testing.assert_close(spmd.compile(step, ranks=2)(model, optimizer, X[0], Y[0]), step(twin, twins, X[0], Y[0]))
