"""Operators of torch.library with a declared decomposition train as eager, forward and backward; others are refused."""
from __future__ import annotations

import copy
import pathlib
import re
import tempfile

import numpy as np
import pytest
import spmd
import torch
import torch.nn.functional as F

from conftest import ROOT

# The document's operators; triton_op reads their source.
_code = re.findall(r"```python\n(.*?)```", (ROOT / "docs/custom-ops.md").read_text(), re.DOTALL)
with tempfile.TemporaryDirectory() as _folder:
    (_file := pathlib.Path(_folder, "custom_ops.py")).write_text("\n\n".join(_code))
    exec(compile(_file.read_text(), str(_file), "exec"), {"torch": torch, "np": np, "spmd": spmd})

FACTOR = SLOPE = 2.0


def op(name: str, schema: str, cpu, fake=None, backward=None, keep=None):
    """An operator of torch.library.Library."""
    _library.define(f"{name}{schema}")
    _library.impl(name, cpu, "CPU")
    if fake is not None:
        torch.library.register_fake(f"custom_test::{name}", fake, lib=_library)
    if backward is not None:
        torch.library.register_autograd(f"custom_test::{name}", backward, setup_context=keep, lib=_library)
    return getattr(torch.ops.custom_test, name)


_library = torch.library.Library("custom_test", "DEF")

# One whose backward is another operator, with two results of which one carries no gradient.
cubed_backward = op("cubed_backward", "(Tensor grad, Tensor x) -> Tensor", lambda grad, x: 3 * grad * x * x,
                    lambda grad, x: torch.empty_like(x))
cubed = op("cubed", "(Tensor x) -> (Tensor, Tensor)", lambda x: (x * x * x, x.abs().sum(-1)),
           lambda x: (torch.empty_like(x), x.new_empty(x.shape[:-1])),
           lambda ctx, grad, unused: cubed_backward(grad, *ctx.saved_tensors),
           lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
spmd.register_decomposition("custom_test::cubed", lambda x: (x.pow(3), x.abs().sum(-1)))
spmd.register_decomposition(cubed_backward, lambda grad, x: 3 * grad * x.square())


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(6, 12), torch.nn.Linear(12, 3)

    def forward(self, x):
        hidden = torch.ops.mylib.swish(self.up(x), 1.5)
        hidden, sizes = cubed(hidden)
        return self.down(hidden / (1 + sizes.unsqueeze(-1)))


def finish(loss, optimizer):
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def train_step(model, optimizer, x, y):
    return finish(F.cross_entropy(model(x), y), optimizer)


def setup():
    torch.manual_seed(0)
    model = Net()
    return model, torch.optim.AdamW(model.parameters(), lr=0.05)


def batches(steps: int = 4):
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(8, 6, generator=generator), torch.randint(0, 3, (8,), generator=generator))
            for _ in range(steps)]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def assert_trains(step, eager, ranks, model_and_optimizer=setup) -> None:
    """A few steps of both, which give the same losses and parameters."""
    model, optimizer = model_and_optimizer()
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    compiled = spmd.compile(step, ranks=ranks, policy="class:Linear", threads=2)
    for x, y in batches():
        expected = eager(twin, twin_optimizer, x, y)
        torch.testing.assert_close(compiled(model, optimizer, x, y).detach(), expected.detach(), rtol=1e-5, atol=1e-6)
    for (name, got), expected in zip(model.named_parameters(), twin.parameters()):
        torch.testing.assert_close(got.detach(), expected.detach(), rtol=1e-4, atol=1e-5, msg=name)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_trains_as_eager(ranks) -> None:
    """Eager runs the operators' own code, of numpy, and their own backward."""
    assert_trains(train_step, train_step, ranks)


def triton_step(model, optimizer, x, y):
    return finish(F.cross_entropy(torch.ops.mylib.scaled_add(model.down(model.up(x)), y[:, None] * 1.0, 0.5), y), optimizer)


def triton_step_in_aten(model, optimizer, x, y):
    return finish(F.cross_entropy(torch.add(model.down(model.up(x)), y[:, None] * 1.0, alpha=0.5), y), optimizer)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_triton(ranks) -> None:
    """Its kernel cannot run here: eager computes the same without it."""
    assert_trains(triton_step, triton_step_in_aten, ranks)


# What register_autograd says is obeyed, whatever the function's own derivative would be.
flipped = op("flipped", "(Tensor x) -> Tensor", lambda x: x.clone(), lambda x: torch.empty_like(x),
             lambda ctx, grad: -FACTOR * grad, lambda ctx, inputs, output: None)
spmd.register_decomposition(flipped, lambda x: x)


def test_gradients_are_those_of_register_autograd_and_results_are_new() -> None:
    def step(model, optimizer, x, y):
        z = model.up(x)
        seen = flipped(z)
        z.mul_(0)  # a write to the argument afterwards leaves the result
        return finish(F.cross_entropy(model.down(seen + z), y), optimizer)
    assert_trains(step, step, 2)


filled = op("filled", "(Tensor(a!) out, Tensor x) -> ()", lambda out, x: (out.copy_(2 * x), None)[1])
spmd.register_decomposition(filled, lambda out, x: (out.copy_(x + x), None)[1])


def test_an_operator_that_writes_its_argument() -> None:
    def step(model, optimizer, x, y):
        doubled = torch.zeros_like(x)
        torch.ops.custom_test.filled(doubled, x)
        return finish(F.cross_entropy(model.down(model.up(doubled)), y), optimizer)
    assert_trains(step, step, 2)


@torch.library.custom_op("custom_test::scaled", mutates_args=())
def scaled(x: torch.Tensor) -> torch.Tensor:
    return FACTOR * x


scaled.register_autograd(lambda ctx, grad: grad * SLOPE)
spmd.register_decomposition(scaled, lambda x: x * FACTOR)


def test_numbers_are_read_at_every_call() -> None:
    """Those that a decomposition or a backward reads are ones that the step reads."""
    global FACTOR, SLOPE

    def step(model, optimizer, x, y):
        return finish(F.cross_entropy(scaled(model.down(model.up(x))), y), optimizer)

    model, optimizer = setup()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    compiled = spmd.compile(step, ranks=1)
    for (x, y), (FACTOR, SLOPE) in zip(batches(), ((2.0, 2.0), (3.0, 2.0), (3.0, 5.0))):
        torch.testing.assert_close(compiled(model, optimizer, x, y).detach(), step(twin, twin_optimizer, x, y).detach())
        torch.testing.assert_close(model.up.weight.detach(), twin.up.weight.detach())


undeclared = op("undeclared", "(Tensor x) -> Tensor", lambda x: x.clone(), lambda x: torch.empty_like(x))
misshaped = op("misshaped", "(Tensor x) -> Tensor", lambda x: x.clone(), lambda x: torch.empty_like(x))
spmd.register_decomposition(misshaped, lambda x: x.sum(0))


@pytest.mark.parametrize("called, error, message", [
    (undeclared, spmd.CompileError, "unknown op 'custom_test::undeclared'; before the capture, register its decomposition .*"
                                    "spmd.register_decomposition\\(\"custom_test::undeclared\", function\\)"),
    (misshaped, spmd.CaptureError, "returns float32\\[6\\]; expected float32\\[8, 6\\], as its register_fake\n")])
def test_refusals(called, error, message) -> None:
    def step(model, optimizer, x, y):
        return finish(F.cross_entropy(model.down(model.up(called(x))), y), optimizer)
    with pytest.raises(error, match=message) as found:
        spmd.compile(step, ranks=1)(*setup(), *batches(1)[0])
    line = step.__code__.co_firstlineno + 1
    assert re.search(rf"test_custom_ops.py(:{line}|\", line {line})\b", str(found.value)), found.value


@pytest.mark.parametrize("name, function, message", [
    ("aten::relu", abs, "is not an operator of torch.library"), ("mylib::nothing", abs, "there is no operator 'mylib::nothing'"),
    ("mylib", abs, "there is no operator 'mylib'"), ("mylib::swish.out", abs, "no overload 'out'; it has default"),
    ("custom_test::undeclared", 3, "is 3; expected a function"), (7, abs, "got 7"),
    ("mylib::swish", abs, "has a decomposition already")])
def test_declarations_that_are_none(name, function, message) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        spmd.register_decomposition(name, function)
