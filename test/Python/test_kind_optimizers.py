"""Optimizers that count in Python: a sample of test/Kinds/optimizers.py, and constructs that packages of optimizers use."""
from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import numpy
import pytest
import torch
import torch.nn.functional as F

import spmd

_FOLDER = Path(__file__).resolve().parents[1] / "Kinds"
sys.path.append(str(_FOLDER))  # the harness
_SPEC = importlib.util.spec_from_file_location("optimizers_kind", _FOLDER / "optimizers.py")
kind = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(kind)


@pytest.mark.sample(84)
@pytest.mark.parametrize("name", kind.names())
def test_kind(name: str) -> None:
    found = kind.case(name)
    assert found.kind == "right", found.text


class Counts(torch.optim.Optimizer):
    """Counts in a param group, in the state and in an attribute; compares counts and learning rates."""

    def __init__(self, params, lr: float = 0.05):
        super().__init__(params, {"lr": lr, "step": 0, "lr_max": 0.0, "weights": 0.0})
        self.calls = 0

    @torch.no_grad()
    def step(self, closure=None):
        self.calls += 1
        for group in self.param_groups:
            group["step"] += 1
            group["lr_max"] = rate = max(group["lr"], group["lr_max"])
            weight = group["step"] ** 0.5 * rate**2
            group["weights"] = group["weights"] + weight
            try:
                share = weight / group["weights"]
            except ZeroDivisionError:
                share = 0.0
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state.update(n=0, product=1.0, m=torch.zeros_like(p), z=p.detach().clone())
                state["n"] += 1
                state["product"] *= 0.9
                correction = math.sqrt(1 - 0.99 ** state["n"]) / (1 - state["product"])
                state["m"].mul_(0.9).add_(p.grad, alpha=0.1)
                if state["n"] > 2:  # a warm-up, of another program
                    p.add_(state["m"], alpha=-rate * correction)
                else:
                    p.add_(p.grad, alpha=-group["lr"] / self.calls)
                state["z"].lerp_(p, share)


def call(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def make(kind=Counts):
    torch.manual_seed(0)
    model = torch.nn.Linear(5, 3, dtype=torch.float64)
    return model, kind(model.parameters())


def batches(steps: int):
    torch.manual_seed(1)
    return [(torch.randn(6, 5, dtype=torch.float64), torch.randint(3, (6,))) for _ in range(steps)]


def numbers(optimizer):
    options = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
    return options, optimizer.calls, [{k: v for k, v in state.items() if not isinstance(v, torch.Tensor)}
                                      for state in optimizer.state.values()]


def test_counts_as_eager() -> None:
    """Numbers, losses and state are eager's after each step, through two programs and a moving learning rate."""
    model, optimizer = make()
    twin, other = make()
    step = spmd.compile(call, ranks=2, threads=2)
    for number, (x, y) in enumerate(batches(4)):
        rate = (0.05, 0.03, 0.04, 0.02)[number]
        for group in (*optimizer.param_groups, *other.param_groups):
            group["lr"] = rate
        assert abs(step(model, optimizer, x, y).item() - call(twin, other, x, y).item()) < 1e-12
        assert str(numbers(optimizer)) == str(numbers(other)), number
    for p, q in zip(model.parameters(), twin.parameters()):
        assert (optimizer.state[p]["z"] - other.state[q]["z"]).abs().max() < 1e-12


def test_takes_another_s_state_dict() -> None:
    """Loading replaces the param groups, from which numbers are read then."""
    (model, optimizer), (twin, other) = make(), make()
    step = spmd.compile(call, ranks=1)
    given = batches(3)
    for number, (x, y) in enumerate(given):
        if number == 2:
            for one in (optimizer, other):
                kept = one.state_dict()
                for group in kept["param_groups"]:
                    group["step"] = 11
                one.load_state_dict(kept)
        assert abs(step(model, optimizer, x, y).item() - call(twin, other, x, y).item()) < 1e-12
        assert str(numbers(optimizer)) == str(numbers(other)), number
    for p, q in zip(model.parameters(), twin.parameters()):
        assert (optimizer.state[p]["z"] - other.state[q]["z"]).abs().max() < 1e-12


class OfGroups(Counts):
    """Counts in param groups only."""
    has_state = False

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            group["step"] += 1
            for p in group["params"]:
                if self.has_state:
                    self.state[p].setdefault("m", torch.zeros_like(p)).add_(p.grad)
                p.sub_(p.grad, alpha=group["lr"] * group["step"] if group["step"] > 2 else group["lr"])


@pytest.mark.parametrize("has_state", [False, True])
def test_goes_on_from_a_checkpoint(tmp_path, monkeypatch, has_state: bool) -> None:
    monkeypatch.setattr(OfGroups, "has_state", has_state)
    step, given, (x, y) = spmd.compile(call, ranks=1), make(OfGroups), batches(1)[0]
    expected = make(OfGroups)
    step(*given, x, y)
    step.save_checkpoint(tmp_path)
    step, given = spmd.compile(call, ranks=1), make(OfGroups)
    step.load_checkpoint(tmp_path)
    if has_state:
        with pytest.raises(RuntimeError, match="so a checkpoint cannot replace its first step"):
            step(*given, x, y)  # traced for the step after a first one, which takes the other branch
        step, given = spmd.compile(call, ranks=1), make(OfGroups)
        step(*given, x, y)
        step.load_checkpoint(tmp_path)
    step(*given, x, y)
    for _ in range(2):
        call(*expected, x, y)
    step(*given, x, y), call(*expected, x, y)
    assert given[1].param_groups[0]["step"] == expected[1].param_groups[0]["step"] == 3
    for p, q in zip(given[0].parameters(), expected[0].parameters()):
        assert (p - q).abs().max() < 1e-12


def test_an_artifact_counts_in_no_python() -> None:
    with pytest.raises(spmd.CaptureError, match="changes the Python number|depends on a tensor's value"):
        spmd.capture(call, *make(), *batches(1)[0])


class OfValues(Counts):
    @torch.no_grad()
    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            self.calls = self.calls + p.grad.abs().sum().item()
            p.sub_(p.grad, alpha=self.param_groups[0]["lr"])


@pytest.mark.parametrize("is_warm", [False, True])
def test_a_number_of_values(is_warm: bool) -> None:
    given = *make(OfValues), *batches(1)[0]
    if is_warm:
        call(*given)
    with pytest.raises(spmd.CaptureError, match="'OfValues.calls'|OfValues stores a tensor in calls"):
        spmd.compile(call, ranks=1)(*given)


def test_a_checkpoint_lacks_numbers_of_the_state(tmp_path) -> None:
    step, (model, optimizer) = spmd.compile(call, ranks=1), make()
    for x, y in batches(1):
        step(model, optimizer, x, y)
    with pytest.raises(RuntimeError, match="checkpoints have Python numbers of param groups only"):
        step.save_checkpoint(tmp_path)


def caught(self, group):
    """An error that the step catches is an error of the capture."""
    group["step"] += 1
    try:
        factor = int(group["step"])
    except Exception:
        factor = 1
    self.update(factor)


def of_type(self, group):
    group["step"] += 1
    self.update(2.0 if type(group["step"]) is int else 1.0)


def of_numpy(self, group):
    self.calls = numpy.float64(self.calls) + 1
    self.update(1 / float(self.calls))


class Table(torch.optim.Optimizer):
    """An optimizer whose step() is a function of a table."""

    def __init__(self, params, function):
        super().__init__(params, {"lr": 0.1, "step": 0, "k": 1, "sum": 0.0})
        self.calls, self._private, self.listed, self.nested, self.function = 0, 0, [0], {"n": 0}, function

    @torch.no_grad()
    def step(self, closure=None):
        self.function(self, self.param_groups[0])

    def update(self, factor) -> None:
        for p in self.param_groups[0]["params"]:
            p.sub_(p.grad, alpha=0.1 * factor)


def sometimes(self, group):
    """A number that some steps change only."""
    group["step"] += 1
    if group["step"] % 3 == 0:
        group["k"] += 1
    self.update(group["k"])


def private(self, group):
    """Two phases by an attribute, and a private one."""
    self.calls += 1
    self._private += 1
    if self.calls > 2:
        group["step"] += 1
    self.update(1 / (group["step"] + self._private))


def types(self, group):
    """The type of a number, and of what is made of it."""
    group["step"] += 1
    step = group["step"]
    self.update(0.1 * (torch.tensor(step).dtype is torch.int64) + 1 / step if isinstance(step, int) else 5.0)


def replaced(self, group):
    """State that is replaced by other tensors, one of which is the gradient."""
    for p in group["params"]:
        state = self.state[p]
        state["n"] = state.get("n", 0) + 1
        if state["n"] > 1:
            p.sub_(state["mean"] + state["before"], alpha=0.1 / state["n"])
        state["mean"] = p.grad + 0.5 * state["mean"] if "mean" in state else p.grad.clone()
        state["before"] = p.grad


def of_rates(self, group):
    """A division by a learning rate of zero is an error, as in eager."""
    weight = group["lr"] ** 2
    group["sum"] += weight
    try:
        share = weight / group["sum"]
    except ZeroDivisionError:
        share = 0.0
    for p in group["params"]:
        p.sub_(torch.lerp(p, p.grad, share), alpha=0.1)


def arguments(self, group):
    """A number where a graph has constants only."""
    group["step"] += 1
    x = group["step"] / 5
    for p in group["params"]:
        lists = [p.grad.clone(), p * 2], [p + 1, p.abs() + 1]
        torch._foreach_lerp_(*lists, weight=x / 4)
        torch._foreach_addcmul_(lists[0], *lists[::-1], value=x)
        torch._foreach_addcdiv_(lists[0], lists[0], lists[1], [x, 0.5])
        torch._foreach_maximum_(lists[0], x - 1)
        torch._foreach_pow_(lists[1], x)
        torch._foreach_sub_(*lists, alpha=x)
        first = torch.where(lists[0][0] > 0, lists[0][0].clamp(-x, x), x) * torch.tensor([x, 1.0]).sum()
        torch.mul(first, x, out=lists[1][0])
        p.sub_(torch.sub(lists[1][0], lists[0][1].clamp_(max=x), alpha=x).lerp_(p, x / 9), alpha=0.1)


def twice(model, optimizer, x, y):
    call(model, optimizer, x, y)
    return call(model, optimizer, x, y)


def accumulates(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    if optimizer.param_groups[0].setdefault("updates", True):
        optimizer.step()
        optimizer.zero_grad()
    return loss


# The step function, the optimizer's, and how many programs five calls make.
TABLE = [(call, sometimes, 2), (call, private, 2), (call, types, 1), (call, replaced, 1), (call, of_rates, 2), (call, arguments, 1),
         (twice, sometimes, 3), (accumulates, private, 3)]


@pytest.mark.sample(8)
@pytest.mark.parametrize("function, optimizer_step, programs", TABLE)
def test_trains_as_eager(function, optimizer_step, programs: int) -> None:
    runs = []
    for step in (function, compiled := spmd.compile(function, ranks=1)):
        model, optimizer = make(lambda parameters: Table(parameters, optimizer_step))
        for number, (x, y) in enumerate(batches(5)):
            optimizer.param_groups[0]["lr"] = 0.1 * number
            if function is accumulates:
                optimizer.param_groups[0]["updates"] = number % 2 == 1
            step(model, optimizer, x, y)
        runs.append((list(model.parameters()), str(numbers(optimizer)), optimizer._private))
    for compiled_parameter, eager in zip(runs[1][0], runs[0][0]):
        torch.testing.assert_close(compiled_parameter, eager)
    assert runs[1][1:] == runs[0][1:] and compiled.compiles == programs


def ranges(self, group):
    group["step"] += 1
    for _ in range(group["step"]):
        self.update(1)


def listed(self, group):
    self.listed[0] += 1
    self.update(self.listed[0])


def nested(self, group):
    self.nested["n"] += 1
    self.update(1 / self.nested["n"])


def swapped(self, group):
    for p in group["params"]:
        state = self.state[p]
        if not state:
            state.update(a=torch.zeros_like(p), b=torch.ones_like(p))
        state["a"], state["b"] = state["b"], state["a"]
        p.sub_(state["a"].add_(p.grad), alpha=0.1)


@pytest.mark.parametrize("optimizer_step, why", [
    (ranges, r"takes the Python number 'Table.param_groups\[0\]\['step'\]', which every call changes, for a constant"),
    (caught, r"which every call changes, for a constant"), (of_type, r"calls type\(\) on a Python number"),
    (of_numpy, r"changes 'Table.calls', a float64"),
    (nested, r"the step of Table changes 'Table.nested\['n'\]'"), (listed, "changes the entries of 'Table.listed'"), (swapped, "the step replaces 'a' of 'weight' by another tensor|"
     "the step replaces 'b' of 'weight' by another tensor")])
def test_refused(optimizer_step, why: str) -> None:
    with pytest.raises(spmd.CaptureError, match=why):
        spmd.compile(call, ranks=1)(*make(lambda parameters: Table(parameters, optimizer_step)), *batches(1)[0])


def test_a_scaler_that_skips_steps_counts_none() -> None:
    scaler = torch.amp.GradScaler("cpu")

    def scaled(model, optimizer, x, y):
        scaler.scale(F.cross_entropy(model(x), y)).backward()
        scaler.step(optimizer)
        scaler.update()
    with pytest.raises(spmd.CaptureError, match=r"changes the Python number param_groups\[...\]\['step'\] in its step\(\), and a GradScaler"):
        spmd.compile(scaled, ranks=1)(*make(lambda parameters: Table(parameters, sometimes)), *batches(1)[0])
