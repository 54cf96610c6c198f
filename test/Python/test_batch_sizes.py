"""One program for batches of several sizes: exact for each, whatever stands behind the rows that there are."""
from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Callable

import pytest
import spmd
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from spmd.capture.batch_sizes import with_rows
from spmd.capture.call import StepCall
from step_check import run, tool
from torch import nn

LARGEST = 9


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(rows, length, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(rows, length, width)
        x = x + self.drop(self.out(y))
        return x + self.mlp(x)


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(11, 8), nn.Embedding(5, 8)
        self.blocks, self.head = nn.Sequential(Block(8), Block(8)), nn.Linear(8, 11, bias=False)

    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device)
        return self.head(self.blocks(self.tokens(x) + self.places(places)))


def gpt():
    return GPT(), lambda n: (torch.randint(0, 11, (n, 5)), torch.randint(0, 11, (n, 5))), \
        lambda model, x, y: F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def mlp():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4)), \
        lambda n: (torch.randn(n, 6), torch.randn(n, 4)), lambda model, x, y: F.mse_loss(model(x), y)


def batch_norm():
    model = nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5))
    return model, lambda n: (torch.randn(n, 3, 8, 8), torch.randint(0, 5, (n,))), \
        lambda model, x, y: F.cross_entropy(model(x), y)


def statistics():
    """Largest and smallest, variances and means over rows, and a number that Python computes from how many there are."""
    def loss(model, x, y):
        out = model(x)
        high, low = out.amax(0), out.amin(0)
        whole = out.std() + out.var(0, unbiased=False).sum() + (out * out).sum() / x.shape[0] + out.mean(0).norm()
        return whole + F.smooth_l1_loss(out, y) + (high - low).sum() + F.l1_loss(out, y, reduction="sum") / (3 * len(y))
    return nn.Linear(6, 4), lambda n: (torch.randn(n, 6), torch.randn(n, 4)), loss


def per_row():
    """Rows that a step makes itself, and outputs with rows."""
    def loss(model, x, y):
        numbers = torch.arange(x.shape[0], dtype=x.dtype).view(-1, 1)
        out = model(torch.cat([x, torch.ones(x.shape[0], 1)], 1)) + 0.1 * numbers
        return ((out - y) ** 2).sum(1)
    return nn.Linear(7, 4), lambda n: (torch.randn(n, 6), torch.randn(n, 4)), loss


def time_major():
    return nn.Linear(6, 4), lambda n: (torch.randn(3, n, 6), torch.randn(3, n, 4)), \
        lambda model, x, y: F.mse_loss(model(x), y) + model(x).flatten(0, 1).square().mean()


def broadcast():
    """A table of one row for all, whose gradient PyTorch adds up only where there are several."""
    class Shifted(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.shift = nn.Linear(6, 4), nn.Parameter(torch.randn(1, 4))

        def forward(self, x):
            return torch.tanh(self.first(x) + self.shift) * self.shift
    return Shifted(), lambda n: (torch.randn(n, 6), torch.randn(n, 4)), lambda model, x, y: F.mse_loss(model(x), y)


CASES = {case.__name__: case for case in (gpt, mlp, batch_norm, statistics, per_row, time_major, broadcast)}
DIMS = {"time_major": {"x": 1, "y": 1}}


def train_step_of(loss_of: Callable) -> Callable:
    def train_step(model, optimizer, x, y):
        loss = loss_of(model, x, y)
        loss.sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss
    return train_step


class Case:
    """A step for several sizes, saved, and its partition for each number of ranks."""

    def __init__(self, name: str, folder: Path):
        torch.manual_seed(0)
        self.name, self.folder, self.dims = name, folder, DIMS.get(name)
        self.model, self.batch, loss_of = CASES[name]()
        self.step = train_step_of(loss_of)
        self.package = self.capture(self.batch(4), dynamic_batch=LARGEST)
        self.programs: dict[int, Path] = {}

    def capture(self, batch: Any, **options: Any) -> spmd.StepPackage:
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        return spmd.capture(self.step, self.model, optimizer, *batch, batch_dims=self.dims, **options)

    def partition(self, package: spmd.StepPackage, ranks: int, name: str) -> Path:
        package.save(self.folder / f"{name}.step")
        program = self.folder / f"{name}.{ranks}.mlir"
        run(tool("spmd-compile"), self.folder / f"{name}.step", f"--ranks={ranks}", "--compile-to=partition", "--quiet",
            "-o", program)
        return program

    def interpret(self, program: Path, package: spmd.StepPackage, batch: dict[str, torch.Tensor],
                  name: str) -> dict[str, torch.Tensor]:
        step, results = self.folder / f"{name}.run.step", self.folder / "results.safetensors"
        package.save(step)
        tensors = {f"batch/0/{key}": value.contiguous() for key, value in batch.items()}
        save_file(tensors | {"loss": torch.zeros(1, dtype=torch.float64)}, step / "reference.safetensors")
        run(tool("spmd-interpret"), program, f"--weights={step}", f"--save={results}")
        return load_file(results)

    def of_size(self, batch: Any) -> dict[str, torch.Tensor]:
        package = self.capture(batch)
        return self.interpret(self.partition(package, 1, "one"), package, dict(zip("xy", batch)), "one")

    def of_all(self, batch: Any, ranks: int) -> dict[str, torch.Tensor]:
        if ranks not in self.programs:
            self.programs[ranks] = self.partition(self.package, ranks, "all")
        call = StepCall(self.step, (self.model, torch.optim.SGD(self.model.parameters()), *batch), {})
        rows = call.batch[0].shape[(self.dims or {}).get("x", 0)]
        padded = dict(zip("xy", with_rows(call, LARGEST, self.dims or {}).batch))
        for name, tensor in padded.items():
            dim = (self.dims or {}).get(name, 0)
            if tensor.is_floating_point() and rows < LARGEST:  # what must not count
                tensor.narrow(dim, rows, LARGEST - rows).fill_(math.nan)
        return self.interpret(self.programs[ranks], self.package, padded | {"rows": torch.tensor(rows)}, "all")


@pytest.mark.parametrize("name", CASES)
def test_every_size_is_what_its_own_program_computes(name: str, tmp_path) -> None:
    case = Case(name, tmp_path)
    for rows in range(1, LARGEST + 1):
        batch = case.batch(rows)
        expected = case.of_size(batch)
        for ranks in (1, 2, 3, 4) if rows in (1, 4, 8, 9) else (3,):
            got = case.of_all(batch, ranks)
            assert got.keys() == expected.keys()
            for key, value in expected.items():
                mine = got[key]
                if mine.shape != value.shape:  # an output with rows
                    mine = mine[:rows]
                scale = max(1e-3, float(value.double().norm()))
                assert float((mine.double() - value.double()).norm()) <= 1e-12 * scale, f"{key} of {rows} rows, {ranks} ranks"


# The compiled step.

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
    with pytest.raises(spmd.CaptureError, match="leaves rows of the batch in 'memory'"):
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
    scaled_by_one_less: "no size, nor a factor|neither so many for each row",
    scaled_by_a_root: "no size, nor a factor|neither so many for each row",
    rows_of_a_table: "the step is another one with 9 rows than with 8",
    running_sum: "needs all rows of the batch at once",
    backwards: "needs all rows of the batch at once",
    sorted_rows: "needs all rows of the batch at once|no size",
    picked_rows: "needs all rows of the batch at once|no size",
    neighbours: "neither so many for each row|is not so many|no size",
    transposed: "needs all rows of the batch at once|combines rows",
}


@pytest.mark.parametrize("loss_of", REFUSED, ids=lambda f: f.__name__)
def test_what_is_not_the_same_with_any_number_of_rows_is_refused(loss_of: Callable, cache) -> None:
    model = nn.Linear(6, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = spmd.compile(train_step_of(loss_of), dynamic_batch=9)
    with pytest.raises((spmd.CompileError, spmd.CaptureError), match=REFUSED[loss_of]) as refused:
        step(model, optimizer, torch.randn(4, 6), torch.randn(4, 4))
    print(refused.value)
    assert "without dynamic_batch" in str(refused.value) or "leave dynamic_batch out" in str(refused.value)


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
            with pytest.raises(spmd.CaptureError, match="with 3 rows the step is another one"):
                step(model, optimizer, x, y)
            continue
        if rows == 3:
            with pytest.warns(spmd.Remark, match="with 3 rows the step is another one"):
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
    with pytest.raises(ValueError, match="view='global'"):
        spmd.compile(step, dynamic_batch=4, view="local", ranks=2)
    with pytest.raises(ValueError, match="leave one out"):
        spmd.compile(step, dynamic_batch=4, maybe_dynamic_batch=4)
    model = nn.Linear(6, 4)
    compiled = spmd.compile(train_step_of(lambda model, x, y: model(x).sum() + y.sum()), dynamic_batch=4)
    with pytest.raises(spmd.CaptureError, match="same number of rows; 'x' has 3, 'y' has 2"):
        compiled(model, torch.optim.SGD(model.parameters()), torch.randn(3, 6), torch.randn(2, 4))


def test_a_package_without_the_other_capture_is_refused(tmp_path) -> None:
    package = Case("mlp", tmp_path).package
    package.other_batch = None
    package.save(tmp_path / "s.step")
    with pytest.raises(AssertionError, match="no capture of another size"):
        run(tool("spmd-compile"), tmp_path / "s.step", "--compile-to=import", "-o", tmp_path / "s.mlir")
