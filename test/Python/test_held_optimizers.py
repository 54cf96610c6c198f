"""Optimizers that hold optimizers, to which they leave their parameters: trained as eager does, scheduled and saved."""
from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import spmd


class Container(torch.optim.Optimizer):
    """An optimizer for each part of a model, as torchtitan makes them."""

    def __init__(self, parts: list[nn.Module]):
        self.optimizers = [torch.optim.AdamW(part.parameters(), lr=0.01) for part in parts]
        super().__init__([p for part in parts for p in part.parameters()], {"lr": 0.01})

    def step(self, *unused: Any) -> None:
        for optimizer in self.optimizers:
            optimizer.step()

    def zero_grad(self, *unused: Any) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad()


class Sharing(torch.optim.Optimizer):
    """Its param groups are those of the one that it wraps, and so are its state and its defaults."""

    def __init__(self, inner: torch.optim.Optimizer):
        self.inner = inner

    param_groups = property(lambda self: self.inner.param_groups)
    state = property(lambda self: self.inner.state)
    defaults = property(lambda self: self.inner.defaults)

    def step(self, *unused: Any) -> None:
        self.inner.step()

    def zero_grad(self, *unused: Any) -> None:
        self.inner.zero_grad()


class Beside(torch.optim.Optimizer):
    """It updates the matrices by itself, and leaves everything else to another one."""

    def __init__(self, model: nn.Module):
        super().__init__([p for p in model.parameters() if p.dim() > 1], {"lr": 0.02})
        self.others = {"vectors": torch.optim.SGD([p for p in model.parameters() if p.dim() == 1], lr=0.1, momentum=0.9)}

    @torch.no_grad()
    def step(self, *unused: Any) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.add_(p.grad.sign() * group["lr"], alpha=-1)
        self.others["vectors"].step()

    def zero_grad(self, *unused: Any) -> None:
        super().zero_grad()
        self.others["vectors"].zero_grad()


class Remembering(Container):
    """It keeps state of its own."""

    def step(self, *unused: Any) -> None:
        super().step()
        for p in self.param_groups[0]["params"]:
            self.state[p]["last"] = p.grad.clone()


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))


def step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss


def batches(count: int = 4) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(6, 8, generator=generator), torch.randint(0, 4, (6,), generator=generator))
            for _ in range(count)]


def nested(model: nn.Module) -> torch.optim.Optimizer:
    outer = Container([model])
    outer.optimizers = [Container([model[0], model[2]])]
    return outer


MAKERS = {"container": lambda model: Container([model[0], model[2]]), "nested": nested,
          "sharing": lambda model: Sharing(torch.optim.AdamW(model.parameters(), lr=0.01)), "beside": Beside}


def _stepping(optimizer: torch.optim.Optimizer) -> list[torch.optim.Optimizer]:
    inner = getattr(optimizer, "optimizers", None) or [getattr(optimizer, "inner", optimizer)]
    return [one for held in inner for one in (_stepping(held) if held is not optimizer else [held])]


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("name", MAKERS)
def test_trains_as_in_eager(name: str, ranks: int) -> None:
    models = [network(), network()]
    optimizers = [MAKERS[name](model) for model in models]
    compiled = spmd.compile(step, ranks=ranks)
    schedulers = [torch.optim.lr_scheduler.StepLR(one, 2, 0.5) for optimizer in optimizers for one in _stepping(optimizer)]
    for batch in batches(5):
        assert compiled(models[1], optimizers[1], *batch).item() == pytest.approx(
            step(models[0], optimizers[0], *batch).item(), rel=1e-6)
        for scheduler in schedulers:
            scheduler.step()
    assert compiled.compiles == 1
    for eager, ours in zip(models[0].parameters(), models[1].parameters()):
        torch.testing.assert_close(ours, eager, rtol=1e-5, atol=1e-6)
    for eager, ours in zip(map(lambda o: o.state_dict(), _stepping(optimizers[0])), _stepping(optimizers[1])):
        torch.testing.assert_close(ours.state_dict(), eager, rtol=1e-4, atol=1e-6)


def test_eager_goes_on() -> None:
    """A step of the container outside of the compiled one sees what the ranks have, and they what it has done."""
    models = [network(), network()]
    optimizers = [Container([model[0], model[2]]) for model in models]
    compiled = spmd.compile(step, ranks=2)
    for number, batch in enumerate(batches()):
        losses = [one(model, optimizer, *batch).item() for one, model, optimizer in
                  zip((step, step if number % 2 else compiled), models, optimizers)]
        assert losses[1] == pytest.approx(losses[0], rel=1e-6)


def test_a_reference_of_several_ranks_trains_copies() -> None:
    model = network()
    optimizer = Container([model[0], model[2]])
    before = copy.deepcopy(model.state_dict())
    x, y = batches()[0]
    package = spmd.capture(step, model, optimizer, x[:3], y[:3], reference=batches(2), reference_ranks=2)
    assert len(package.reference["loss"]) == 2
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    assert all(not one.state for one in optimizer.optimizers)


def test_state_of_its_own_is_an_error() -> None:
    model = network()
    with pytest.raises(spmd.CaptureError, match="Remembering leaves its parameters to the optimizers that it holds, and "
                                                "keeps state of its own beside theirs\n  hint: "):
        spmd.capture(step, model, Remembering([model]), *batches()[0])
