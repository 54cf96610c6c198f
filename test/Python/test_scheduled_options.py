"""Options of param groups that schedulers move, beside the learning rate, are inputs: one program, eager's numbers."""
from __future__ import annotations

import math
import warnings

import pytest
import torch
from torch.optim import lr_scheduler

import spmd

pytestmark = pytest.mark.usefixtures("doubles")

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=.1, momentum=.9, weight_decay=1e-2),
    "SGD nesterov": lambda p: torch.optim.SGD(p, lr=.1, momentum=.9, nesterov=True),
    "SGD dampening": lambda p: torch.optim.SGD(p, lr=.1, momentum=.9, dampening=.1),
    "Adam": lambda p: torch.optim.Adam(p, lr=.01, weight_decay=1e-2, foreach=False),
    "AdamW fused": lambda p: torch.optim.AdamW(p, lr=.01, fused=True),
    "AdamW foreach": lambda p: torch.optim.AdamW(p, lr=.01, foreach=True, amsgrad=True),
    "RAdam": lambda p: torch.optim.RAdam(p, lr=.01),
    "Adamax": lambda p: torch.optim.Adamax(p, lr=.01),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=.01, momentum=.9),
}


@pytest.fixture
def doubles():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def train_step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def setup(make):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
    return model, make(model.parameters())


def train(step, make, after_step, steps):
    """So many steps, with after_step(optimizer) made once and called between them: losses and parameters."""
    model, optimizer = setup(make)
    move = after_step(optimizer)
    torch.manual_seed(1)
    losses = []
    for _ in range(steps):
        losses.append(step(model, optimizer, torch.randn(6, 8), torch.randn(6, 4)))
        move()
    return torch.stack(losses), torch.cat([p.detach().flatten() for p in model.parameters()])


def one_cycle(optimizer):
    return lr_scheduler.OneCycleLR(optimizer, max_lr=.05, total_steps=22).step


def cyclic(optimizer):
    return lr_scheduler.CyclicLR(optimizer, base_lr=.01, max_lr=.05, step_size_up=3).step


def rising_decay(optimizer):
    def move():
        for group in optimizer.param_groups:
            group["weight_decay"] *= 1.1
    return move


def assert_equals_eager(step, make, after_step, steps=20):
    expected = train(train_step, make, after_step, steps)
    found = train(step, make, after_step, steps)
    for a, b in zip(found, expected):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.sample(4)
def test_one_cycle(optimizer, ranks):
    step = spmd.compile(train_step, ranks=ranks)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is compiled again
        assert_equals_eager(step, OPTIMIZERS[optimizer], one_cycle)
    assert step.compiles == 1


def test_cyclic():
    step = spmd.compile(train_step, ranks=2)
    assert_equals_eager(step, OPTIMIZERS["SGD"], cyclic)
    assert step.compiles == 1


def test_option_that_changes_becomes_an_input():
    step = spmd.compile(train_step, ranks=2)
    assert_equals_eager(step, OPTIMIZERS["Adam"], rising_decay)
    assert step.compiles == 2  # with the number, and with the input
    inputs = [(i["name"], i["group"]) for i in step.package.step["inputs"] if i["kind"] == "hyper"]
    assert inputs == [("weight_decay", 0), ("lr", 0)]


class Clipped(torch.optim.SGD):
    """Computes with its momentum in Python in a way that no tensor follows."""

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.data.add_(p.grad, alpha=-.1 * min(group["momentum"], .7))


def test_option_computed_with_in_python_stays_a_constant():
    step = spmd.compile(train_step, ranks=2)

    def falling(optimizer):
        def move():
            optimizer.param_groups[0]["momentum"] -= .1
        return move

    assert_equals_eager(step, lambda p: Clipped(p, lr=.1, momentum=.9), falling, steps=8)
    assert step.compiles == 8  # one of each value


def test_capture_refuses_unknown_options():
    model, optimizer = setup(OPTIMIZERS["SGD"])
    with pytest.raises(spmd.CaptureError, match="scheduled_options names 'betas.0'; the optimizer's options that can be "
                                                "inputs are momentum, weight_decay, and 'lr' is one in any case"):
        spmd.capture(train_step, model, optimizer, torch.randn(6, 8), torch.randn(6, 4), scheduled_options=["betas.0"])


class Rooted(torch.optim.SGD):
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.data.add_(p.grad, alpha=-.1 * math.sqrt(group["momentum"]))


@pytest.mark.filterwarnings("error")  # `p.data.add_` updates a parameter
def test_capture_refuses_numbers_of_markers():
    model, optimizer = setup(lambda p: Rooted(p, lr=.1, momentum=.5))
    with pytest.raises(spmd.CaptureError, match="the step computes with momentum in Python"):
        spmd.capture(train_step, model, optimizer, torch.randn(6, 8), torch.randn(6, 4), scheduled_options=["momentum"])


def test_capture_refuses_comparisons():
    model, optimizer = setup(lambda p: Clipped(p, lr=.1, momentum=.5))
    with pytest.raises(spmd.CaptureError, match="an option of the optimizer decides in Python what the step computes"):
        spmd.capture(train_step, model, optimizer, torch.randn(6, 8), torch.randn(6, 4), scheduled_options=["momentum"])
