"""Quotients, remainders and powers of whole numbers: by zero they are errors of the step that name op and line, of the smallest
number by -1 they are PyTorch's; on every target and in the interpreter."""
from __future__ import annotations

import pytest
import torch
from step_check import capture_function, compute, interpret

import spmd

pytestmark = pytest.mark.filterwarnings("ignore:the step does not")
TARGETS = ["interpreter", "--target=host", "--target=emulate:sm_90"]
DIVISIONS = {
    "floor_divide": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "fmod": torch.fmod,
    "div": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
}


def all_of_them(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    return [divide(x, y) for divide in DIVISIONS.values()]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
def test_of_the_smallest_number(dtype: torch.dtype, target: str, tmp_path) -> None:
    """PyTorch's own truncated quotient of int32 ends the process; it is the range's, as that of the others."""
    info = torch.iinfo(dtype)
    edges = torch.tensor([info.min, info.min + 1, -1 % (info.max + 1 - info.min) if info.min == 0 else -1, 1, 2,
                          info.max], dtype=dtype)
    x, y = (column.contiguous() for column in torch.cartesian_prod(edges, edges).unbind(1))
    x, y = x[y != 0], y[y != 0]
    safe = ~((x == info.min) & (y == -1)) if info.min else torch.ones_like(x, dtype=torch.bool)
    expected = all_of_them(x[safe], y[safe])
    for name, ours, theirs in zip(DIVISIONS, compute(all_of_them, (x, y), tmp_path, target), expected, strict=True):
        assert ours.dtype == dtype and torch.equal(ours[safe], theirs), name
        assert torch.equal(ours[~safe], torch.full_like(x[~safe], info.min if name in ("floor_divide", "div") else 0))


@pytest.mark.parametrize("target", TARGETS)
def test_by_a_number(target: str, tmp_path) -> None:
    x = torch.tensor([-2 ** 63, -7, 0, 7, 2 ** 63 - 1])

    def divide(x):
        return x // -1, x % -1, torch.fmod(x, -1), x // 3, x % 3, 7 % (x | 1), 7 // (x | 1), 2.5 % (x | 1)
    for ours, expected in zip(compute(divide, (x,), tmp_path, target), divide(x), strict=True):
        assert ours.dtype == expected.dtype
        torch.testing.assert_close(ours, expected)


@pytest.mark.parametrize("name", DIVISIONS)
@pytest.mark.parametrize("target", TARGETS)
def test_by_zero_is_an_error_that_names_op_and_line(name: str, target: str, tmp_path) -> None:
    divide = DIVISIONS[name]
    x, y = torch.arange(5), torch.tensor([1, 2, 3, 0, 1])
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        divide(x, y)

    def apply(x, y):
        return (divide(x, y),)
    message = f"{name} of whole numbers by zero"
    if target == "interpreter":
        package = capture_function(apply, (x, y))
        package.save(tmp_path / "s.step")
        with pytest.raises(AssertionError, match=rf"test_integer_division.py:\d+.*{message} at element 3"):
            interpret(package, (x, y), tmp_path)
    else:
        with pytest.raises(spmd.RunError, match=rf"{message} at position 3 of rank 0 \[.*test_integer_division.py:\d+"):
            compute(apply, (x, y), tmp_path, target)


def test_of_a_number_by_zero_is_an_error_that_names_op_and_line(tmp_path) -> None:
    with pytest.raises(spmd.RunError, match=r"remainder of whole numbers by zero at position 3 of rank 0 \[.*test_integer_division.py:\d+"):
        compute(lambda y: (torch.remainder(100, y),), (torch.tensor([1, 2, 3, 0, 1]),), tmp_path, "--target=host")


def test_by_the_number_zero_is_an_error_of_the_compiler(tmp_path) -> None:
    with pytest.raises(AssertionError, match=r"integer_division.py:\d+.*error: remainder of whole numbers by zero"):
        compute(lambda x: (x % 0,), (torch.arange(5),), tmp_path, "--target=host")


def test_floating_numbers_and_proven_divisors_are_not_checked(tmp_path) -> None:
    def divide(x, y):
        return x / y, x.float() // y, x // y.clamp(1, 9), x % (torch.arange(5) + 1)
    x, y = torch.arange(5), torch.tensor([1, 2, 3, 0, 1])
    for ours, expected in zip(compute(divide, (x, y), tmp_path, "--target=host"), divide(x, y), strict=True):
        torch.testing.assert_close(ours, expected, equal_nan=True)
    plan, = (tmp_path / "s.spmd").glob("*.plan.json")
    assert "check_index" not in plan.read_text()


def test_padded_rows_are_no_divisors(monkeypatch, tmp_path) -> None:
    """Five rows on two and three ranks: the rows that fill the last rank are zeros."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def train_step(model, optimizer, x, y):
        loss = (model(x // y % 3).sum(1) * (7 % y)).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss, x // y
    x, y = torch.arange(5) + 11, torch.tensor([1, 2, 3, 4, 5])
    for ranks in (2, 3):
        model = torch.nn.Embedding(3, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        loss, quotient = spmd.compile(train_step, ranks=ranks)(model, optimizer, x, y)
        expected, expected_quotient = train_step(model, optimizer, x, y)
        torch.testing.assert_close(loss, expected)
        assert torch.equal(quotient, expected_quotient)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
def test_powers_wrap_around(dtype: torch.dtype, target: str, tmp_path) -> None:
    info = torch.iinfo(dtype)
    x = torch.tensor([0, 1, 2, 3, 5, 7, info.max, info.min, info.max // 3], dtype=dtype)
    exponents = torch.tensor([0, 1, 7, 8, 31, 63, 64, 65, 100, 127], dtype=dtype)
    base, exponent = (column.contiguous() for column in torch.cartesian_prod(x, exponents).unbind(1))

    def powers(base, exponent):
        return base ** exponent, base ** 64, base ** 101, 3 ** exponent, base ** 2
    for ours, expected in zip(compute(powers, (base, exponent), tmp_path, target), powers(base, exponent), strict=True):
        assert ours.dtype == expected.dtype and torch.equal(ours, expected)
