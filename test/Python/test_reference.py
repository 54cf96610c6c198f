"""The recorded reference trains the user's own model: it is eager's, whatever the model is, and leaves no trace."""
from __future__ import annotations

import copy
import random
import subprocess

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

import spmd
from spmd.tools import find_tool


class Deferred(nn.Module):
    """Calls its layers through a lambda and a bound method: copy.deepcopy leaves both with the original's."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(5, 8, bias=False), nn.BatchNorm1d(8), nn.Linear(8, 3)
        self.blocks = [lambda x: torch.relu(self.norm(self.first(x))), self.last]

    def last(self, x):
        return self.second(x)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def train_step(model, optimizer, x, y):
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def setup():
    torch.manual_seed(0)
    model = Deferred()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    batches = [(torch.randn(6, 5), torch.randn(6, 3)) for _ in range(4)]
    return model, optimizer, batches


def everything(model, optimizer):
    return copy.deepcopy([model.state_dict(), optimizer.state_dict(), [p.grad for p in model.parameters()],
                          torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()])


def versions(model, optimizer):
    return [t._version for t in (*model.state_dict(keep_vars=True).values(),
                                 *(t for state in optimizer.state.values() for t in state.values()))]


def same(a, b) -> None:
    torch.testing.assert_close(a[:4], b[:4], rtol=0, atol=0)
    assert a[4:] == b[4:]


@pytest.mark.parametrize("warm", [False, True])
def test_a_model_that_no_copy_is_of_is_trained_as_it_is_and_put_back(warm: bool) -> None:
    model, optimizer, batches = setup()
    if warm:  # state, gradients and a graph that is still to be differentiated
        train_step(model, optimizer, *batches[3])
        model(batches[0][0]).sum().backward()
    before, counts = everything(model, optimizer), versions(model, optimizer)
    kept = model(batches[0][0]).square().sum()
    before, counts = everything(model, optimizer), versions(model, optimizer)
    gradients = [p.grad for p in model.parameters()]
    package = spmd.capture(train_step, model, optimizer, *batches[0], reference=batches,
                           reference_schedule=lambda step: 1 / (1 + step))
    same(everything(model, optimizer), before)
    assert versions(model, optimizer) == counts
    assert all(p.grad is g for p, g in zip(model.parameters(), gradients))
    kept.backward()  # nothing that it saved counts as written
    model.zero_grad()
    losses = []
    for number, batch in enumerate(batches):
        optimizer.param_groups[0]["lr"] = 0.05 / (1 + number)
        losses.append(train_step(model, optimizer, *batch).item())
    reference = package.reference
    torch.testing.assert_close(reference["loss"].tolist(), losses, rtol=0, atol=0)
    for name, tensor in model.state_dict().items():
        if not warm or "norm" not in name:  # the graph that was kept has counted a batch
            torch.testing.assert_close(reference[f"final/{name}"], tensor, rtol=0, atol=0)
    for name, parameter in model.named_parameters():
        assert torch.equal(reference[f"final/optimizer/exp_avg/{name}"], optimizer.state[parameter]["exp_avg"])


def test_an_exception_puts_everything_back() -> None:
    model, optimizer, batches = setup()
    optimizer.param_groups[0]["lr"] = 0.05
    before, calls = everything(model, optimizer), []

    class Stop(Exception):
        pass

    def stop(module, inputs):
        if not torch.compiler.is_compiling() and not isinstance(inputs[0], torch._subclasses.FakeTensor):
            if model.norm.num_batches_tracked == 2:
                raise Stop

    model.register_forward_pre_hook(stop)
    with pytest.raises(Stop):
        spmd.capture(train_step, model, optimizer, *batches[0], reference=batches)
    same(everything(model, optimizer), before)
    assert not calls


def test_a_reference_of_several_ranks_refuses_what_is_no_copy() -> None:
    model, optimizer, batches = setup()
    before = everything(model, optimizer)
    with pytest.raises(spmd.CaptureError, match="(?s)a copy reads 'first.weight' of the original.*hint: .*lambda"):
        spmd.capture(train_step, model, optimizer, *(t[:3] for t in batches[0]), reference=batches, reference_ranks=2)
    same(everything(model, optimizer), before)


def test_modules_that_the_step_reaches_are_put_back_too() -> None:
    torch.manual_seed(1)
    model, teacher, head = nn.Linear(5, 3), Deferred(), nn.Linear(3, 3)
    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1, momentum=0.9)
    batches = [(torch.randn(6, 5), torch.randn(6, 3)) for _ in range(3)]

    def step(model, optimizer, x, y):
        loss = F.mse_loss(head(model(x)), teacher(x).detach() + y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    before = [everything(m, optimizer) for m in (model, teacher, head)]
    package = spmd.capture(step, model, optimizer, *batches[0], reference=batches)
    for m, was in zip((model, teacher, head), before):
        same(everything(m, optimizer), was)
    with pytest.raises(spmd.CaptureError, match="a copy writes 'teacher.norm.running_mean' of the original|'head"):
        spmd.capture(step, model, optimizer, *(t[:3] for t in batches[0]), reference=batches, reference_ranks=2)
    for m, was in zip((model, teacher, head), before):
        same(everything(m, optimizer), was)
    for batch in batches:
        step(model, optimizer, *batch)
    for prefix, module in (("", model), ("teacher.", teacher), ("head.", head)):
        for name, tensor in module.state_dict().items():
            torch.testing.assert_close(package.reference[f"final/{prefix}{name}"], tensor, rtol=0, atol=0)


def test_a_reference_whose_ranks_drift_apart_is_refused() -> None:
    """Eager averages what backward() leaves in p.grad; a gradient that is set by hand stays each rank's own."""
    def step(model, optimizer, x, y):
        loss = F.mse_loss(model(x), y)
        parameters = list(model.parameters())
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters)):
            parameter.grad = gradient
        optimizer.step()
        return loss

    model = nn.Linear(5, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    batches = [(torch.randn(6, 5), torch.randn(6, 3))]
    with pytest.raises(spmd.CaptureError, match="another 'weight' on each after a step.*\n  hint: take gradients from"):
        spmd.capture(step, model, optimizer, *(t[:3] for t in batches[0]), reference=batches, reference_ranks=2)


def test_a_check_allows_what_eager_moves_by_itself(tmp_path) -> None:
    """A bias before batch norm has no gradient but rounding, which AdamW makes updates of."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    batches = [(torch.randn(6, 5), torch.randn(6, 3)) for _ in range(4)]

    def check(name: str, movement: bool, wrong: bool = False) -> tuple[int, str]:
        package = spmd.capture(train_step, model, optimizer, *batches[0], reference=batches,
                               reference_movement=movement)
        package.step["zero_gradient"] = []  # which has found the bias
        package.save(step := tmp_path / f"{name}.step")
        if wrong:
            weights = load_file(step / "weights.safetensors")
            weights["3.weight"] *= 1.01
            save_file(weights, step / "weights.safetensors")
        subprocess.run([find_tool("spmd-compile"), step, "-o", tmp_path / f"{name}.spmd", "--ranks=2",
                        "--quiet"], check=True)
        done = subprocess.run([find_tool("spmd-run"), tmp_path / f"{name}.spmd", "--check"], text=True,
                              capture_output=True)
        return done.returncode, done.stdout

    code, said = check("plain", movement=False)
    assert code != 0 and "0.bias" in said and "reference_movement=True" in said
    code, said = check("moved", movement=True)
    assert code == 0 and "eager moves" in said, said
    code, said = check("wrong", movement=True, wrong=True)
    assert code != 0 and "eager moves" in said and "reference_movement=True" not in said


class Attends(nn.Module):
    """The bias of its keys is added to all scores of a query alike; that of `wide` is used by halves of the loss."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.wide = (nn.Linear(8, 8) for _ in range(4))
        self.first, self.second = nn.BatchNorm1d(8), nn.Linear(8, 3)

    def forward(self, x):
        weights = (self.query(x) @ self.key(x).transpose(1, 2)).softmax(-1)
        return self.second((weights @ self.value(x)).mean(1)) + self.second(self.first(self.wide(x[:, 0])))


def accumulated(model, optimizer, x, y):
    total = 0
    for a, b in zip(x.chunk(2), y.chunk(2)):
        loss = F.mse_loss(model(a), b) / 2
        loss.backward()
        total = total + loss.detach()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return total


@pytest.mark.parametrize("ranks", [None, 2])
@pytest.mark.parametrize("step", [train_step, accumulated], ids=["plain", "accumulated"])
def test_parameters_without_a_gradient_but_for_rounding_are_found(step, ranks, tmp_path) -> None:
    """A key's bias, and a bias before batch norm. Adam makes noise of them, which no check may compare."""
    torch.manual_seed(0)
    model = Attends()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    batches = [(torch.randn(16, 5, 8), torch.randn(16, 3)) for _ in range(4)]
    per_rank = [tuple(t[:16 // (ranks or 1)] for t in batch) for batch in batches]
    before = everything(model, optimizer)
    package = spmd.capture(step, model, optimizer, *per_rank[0], reference=batches, reference_ranks=ranks)
    assert package.step["zero_gradient"] == ["key.bias", "wide.bias"]
    same(everything(model, optimizer), before)
    package.save(tmp_path / "a.step")
    subprocess.run([find_tool("spmd-compile"), tmp_path / "a.step", "-o", tmp_path / "a.spmd", "--ranks=2",
                    *(["--view=local"] if ranks else [])], check=True)
    check = [find_tool("spmd-run"), tmp_path / "a.spmd", "--check", "--quiet"]
    assert subprocess.run(check, capture_output=True, text=True).returncode == 0

    package.step["zero_gradient"] = []
    package.save(tmp_path / "b.step")
    subprocess.run([find_tool("spmd-compile"), tmp_path / "b.step", "-o", tmp_path / "b.spmd", "--ranks=2",
                    *(["--view=local"] if ranks else [])], check=True)
    failed = subprocess.run([*check[:1], tmp_path / "b.spmd", *check[2:]], capture_output=True, text=True)
    assert failed.returncode != 0 and "bias" in failed.stdout + failed.stderr, "they do move"
