"""What a step sets in modules that is no traced value is there after each call, as in eager: train() and eval(), which
parameters want a gradient, flags; and the next call finds it."""
from __future__ import annotations

from typing import Any, Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import spmd

Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def batch(number: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(number)
    return torch.randn(6, 4, generator=generator), torch.randint(0, 3, (6,), generator=generator)


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.0), nn.Linear(8, 3))


class ActNorm(nn.Module):
    """Begins with what makes its first batch normal."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(4)), nn.Parameter(torch.zeros(4))
        self.initialized, self.kind = False, None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.initialized:
            with torch.no_grad():
                self.shift.copy_(-x.mean(0))
                self.scale.copy_(1 / x.std(0))
            self.initialized, self.kind = True, "warm"
        return (x + self.shift) * self.scale


class Trains:
    """Modules, and a step that sets something in them. Its optimizers have state."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model, self.other = self.make(), network()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.others = torch.optim.Adam(self.other.parameters(), lr=0.01)

    def make(self) -> nn.Module:
        return network()

    def update(self, optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    def between(self, number: int) -> None:
        """What is done after a call."""

    def flags(self) -> dict[str, Any]:
        modules = {"model": self.model, "other": self.other}
        modes = {f"{key}.{path}": (part.training, getattr(part, "initialized", None), getattr(part, "kind", None))
                 for key, module in modules.items() for path, part in module.named_modules()}
        wanted = {f"{key}.{name}": p.requires_grad for key, module in modules.items() for name, p in module.named_parameters()}
        return modes | wanted

    def kept(self) -> list[dict[str, Any]]:
        return [self.model.state_dict(), self.other.state_dict(), *(o.state_dict()["state"] for o in (self.optimizer, self.others))]


class ReadsAFlag(Trains):
    def make(self) -> nn.Module:
        return nn.Sequential(ActNorm(), nn.Linear(4, 3))

    def step(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.update(self.optimizer, F.cross_entropy(self.model(x), y))

    def between(self, number: int) -> None:
        if number == 2:
            self.model[0].initialized = False


class SetsModes(Trains):
    def step(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        self.model.train()
        self.other.eval().requires_grad_(False)
        target = self.other(x).softmax(-1)
        loss = self.update(self.optimizer, F.kl_div(self.model(x).log_softmax(-1), target, reduction="batchmean"))
        self.model[1].eval()
        return loss

    def between(self, number: int) -> None:
        if number == 1:
            self.model.eval()
            self.other.train()


class Freezes(Trains):
    """As a GAN freezes its critic while the generator trains."""

    def step(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        self.other.requires_grad_(True)
        loss = self.update(self.others, F.cross_entropy(self.other(x), y))
        for parameter in self.other.parameters():
            parameter.requires_grad = False
        return loss + self.update(self.optimizer, F.cross_entropy(self.other(self.model(x).sigmoid() @ torch.eye(3, 4)), y))


class Thaws(Trains):
    """What the first call finds frozen, as a backbone that warms up."""

    def __init__(self) -> None:
        super().__init__()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.model[0].requires_grad_(False)

    def step(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        self.model[0].requires_grad_(True)
        return self.update(self.optimizer, F.cross_entropy(self.model(x), y))


class Asks(nn.Module):
    """For what it has set, in ways that no bytecode tells."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.first = nn.Linear(4, 3), None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not hasattr(self, "kind"):
            x = 2 * x
        elif getattr(self, "kind") == "odd":
            x = 3 * x
        self.kind = "odd" if vars(self).get("kind") != "odd" else "even"
        if hasattr(self, "first"):
            x = x + 1
            del self.first
        return self.linear(x)


class AsksForAFlag(Trains):
    def make(self) -> nn.Module:
        return nn.Sequential(Asks())

    def step(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.update(self.optimizer, F.cross_entropy(self.model(x), y))


class OnlySets(Trains):
    """A module that the step sets and does not call."""

    def step(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        self.other[1].eval()
        return self.update(self.optimizer, F.cross_entropy(self.model(x), y))


@pytest.mark.parametrize("trains", [ReadsAFlag, AsksForAFlag, SetsModes, Freezes, Thaws, OnlySets])
def test_it_is_set_after_each_call(trains: type[Trains]) -> None:
    class Compiled(trains):
        step = spmd.compile(trains.step, ranks=2)

    ours, eager = Compiled(), trains()
    for number in range(5):
        torch.testing.assert_close(ours.step(*batch(number)), eager.step(*batch(number)))
        assert ours.flags() == eager.flags()
        torch.testing.assert_close(ours.kept(), eager.kept(), rtol=1e-4, atol=1e-5)
        ours.between(number), eager.between(number)


def test_what_a_step_thaws_needs_its_state() -> None:
    trains = Freezes()
    trains.other.requires_grad_(False)
    with pytest.raises(spmd.CaptureError, match=r"trains '0.weight', which was frozen when the call began"):
        spmd.compile(trains.step)(*batch(0))


def test_a_package_whose_steps_would_not_see_a_flag() -> None:
    trains = ReadsAFlag()
    with pytest.raises(spmd.CaptureError, match="reads '0.initialized' and leaves True there"):
        spmd.capture(trains.step, *batch(0))
    trains.step(*batch(0))
    spmd.capture(trains.step, *batch(0))
    assert spmd.capture(SetsModes().step, *batch(0)).settings


def test_a_step_that_adds_a_param_group_is_refused() -> None:
    trains = OnlySets()

    @spmd.compile
    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        trains.optimizer.add_param_group({"params": list(trains.other.parameters())})
        return trains.update(trains.optimizer, F.cross_entropy(trains.model(x), y))

    with pytest.raises(spmd.CaptureError, match="changes how many param groups its optimizer has"):
        step(*batch(0))
    assert len(trains.optimizer.param_groups) == 1


@pytest.mark.parametrize("restart", [lambda o: o.state.clear(), lambda o: o.state[o.param_groups[0]["params"][0]].clear()])
def test_a_step_that_clears_its_optimizers_state_begins_anew(restart: Callable[[torch.optim.Optimizer], None]) -> None:
    ours, eager = OnlySets(), OnlySets()

    def step_of(trains: Trains) -> Callable:
        def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            restart(trains.optimizer)
            return trains.update(trains.optimizer, F.cross_entropy(trains.model(x), y))
        return step

    compiled, plain = spmd.compile(step_of(ours), ranks=2), step_of(eager)
    for number in range(4):
        torch.testing.assert_close(compiled(*batch(number)), plain(*batch(number)))
        torch.testing.assert_close(ours.kept(), eager.kept(), rtol=1e-4, atol=1e-5)


def test_says_that_a_module_which_it_reaches_has_another_mode() -> None:
    trains = SetsModes()

    @spmd.compile
    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        target = trains.other(x).detach()
        return trains.update(trains.optimizer, F.mse_loss(trains.model(x), target))

    step(*batch(0))
    trains.other.eval()
    with pytest.warns(spmd.Remark, match=r"a module there another train\(\) or eval\(\)"):
        step(*batch(1))


class Replaces(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.activation = nn.Linear(4, 3), nn.Tanh()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.activation(self.linear(x))
        self.activation = nn.ReLU()
        return out


def test_a_module_that_the_step_replaces_is_refused() -> None:
    trains = AsksForAFlag()
    trains.model[0] = Replaces()
    trains.optimizer = torch.optim.Adam(trains.model.parameters())
    with pytest.raises(spmd.CaptureError, match="replaces module '0.activation'"):
        spmd.compile(trains.step)(*batch(0))
    assert isinstance(trains.model[0].activation, nn.Tanh)
