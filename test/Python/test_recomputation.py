"""Recomputation in backward() draws the random numbers of the forward, whatever the form of the checkpoint."""
from __future__ import annotations

import functools
from typing import Any, Callable

import pytest
import torch
import torch.nn.functional as F
import torch.utils.checkpoint as checkpoints
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointImpl, checkpoint_wrapper
from transformers.modeling_layers import GradientCheckpointingLayer

import spmd

WIDTH = 64


class _Recomputed(torch.autograd.Function):
    """Recomputation as DeepSpeed, Megatron and others write it."""

    @staticmethod
    def forward(ctx, run, x):
        ctx.run, ctx.state = run, torch.get_rng_state()
        ctx.save_for_backward(x)
        with torch.no_grad():
            return run(x)

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        x = x.detach().requires_grad_()
        outer = torch.random.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            y = ctx.run(x)
        torch.random.set_rng_state(outer)
        torch.autograd.backward(y, gradient)
        return None, x.grad


class _Layer(GradientCheckpointingLayer):
    def __init__(self, run: Callable):
        super().__init__()
        self.run, self.gradient_checkpointing = run, True
        self._gradient_checkpointing_func = functools.partial(checkpoints.checkpoint, use_reentrant=False)

    def forward(self, x):
        return self.run(x)


class _Module(nn.Module):
    def __init__(self, run: Callable):
        super().__init__()
        self.run = run

    def forward(self, x):
        return self.run(x)


def _forked(run: Callable, x: torch.Tensor) -> torch.Tensor:
    """The same numbers twice in the forward."""
    with torch.random.fork_rng(devices=[]):
        first = run(x)
    return first + run(x)


# Each runs a function of a tensor, and recomputes it in backward() in eager PyTorch.
FORMS: dict[str, Callable[[Callable, torch.Tensor], torch.Tensor]] = {
    "by name": lambda run, x: checkpoints.checkpoint(run, x, use_reentrant=False),
    "reentrant": lambda run, x: checkpoints.checkpoint(run, x, use_reentrant=True),
    "partial": lambda run, x, call=functools.partial(checkpoints.checkpoint, use_reentrant=False): call(run, x),
    "sequential": lambda run, x: checkpoints.checkpoint_sequential([run, torch.sin], 2, x, use_reentrant=False),
    "nested": lambda run, x: checkpoints.checkpoint(
        lambda y: checkpoints.checkpoint(run, y, use_reentrant=False), x, use_reentrant=False),
    "nested in its own": lambda run, x: _Recomputed.apply(
        lambda y: checkpoints.checkpoint(run, y, use_reentrant=False), x),
    "transformers": lambda run, x: _Layer(run).train()(x),
    "checkpoint_wrapper": lambda run, x: checkpoint_wrapper(_Module(run))(x),
    "reentrant checkpoint_wrapper": lambda run, x: checkpoint_wrapper(_Module(run), CheckpointImpl.REENTRANT)(x),
    "own function": lambda run, x: _Recomputed.apply(run, x),
    "forked": _forked,
}

OPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "dropout": lambda x: F.dropout(x.sin(), 0.5),
    "rand_like": lambda x: x * (torch.rand_like(x) < 0.5),
    "bernoulli": lambda x: x.sin() * torch.bernoulli(torch.full_like(x, 0.5)),
    "randn": lambda x: x * torch.randn(x.shape),
    "rrelu": lambda x: F.rrelu(x, training=True),
    "two": lambda x: F.dropout(F.dropout(x.sin(), 0.5).exp(), 0.25),
}


class _Net(nn.Module):
    def __init__(self, form: str, op: str):
        super().__init__()
        self.form, self.op = form, op
        self.first, self.weight = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        x = F.dropout(x, 0.125) * self.first  # what is drawn before, and behind, counts as well
        return F.dropout(FORMS[self.form](lambda y: OPS[self.op](y * self.weight), x), 0.125)


def _step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> torch.Tensor:
    loss = model(x).square().sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def _streams(package: spmd.StepPackage) -> dict[str, list[int]]:
    """The numbers of draws, by phase."""
    found: dict[str, list[int]] = {"forward": [], "backward": []}
    for node in package.step["nodes"]:
        if node["op"].startswith("spmd.philox_uniform"):
            arguments: dict[str, Any] = dict(node["args"])
            found[node["phase"]].append(arguments["stream"]["int"])
    return found


@pytest.mark.sample(3)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("form", FORMS)
def test_a_recomputation_draws_the_numbers_of_the_forward(form: str, op: str) -> None:
    model = _Net(form, op).train()
    package = spmd.capture(_step, model, torch.optim.SGD(model.parameters(), lr=0.1), torch.ones(2, WIDTH))
    streams = _streams(package)
    drawn = 2 + (2 if op == "two" else 1)
    assert set(streams["forward"]) == set(range(drawn)) and set(streams["backward"]) <= set(range(1, drawn - 1))
    # The step is counted once, also where the recomputation goes back to its first draw.
    rng, = (i["id"] for i in package.step["inputs"] if i["kind"] == "rng" and i["name"] == "step")
    assert sum(rng == dict(n["args"]).get("self", {}).get("value") for n in package.step["nodes"] if n["op"] == "aten.add_.Tensor") == 1


def test_draws_behind_a_recomputation_are_new() -> None:
    """A second forward after the first backward()."""
    model = _Net("own function", "dropout").train()

    def step(model, optimizer, x):
        for _ in range(2):
            loss = model(x).square().sum()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    streams = _streams(spmd.capture(step, model, torch.optim.SGD(model.parameters(), lr=0.1), torch.ones(2, WIDTH)))
    assert set(streams["forward"]) == set(range(6)) and set(streams["backward"]) == {1, 4}


def test_a_reentrant_checkpoint_of_inputs_without_gradients_trains_nothing() -> None:
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inside, self.outside = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.ones(WIDTH))

        def forward(self, x):
            return checkpoints.checkpoint(lambda y: y * self.inside, x, use_reentrant=True) * self.outside

    model = Net()
    with pytest.warns(UserWarning, match="does not update inside"):
        package = spmd.capture(_step, model, torch.optim.SGD(model.parameters(), lr=0.1), torch.ones(2, WIDTH))
    assert package.step["name"] == "_step"


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("form", ["transformers", "own function", "reentrant checkpoint_wrapper"])
def test_masks_are_equal_in_forward_and_backward(form: str, ranks: int, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SPMD_CACHE", str(tmp_path))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.full((512,), 1.0))

        def forward(self, x):
            return FORMS[form](lambda y: F.dropout(y * self.weight, 0.5), x * self.weight)

    def step(model, optimizer, x):
        y = model(x)
        y.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        return y

    torch.manual_seed(3)
    model = Net().train()
    compiled = spmd.compile(step, ranks=ranks, policy="none")
    y = compiled(model, torch.optim.SGD(model.parameters(), lr=0.125), torch.ones(3, 512))
    kept = (y != 0).sum(0)
    # w <- w - lr * sum over kept rows of d(2 * w * w * x)/dw = 1 - 0.125 * 4 * kept
    assert torch.equal(model.weight.detach(), 1 - 0.5 * kept) and 0 < int((kept == 0).sum()) < 512
