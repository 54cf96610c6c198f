"""Python arithmetic on what .item() gave is part of the step, with the bits of Python's own."""
from __future__ import annotations

import copy
from typing import Any, Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import spmd


def count(model, optimizer, xs, ys):
    """What trainers add up over microbatches."""
    total, correct, seen = 0.0, 0, 0
    for x, y in zip(xs, ys):
        out = model(x)
        loss = F.cross_entropy(out, y)
        (loss / len(xs)).backward()
        total += loss.item() * x.size(0)
        correct += (out.argmax(1) == y).sum().item()
        seen += y.size(0)
    optimizer.step()
    optimizer.zero_grad()
    return {"loss": total / seen, "correct": correct, "wrong": seen - correct, "accuracy": 100 * correct / seen,
            "inverse": 1 / total, "each": total / (correct + 1), "score": correct * 3 - 1, "minus": -abs(-total), "mixed": correct + total}


def batches(seed: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    torch.manual_seed(seed)
    return [torch.randn(4, 5) for _ in range(3)], [torch.randint(3, (4,)) for _ in range(3)]


def trained(step: Callable, model: nn.Module) -> list[Any]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return [step(model, optimizer, *batches(seed)) for seed in range(3)]


def test_numbers_are_those_of_eager() -> None:
    torch.manual_seed(0)
    model = nn.Linear(5, 3)
    expected = trained(count, copy.deepcopy(model))
    found = trained(spmd.compile(count, ranks=1), model)
    assert [{key: type(value) for key, value in each.items()} for each in found] == \
        [{key: type(value) for key, value in each.items()} for each in expected]
    # The losses are rounded otherwise than eager's; what is computed with them is compared bit by bit below.
    for ours, theirs in zip(found, expected):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)
    assert all(type(each["correct"]) is int for each in found)


def test_of_one_loss_the_bits_are_python_s() -> None:
    def step(model, optimizer, x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        value = loss.item()
        return value, value * 3 + 0.1, 1 - value / 7, 2 / value, -value

    xs, ys = batches(1)
    model = nn.Linear(5, 3)
    compiled = spmd.compile(step, ranks=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in zip(xs, ys):
        value, *found = compiled(model, optimizer, x, y)
        assert found == [value * 3 + 0.1, 1 - value / 7, 2 / value, -value]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_number_may_scale_what_is_trained(dtype: torch.dtype) -> None:
    def step(model, optimizer, x, y):
        loss = F.cross_entropy(model(x), y)
        scale = 1 / (1 + loss.item())
        (loss * scale + scale - 0.1 * scale * model(x).mean()).backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss * scale, scale

    model = nn.Linear(5, 3).to(dtype)
    eager = copy.deepcopy(model)
    compiled = spmd.compile(step, ranks=1)
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (model, eager)]
    for x, y in zip(*batches(1)):
        found, expected = compiled(model, optimizers[0], x.to(dtype), y), step(eager, optimizers[1], x.to(dtype), y)
        assert found[0].dtype == expected[0].dtype == dtype
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(model.weight, eager.weight, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_have_the_whole_batch_s_numbers(ranks: int) -> None:
    torch.manual_seed(0)
    model = nn.Linear(5, 3)
    expected = trained(count, copy.deepcopy(model))
    for ours, theirs in zip(trained(spmd.compile(count, ranks=ranks), model), expected):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)


def test_numbers_of_numbers_have_python_s_bits() -> None:
    def step(model, optimizer, xs, ys):
        values = []
        for x, y in zip(xs, ys):
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            values.append(loss.item())
        optimizer.step()
        optimizer.zero_grad()
        a, b, c = values
        return values, [a * b - c / 3, (a + 1e16) - 1e16, 1 / (a - b * 0.1), sum(values) / 3, -a * (b + c), abs(a - 7) + 2]

    model = nn.Linear(5, 3)
    (a, b, c), found = spmd.compile(step, ranks=1)(model, torch.optim.SGD(model.parameters(), lr=0.1), *batches(3))
    assert found == [a * b - c / 3, (a + 1e16) - 1e16, 1 / (a - b * 0.1), sum([a, b, c]) / 3, -a * (b + c), abs(a - 7) + 2]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_a_number_is_what_its_tensor_was(dtype: torch.dtype) -> None:
    """Also where that is written to later."""
    def step(model, optimizer, x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        kept = loss.detach().to(dtype)
        value = kept.item()
        kept.mul_(2)
        return value, kept.float()

    model = nn.Linear(5, 3)
    value, doubled = spmd.compile(step, ranks=1)(model, torch.optim.SGD(model.parameters(), lr=0.1), *(b[0] for b in batches(3)))
    assert torch.tensor(value * 2).float() == doubled and torch.tensor(value).to(dtype).item() == value


def test_a_whole_number_that_is_too_big() -> None:
    def step(model, optimizer, x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return y.sum().item() * 2**62

    model = nn.Linear(5, 3)
    with pytest.raises(spmd.CaptureError, match="(?s)have 64 bits.*test_python_numbers.py.*use float"):
        spmd.compile(step, ranks=1)(model, torch.optim.SGD(model.parameters(), lr=0.1), *(b[0] for b in batches(0)))


def test_the_loss_is_the_one_that_is_trained() -> None:
    def step(model, optimizer, x, y):
        out = model(x)
        loss = F.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return out.detach().norm().item(), loss.item()

    model = nn.Linear(5, 3)
    package = spmd.capture(step, model, torch.optim.SGD(model.parameters(), lr=0.1), *(b[0] for b in batches(3)))
    assert [output["kind"] for output in package.step["outputs"]] == ["output", "loss"]


@pytest.mark.parametrize("compute", [lambda value: value ** 0.5, lambda value: value // 2, lambda value: value % 2])
def test_other_arithmetic_is_an_error(compute: Callable) -> None:
    def step(model, optimizer, x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return compute(loss.item())

    model = nn.Linear(5, 3)
    with pytest.raises(spmd.CaptureError, match="compute with the tensor instead of .item"):
        spmd.compile(step, ranks=1)(model, torch.optim.SGD(model.parameters(), lr=0.1), *(b[0] for b in batches(0)))
