"""A compiled step that one program serves several batch sizes of, and those that are refused."""
from __future__ import annotations

import math
from pathlib import Path
from typing import Callable

import pytest
import spmd
import torch
import torch.nn.functional as F
from batch_size_cases import CASES, LARGEST, mlp, train_step_of
from torch import nn


def train_eagerly(case: Callable, batches: list, dims: dict | None = None) -> tuple[list, dict]:
    torch.manual_seed(0)
    model, _, loss_of = case()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = [train_step_of(loss_of)(model, optimizer, *batch).detach() for batch in batches]
    return losses, {name: value.clone() for name, value in model.state_dict().items()}


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "spmd"


def artifacts(cache: Path) -> int:
    return len(list(cache.glob("*/*.spmd")))


SIZES = [4, 9, 1, 3, 8, 2, 7, 6, 5, 9, 1]


@pytest.mark.parametrize("ranks", (1, 2))
@pytest.mark.parametrize("name", ("mlp", "per_row", "broadcast"))
@pytest.mark.sample(2)
def test_batches_of_1_to_9_rows_are_one_compilation(name: str, ranks: int, cache) -> None:
    torch.manual_seed(1)
    _, batch_of, loss_of = CASES[name]()
    batches = [batch_of(rows) for rows in SIZES]
    losses, final = train_eagerly(CASES[name], batches)
    torch.manual_seed(0)
    model, _, _ = CASES[name]()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    step = spmd.compile(train_step_of(loss_of), ranks=ranks, dynamic_batch=LARGEST)
    for batch, expected in zip(batches, losses):
        loss = step(model, optimizer, *batch)
        assert loss.shape == expected.shape
        torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-6)
    for key, value in model.state_dict().items():
        torch.testing.assert_close(value, final[key], rtol=1e-4, atol=1e-5)
    assert step.compiles == 1 and artifacts(cache) == 1


class Normalized(nn.Module):
    """Statistics of each rank's own rows."""

    def __init__(self):
        super().__init__()
        self.up, self.norm, self.down = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 4)

    def forward(self, x):
        return self.down(self.norm(self.up(x)).relu())


@pytest.mark.parametrize("ranks", (2, 3))
def test_ranks_have_as_many_rows_of_their_own(ranks: int, cache) -> None:
    """With view="local": what a rank has is filled up, so that each batch gives what its own program does."""
    loss_of = lambda model, x, y: F.cross_entropy(model(x), y)  # noqa: E731
    found = []
    for options in ({"dynamic_batch": 24}, {"max_compiles": 9}):
        torch.manual_seed(0)
        model = Normalized()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        step = spmd.compile(train_step_of(loss_of), ranks=ranks, view="local", **options)
        torch.manual_seed(1)
        batches = [(torch.randn(rows, 6), torch.randint(0, 4, (rows,))) for rows in (12, 24, 18, 6, 12)]
        found.append(([step(model, optimizer, *batch).detach() for batch in batches], model.state_dict()))
        assert step.compiles == (1 if "dynamic_batch" in options else 4)
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)


def test_rows_of_ranks_that_are_refused(cache) -> None:
    _, batch_of, loss_of = mlp()
    model, _, _ = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = spmd.compile(train_step_of(loss_of), ranks=2, view="local", dynamic_batch=8)
    step(model, optimizer, *batch_of(6))
    with pytest.raises(spmd.CaptureError, match="has 5 rows for 2 ranks\n  hint: with view='local' each rank has as many"):
        step(model, optimizer, *batch_of(5))

    @spmd.compile(ranks=2, view="local", dynamic_batch=8)
    def returning(model, optimizer, x, y):
        result = model(x)
        result.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        return result.detach()

    with pytest.raises(spmd.CaptureError, match="returns rows of its batch(.|\n)*hint: omit dynamic_batch"):
        returning(model, optimizer, *batch_of(4))


def test_what_is_larger_is_compiled_for_itself(cache) -> None:
    _, batch_of, loss_of = mlp()
    model, _, _ = mlp()
    step = spmd.compile(train_step_of(loss_of), dynamic_batch=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for rows in (3, 6, 4, 2, 6):
        step(model, optimizer, *batch_of(rows))
    assert step.compiles == 2


def test_a_batch_is_padded_to_the_next_of_several_sizes(cache) -> None:
    _, batch_of, loss_of = mlp()
    batches = [batch_of(rows) for rows in (7, 2, 8, 4, 3)]
    losses, _ = train_eagerly(mlp, batches)
    torch.manual_seed(0)
    model, _, _ = mlp()
    step = spmd.compile(train_step_of(loss_of), dynamic_batch=(8, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for batch, loss in zip(batches, losses):
        torch.testing.assert_close(step(model, optimizer, *batch), loss, rtol=1e-5, atol=1e-6)
    assert step.compiles == 2
    assert [i.shape[0] for i in step.trainer.inputs if i.name == "x"] == [4]


def test_what_is_written_into_the_batch_and_left_in_the_model(cache) -> None:
    def train_step(model, optimizer, x):
        out = model(x)
        loss = out.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        model.last_loss = loss.detach()
        x.mul_(2)
        return {"out": out, "rows": x.shape[0], "loss": loss.item()}
    model = nn.Linear(4, 3)
    step = spmd.compile(train_step, dynamic_batch=5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for rows in (2, 5, 3):
        x = torch.randn(rows, 4)
        given, expected = x.clone(), model(x).detach()
        got = step(model, optimizer, x)
        assert got["rows"] == rows and isinstance(got["loss"], float)
        torch.testing.assert_close(got["out"], expected)
        torch.testing.assert_close(model.last_loss.item(), got["loss"])
        torch.testing.assert_close(x, given * 2)
    assert step.compiles == 2  # the first call finds no loss of an earlier one


def test_rows_that_are_left_in_the_model_are_refused(cache) -> None:
    def train_step(model, optimizer, x):
        model.memory = model(x).detach()
        return model.memory.sum()
    model = nn.Linear(4, 3)
    with pytest.raises(spmd.CaptureError, match="stores rows of the batch in 'memory'"):
        spmd.compile(train_step, dynamic_batch=5)(model, torch.optim.SGD(model.parameters()), torch.randn(2, 4))


def test_rows_get_the_draws_that_they_get_alone(cache) -> None:
    """A dropout mask is a function of the element's place in its row and of the row's number."""
    def train_step(model, optimizer, x):
        out = F.dropout(model(x), 0.5)
        out.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        return out
    outs = []
    for options in ({}, {"dynamic_batch": 9}):
        torch.manual_seed(3)
        model = nn.Linear(4, 32)
        step = spmd.compile(train_step, **options)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        torch.manual_seed(4)
        outs.append([step(model, optimizer, torch.randn(rows, 4)) for rows in (2, 9, 1, 5)])
    for one, other in zip(*outs):
        assert torch.equal(one == 0, other == 0)
        torch.testing.assert_close(one, other)


def test_gradients_of_several_calls_and_a_scheduler(cache) -> None:
    def train_step(model, optimizer, x, y, ends):
        loss = F.mse_loss(model(x), y, reduction="sum")
        loss.backward()
        if ends:
            optimizer.step()
            optimizer.zero_grad()
        return loss

    def train(step):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9)
        for i, rows in enumerate((4, 2, 3, 4, 1, 3)):
            step(model, optimizer, torch.randn(rows, 6), torch.randn(rows, 4), i % 2 == 1)
            if i % 2 == 1:
                scheduler.step()
        return {name: value.clone() for name, value in model.state_dict().items()}
    expected = train(train_step)
    step = spmd.compile(train_step, ranks=2, dynamic_batch=4)
    for name, value in train(step).items():
        torch.testing.assert_close(value, expected[name], rtol=1e-4, atol=1e-5)
    assert step.compiles <= 3  # one that adds, one that updates; the first call begins without gradients


def test_a_step_that_only_evaluates(cache) -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.Softmax(-1))

    def evaluate(model, x):
        with torch.no_grad():
            return model(x).argmax(-1), model(x).mean()
    step = spmd.compile(evaluate, ranks=2, dynamic_batch=7)
    for rows in (7, 3, 1):
        x = torch.randn(rows, 6)
        got, expected = step(model, x), evaluate(model, x)
        assert torch.equal(got[0], expected[0])
        torch.testing.assert_close(got[1], expected[1])
    assert step.compiles == 1


# Never silently wrong.

def all_pairs(model, x, y):
    h = F.normalize(model(x), dim=1)
    return F.cross_entropy(h @ h.T, torch.arange(len(x)))


def scaled_by_one_less(model, x, y):
    return F.mse_loss(model(x), y) * (len(x) - 1)


def scaled_by_a_root(model, x, y):
    return F.mse_loss(model(x), y) / math.sqrt(len(x))


def rows_of_a_table(model, x, y):
    return F.mse_loss(model(x) + model.weight[0, 0] * torch.linspace(0, 1, 9)[:len(x), None], y)


def running_sum(model, x, y):
    return model(x).cumsum(0).square().mean()


def backwards(model, x, y):
    return F.mse_loss(model(x).flip(0), y)


def sorted_rows(model, x, y):
    return F.mse_loss(model(x).sort(0).values, y)


def picked_rows(model, x, y):
    return model(x)[torch.arange(len(x)) % 2].square().sum()


def neighbours(model, x, y):
    out = model(x)
    return (out[1:] - out[:-1]).square().sum()


def transposed(model, x, y):
    return (model(x).T.reshape(-1) * torch.arange(4.0).repeat(len(x))).sum()


REFUSED = {
    all_pairs: "needs all rows of the batch at once|no size",
    scaled_by_one_less: "no size, nor a factor|neither proportional nor inversely",
    scaled_by_a_root: "no size, nor a factor|neither proportional nor inversely",
    rows_of_a_table: "the step does something different for 9 rows than for 8",
    running_sum: "needs all rows of the batch at once",
    backwards: "needs all rows of the batch at once",
    sorted_rows: "needs all rows of the batch at once|no size",
    picked_rows: "needs all rows of the batch at once|no size",
    neighbours: "neither proportional nor inversely|is not so many|no size",
    transposed: "needs all rows of the batch at once|combines rows",
}


@pytest.mark.parametrize("loss_of", REFUSED, ids=lambda f: f.__name__)
@pytest.mark.sample(2)
def test_what_is_not_the_same_with_any_number_of_rows_is_refused(loss_of: Callable, cache) -> None:
    model = nn.Linear(6, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = spmd.compile(train_step_of(loss_of), dynamic_batch=9)
    with pytest.raises((spmd.CompileError, spmd.CaptureError), match=REFUSED[loss_of]) as refused:
        step(model, optimizer, torch.randn(4, 6), torch.randn(4, 4))
    assert "without dynamic_batch" in str(refused.value) or "omit dynamic_batch" in str(refused.value)


def test_a_step_that_needs_a_program_for_each_size_gets_them(cache) -> None:
    batches = [(torch.randn(rows, 6), torch.randn(rows, 4)) for rows in (4, 3, 4)]

    def train(step):
        torch.manual_seed(0)
        model = nn.Linear(6, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        return [step(model, optimizer, *batch) for batch in batches]
    step = spmd.compile(train_step_of(all_pairs), maybe_dynamic_batch=9)
    with pytest.warns(spmd.Remark, match="compiled for each batch size by itself"):
        got = train(step)
    torch.testing.assert_close(got, train(train_step_of(all_pairs)))
    assert step.compiles == 2


@pytest.mark.parametrize("option", ("dynamic_batch", "maybe_dynamic_batch"))
def test_a_size_that_is_another_step(option: str, cache) -> None:
    """Python looks at the number of rows: what two sizes have in common says nothing about a third."""
    def loss_of(model, x, y):
        loss = F.mse_loss(model(x), y)
        return loss * 2 if len(x) == 3 else loss
    model = nn.Linear(6, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    step = spmd.compile(train_step_of(loss_of), **{option: 9})
    for rows in (4, 5, 3, 2):
        x, y = torch.randn(rows, 6), torch.randn(rows, 4)
        if rows == 3 and option == "dynamic_batch":
            with pytest.raises(spmd.CaptureError, match="the step does something different for a batch of 3 rows"):
                step(model, optimizer, x, y)
            continue
        if rows == 3:
            with pytest.warns(spmd.Remark, match="the step does something different for a batch of 3 rows"):
                loss = step(model, optimizer, x, y)
        else:
            loss = step(model, optimizer, x, y)
        torch.testing.assert_close(loss, loss_of(model, x, y).detach())
    assert step.compiles == (1 if option == "dynamic_batch" else 2)


def test_options(cache) -> None:
    def step(model, optimizer, x):
        pass
    for bad in (0, -1, (), (3, 0), True, 2.5):
        with pytest.raises((ValueError, TypeError)):
            spmd.compile(step, dynamic_batch=bad)
    with pytest.raises(ValueError, match="leave one out"):
        spmd.compile(step, dynamic_batch=4, maybe_dynamic_batch=4)
    model = nn.Linear(6, 4)
    compiled = spmd.compile(train_step_of(lambda model, x, y: model(x).sum() + y.sum()), dynamic_batch=4)
    with pytest.raises(spmd.CaptureError, match="same number of rows in all inputs; 'x' has 3, 'y' has 2"):
        compiled(model, torch.optim.SGD(model.parameters()), torch.randn(3, 6), torch.randn(2, 4))
