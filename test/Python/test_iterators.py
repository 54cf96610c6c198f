"""Steps that take their batches themselves, `next(data_iterator)`: as many values as eager takes, at the same calls, and
what eager computes of them."""
from __future__ import annotations

from typing import Any, Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import spmd
from spmd.capture.session import TraceSession

Batch = tuple[dict[str, torch.Tensor], torch.Tensor]


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))


def batches(count: int, log: list[int], rows: int = 6) -> Iterator[Batch]:
    """Drawn as they are taken, which `log` shows."""
    generator = torch.Generator().manual_seed(1)
    for number in range(count):
        log.append(number)
        yield {"x": torch.randn(rows, 8, generator=generator)}, torch.randint(0, 4, (rows,), generator=generator)


def loss_of(model: nn.Module, batch: Batch) -> torch.Tensor:
    return F.cross_entropy(model(batch[0]["x"]), batch[1])


class Trainer:
    """Its microbatches are as many as it says."""

    def __init__(self) -> None:
        self.model, self.microbatches = network(), 3
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)

    def train_step(self, data: Iterator[Batch]) -> torch.Tensor:
        self.optimizer.zero_grad()
        total = torch.zeros(())
        for _ in range(self.microbatches):
            loss = loss_of(self.model, next(data)) / self.microbatches
            loss.backward()
            total += loss.detach()
        self.optimizer.step()
        return total


def train(trainer: Trainer, step: Callable, count: int) -> tuple[list[float], list[int], str]:
    """Losses, how many batches were taken after each, and how it ended; after three steps two microbatches."""
    log, losses, taken = [], [], []
    data = batches(count, log)
    try:
        for number in range(10):
            trainer.microbatches = 3 if number < 3 else 2
            losses.append(float(step(data)))
            taken.append(len(log))
    except StopIteration as error:
        return losses, [*taken, len(log)], repr(error)
    raise AssertionError("the data has not ended")


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("count", [13, 14])
def test_takes_what_eager_takes(count: int, ranks: int) -> None:
    eager, ours = Trainer(), Trainer()
    step = spmd.compile(ours.train_step, ranks=ranks)
    losses, taken, end = train(eager, eager.train_step, count)
    found = train(ours, step, count)
    assert found[0] == pytest.approx(losses, rel=1e-5) and found[1:] == (taken, end)
    assert step.compiles == 2
    for name, value in ours.model.state_dict().items():
        torch.testing.assert_close(value, eager.model.state_dict()[name], rtol=1e-5, atol=1e-6)


def test_of_many_microbatches_the_step_is_traced_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer, times, traces = Trainer(), 0, []
    trainer.microbatches = 20

    def count(*unused: Any) -> None:
        nonlocal times
        times += 1

    trace = TraceSession._trace
    monkeypatch.setattr(TraceSession, "_trace", lambda session: traces.append(session) or trace(session))
    trainer.model[1].register_forward_hook(count)
    spmd.compile(trainer.train_step)(batches(20, []))
    assert times == 20, "the hook counts as in eager"
    assert len(traces) < 10


def everything(model: nn.Module, optimizer: torch.optim.Optimizer, data: Iterator[Batch]) -> torch.Tensor:
    losses = [loss_of(model, batch) for batch in data]
    loss = torch.stack(losses).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def test_an_iterator_to_its_end() -> None:
    """Another one in each call, with 3 batches, with 3, and with 2."""
    losses = {}
    for compiled in (False, True):
        model = network()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        step = spmd.compile(everything, ranks=2) if compiled else everything
        losses[compiled] = [float(step(model, optimizer, batches(count, []))) for count in (3, 3, 2, 3)]
    assert losses[True] == pytest.approx(losses[False], rel=1e-5)
    assert step.compiles == 2


def with_the_last(model: nn.Module, optimizer: torch.optim.Optimizer, data: Iterator[Batch],
                  others: Iterator[tuple[int, torch.Tensor]]) -> torch.Tensor:
    """Two iterators, one of which may have ended; the other one gives numbers, too."""
    scale, extra = next(others)
    try:
        loss = loss_of(model, next(data))
    except StopIteration:
        loss = torch.zeros(())
    loss = loss + scale * model(extra).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def test_two_iterators_and_an_end_that_the_step_expects() -> None:
    losses = {}
    for compiled in (False, True):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        step = spmd.compile(with_the_last, ranks=2) if compiled else with_the_last
        data, others = batches(2, []), iter([(2, batch[0]["x"]) for batch in batches(4, [])])
        losses[compiled] = [float(step(model, optimizer, data, others)) for _ in range(4)]
    assert losses[True] == pytest.approx(losses[False], rel=1e-5)
    assert step.compiles == 2


def test_a_loader_for_each_epoch_is_one_program() -> None:
    trainer = Trainer()
    trainer.microbatches = 2
    step = spmd.compile(trainer.train_step)
    samples = [(x["x"][0], y[0]) for x, y in batches(8, [])]
    loader = torch.utils.data.DataLoader(samples, batch_size=2, collate_fn=lambda rows: (
        {"x": torch.stack([x for x, _ in rows])}, torch.stack([y for _, y in rows])))
    for _ in range(2):
        data = iter(loader)
        for _ in range(2):
            step(data)
    assert step.compiles == 1 and step.steps == 4


def test_ahead_of_time() -> None:
    model, log = network(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(model: nn.Module, optimizer: torch.optim.Optimizer, data: Iterator[Batch]) -> torch.Tensor:
        loss = loss_of(model, next(data)) + loss_of(model, next(data))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    package = spmd.capture(step, model, optimizer, batches(9, log), reference=[(list(batches(2, [])),)])
    assert len(log) == 2
    assert [i["name"] for i in package.step["inputs"] if i["kind"] == "batch"] == [
        "data.0.0.x", "data.0.1", "data.1.0.x", "data.1.1"]
    expected = float(sum(loss_of(model, batch) for batch in batches(2, [])))
    assert package.reference["loss"].tolist() == pytest.approx([expected])


def test_what_is_read_of_an_iterator() -> None:
    class Loader:
        epoch = 3

        def __iter__(self):
            return self

        def __next__(self):
            return next(self.values)

    loader = Loader()
    loader.values = batches(3, [])

    def step(model, optimizer, data):
        loss = loss_of(model, next(data)) * data.epoch
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    model = network()
    with pytest.raises(spmd.CaptureError, match="(?s)reads 'epoch' of an iterator.*data.epoch.*hint: pass this value"):
        spmd.compile(step)(model, torch.optim.SGD(model.parameters(), lr=0.1), loader)
