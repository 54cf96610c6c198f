"""What a step appends to lists, and the lists and dicts of values that it leaves in attributes: there afterwards as eager
leaves it, and compiled as often as it says."""
from __future__ import annotations

import collections

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import spmd

LOG: list = []
HISTORY = {"loss": [], "last": collections.deque(maxlen=3)}
STEPS = 4


def update(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


class Net(nn.Module):
    """Notes in its forward what it saw."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 4)
        self.penalties, self.seen, self.notes = [], None, []

    def forward(self, x):
        out = self.net(x)
        self.penalties = []
        self.penalties.append(out.square().mean())
        self.seen = (out.std(), {"largest": out.max(), "rows": 6})
        self.notes.append(out.mean())
        return out


class Trainer:
    def __init__(self):
        torch.manual_seed(0)
        self.model = Net()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.losses, self.log, self.by_name = [], {}, collections.defaultdict(list)

    def appends(self, x, y):
        loss = update(self.model, self.optimizer, x, y)
        self.losses.append(loss.detach())
        LOG.append(loss.item())
        HISTORY["loss"].append(loss.detach())
        HISTORY["last"].extend([{"loss": loss.detach(), "rows": 6}, (loss.item(), "loss")])
        return loss

    def sets(self, x, y):
        loss = update(self.model, self.optimizer, x, y)
        self.log = {"loss": loss.detach(), "more": [loss.item(), "loss", 1]}
        return loss

    def reads(self, x, y):
        """What the last call has left: a tensor, which no program has as a constant,"""
        last = self.log["loss"] if self.log else torch.zeros(())
        loss = update(self.model, self.optimizer, x, y)
        self.log = {"loss": 0.9 * last + 0.1 * loss.detach()}
        return loss

    def reads_items(self, x, y):
        """or a number, which is one."""
        last = self.log["loss"] if self.log else 1.0
        loss = update(self.model, self.optimizer, x, y) * last
        self.log = {"loss": loss.item(), "": loss.detach()}
        return loss

    def empties(self, x, y):
        LOG.clear()
        loss = update(self.model, self.optimizer, x, y) + sum(self.model.penalties)
        LOG.append(loss.detach())
        return loss

    def makes(self, x, y):
        loss = update(self.model, self.optimizer, x, y)
        self.by_name["loss"].append(loss.detach())
        return loss


def plain(value):
    """To compare: numbers of the host are as exact as those of a tensor."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, float):
        return torch.tensor(value)
    if isinstance(value, str):
        return list(map(ord, value))
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    return [plain(entry) for entry in value] if isinstance(value, (list, tuple, collections.deque)) else value


def run(name, wrap):
    for values in (LOG, *HISTORY.values()):
        values.clear()
    trainer = type("Made", (Trainer,), {name: wrap(vars(Trainer)[name])})()
    step, found = getattr(trainer, name), []
    generator = torch.Generator().manual_seed(1)
    for number in range(STEPS):
        loss = step(torch.randn(6, 8, generator=generator), torch.randint(0, 4, (6,), generator=generator))
        found.append(plain([loss, trainer.losses, trainer.log, dict(trainer.by_name), LOG, list(HISTORY.values()),
                            trainer.model.penalties, trainer.model.seen, trainer.model.notes]))
        if number == 1:
            trainer.losses, trainer.model.notes = [], []  # another epoch
            HISTORY["loss"] = []
    HISTORY["loss"] = []
    return found, step


# A first program for what is not there yet.
@pytest.mark.sample(2)
@pytest.mark.parametrize("name, programs", [("appends", 2), ("sets", 2), ("reads_items", STEPS), ("reads", 2),
                                            ("empties", 2), ("makes", 2)])
def test_left_as_eager_leaves_it(name, programs, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("SPMD_CACHE", str(tmp_path))
    ours, step = run(name, lambda step: spmd.compile(step, ranks=2))
    expected, _ = run(name, lambda step: step)
    torch.testing.assert_close(ours, expected)
    assert len(step.training_state.programs) == programs


def puts_by_name(model, optimizer, x, y):
    loss = update(model, optimizer, x, y).detach()
    getattr(model, "notes").insert(0, loss)


def replaces_by_name(model, optimizer, x, y):
    loss = update(model, optimizer, x, y).detach()
    for name in ("notes", "more"):
        getattr(model, name).clear()
        getattr(model, name).append(loss)
    return loss


def net_with_lists():
    model = nn.Linear(8, 4)
    model.notes, model.more = [], []
    return model, torch.optim.SGD(model.parameters(), lr=0.1), torch.ones(6, 8), torch.zeros(6).long()


def test_a_list_that_no_bytecode_tells_is_empty_in_a_program_that_was_captured_so() -> None:
    model, *others = net_with_lists()
    step = spmd.compile(replaces_by_name, ranks=2)
    for _ in range(3):
        loss = step(model, *others)
        torch.testing.assert_close([model.notes, model.more], [[loss], [loss]])
    assert len(step.training_state.programs) == 2
    model, *others = net_with_lists()
    step = spmd.compile(puts_by_name, ranks=2)
    step(model, *others)
    with pytest.raises(spmd.CaptureError, match="stores a tensor in"):
        step(model, *others)


TWICE = [LOG]


def two_ways(model, optimizer, x, y):
    """TWICE[0] may be another list later."""
    loss = update(model, optimizer, x, y)
    TWICE[0].append(loss.detach())
    LOG.append(loss.detach())
    return loss


def objects(model, optimizer, x, y):
    loss = update(model, optimizer, x, y)
    LOG.append((object(), loss.detach()))
    return loss


def in_front(model, optimizer, x, y):
    loss = update(model, optimizer, x, y)
    LOG.append(loss.detach())
    LOG.insert(0, 1)
    return loss


@pytest.mark.parametrize("step", [two_ways, objects, in_front])
def test_what_nobody_could_append_later_is_refused(step) -> None:
    LOG.clear()
    model = Net()
    with pytest.raises(spmd.CaptureError, match=r"stores a tensor in (LOG|TWICE)|number of entries"):
        spmd.compile(step, ranks=2)(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(6, 8), torch.zeros(6).long())
    assert step is in_front or not LOG


def test_an_artifact_appends_nothing() -> None:
    model = nn.Linear(8, 4)

    def step(model, optimizer, x, y):
        LOG.append(update(model, optimizer, x, y).detach())
    with pytest.raises(spmd.CaptureError, match="(?s)stores a tensor in 'LOG': an artifact cannot update it.*in step"):
        spmd.capture(step, model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(6, 8), torch.zeros(6).long())
    assert not LOG
