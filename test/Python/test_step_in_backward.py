"""Optimizers that hooks of parameters step in backward, each of one parameter, as PyTorch's tutorial has them to save the
memory of gradients."""
from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import spmd

ADAM = {"lr": 0.01, "weight_decay": 0.1}


class OfParameters:
    """An optimizer for each parameter but the last, in a dict that a hook reads, or in the hook's own object."""

    def __init__(self, make, keeps: str):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
        *parameters, self.last = self.model.parameters()
        self.optimizers = {p: make([p]) for p in parameters}
        self.optimizer = torch.optim.SGD([self.last], lr=0.1)
        self.schedules = [torch.optim.lr_scheduler.StepLR(o, 2, 0.5) for o in self.optimizers.values()]
        for parameter in parameters:
            hook = Hook(self.optimizers[parameter]) if keeps == "object" else self.hook
            parameter.register_post_accumulate_grad_hook(hook)

    def hook(self, parameter: torch.Tensor) -> None:
        self.optimizers[parameter].step()
        self.optimizers[parameter].zero_grad()


class Hook:
    def __init__(self, optimizer: torch.optim.Optimizer):
        self.optimizer = optimizer

    def __call__(self, parameter: torch.Tensor) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad()


def step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


MAKERS = {"adamw": lambda p: torch.optim.AdamW(p, **ADAM), "fused": lambda p: torch.optim.AdamW(p, fused=True, **ADAM),
          "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)}


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("options", [{"ranks": 1}, {"ranks": 2}, {"ranks": 3, "policy": "class:Linear"},
                                     {"ranks": 2, "mode": "shard_optimizer"}],
                         ids=lambda o: "-".join(map(str, o.values())))
@pytest.mark.parametrize("keeps", ["dict", "object"])
@pytest.mark.sample(3)
def test_trains_as_in_eager(make: str, options: dict, keeps: str) -> None:
    ours, eager = (OfParameters(MAKERS[make], keeps) for _ in range(2))
    compiled = spmd.compile(step, **options)
    for number in range(5):
        generator = torch.Generator().manual_seed(number)
        x, y = torch.randn(6, 4, generator=generator), torch.randn(6, 2, generator=generator)
        torch.testing.assert_close(compiled(ours.model, ours.optimizer, x, y), step(eager.model, eager.optimizer, x, y))
        for schedule in (*ours.schedules, *eager.schedules):
            schedule.step()
    assert compiled.compiles == 1
    for (p, mine), (q, theirs) in zip(ours.optimizers.items(), eager.optimizers.items()):
        torch.testing.assert_close(p.detach(), q.detach())
        for name, value in theirs.state[q].items():
            torch.testing.assert_close(mine.state[p][name], value, msg=lambda text: f"{name}: {text}")
    assert list(ours.optimizers) == [p for p in ours.model.parameters() if p is not ours.last], "no twin is left"
