"""What cannot be captured is an error that names the user's line, the op and the hint; what a graph would get silently
wrong is one too."""
from __future__ import annotations

import argparse
import contextlib
import copy
import dataclasses
import logging
import random
import re
import subprocess
import sys
import time
import types
from pathlib import Path

import mlp
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import spmd

HERE = Path(__file__).resolve()


def finish(loss, optimizer):
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def loss_of(model, x, y):
    return F.cross_entropy(model(x), y)


def branch_on_value(model, optimizer, x, y):
    loss = loss_of(model, x, y)
    if loss > 3:  # HERE
        loss = loss * 0.5
    return finish(loss, optimizer)


def to_numpy(model, optimizer, x, y):
    loss = loss_of(model, x, y)
    loss.detach().numpy()  # HERE
    return finish(loss, optimizer)


def formatted(model, optimizer, x, y):
    loss = loss_of(model, x, y)
    print(f"{loss:.3f}")  # HERE
    return finish(loss, optimizer)


def python_arithmetic(model, optimizer, x, y):
    loss = loss_of(model, x, y)
    scale = (1 + loss.item()) ** 0.5  # HERE
    return finish(loss * scale, optimizer)


def as_float(model, optimizer, x, y):
    loss = loss_of(model, x, y)
    scale = float(loss) + 1.0  # HERE
    return finish(loss * scale, optimizer)


@torch.library.custom_op("spmd_test::no_fake", mutates_args=())
def no_fake(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


def unique_labels(model, optimizer, x, y):
    return finish(loss_of(model, x, y) * y.unique().sum(), optimizer)  # HERE


def custom_op(model, optimizer, x, y):
    x = no_fake(x)  # HERE
    return finish(loss_of(model, x, y), optimizer)


def explicit_generator(model, optimizer, x, y):
    noise = torch.randn(x.shape, generator=GENERATOR)  # HERE
    return finish(loss_of(model, x + noise, y), optimizer)


GENERATOR = torch.Generator()
HELD: list[nn.Parameter] = []


def held_parameters(model, optimizer, x, y):
    loss = loss_of(model, x, y)
    loss.backward()
    nn.utils.clip_grad_norm_(HELD, 1.0)  # HERE
    optimizer.step()
    optimizer.zero_grad()
    return loss


def held_parameter_in_forward(model, optimizer, x, y):
    loss = loss_of(model, x, y) + HELD[0].square().sum()  # HERE
    return finish(loss, optimizer)


def autocast_for_cuda(model, optimizer, x, y):
    with torch.autocast("cuda", torch.bfloat16):  # HERE
        loss = loss_of(model, x, y)
    return finish(loss, optimizer)


def changed_rate(model, optimizer, x, y):
    loss = finish(loss_of(model, x, y), optimizer)
    SCHEDULER[0].step()  # HERE
    return loss


SCHEDULER: list[torch.optim.lr_scheduler.LRScheduler] = []


def written_constant(model, optimizer, x, y):
    loss = loss_of(model, x, y)
    COUNTER.add_(1)  # HERE
    return finish(loss, optimizer)


COUNTER = torch.zeros(())

LOG: list = []
CALLS = 0


class Holder:
    parameters: list = []


def appended_item(model, optimizer, x, y):
    loss = finish(loss_of(model, x, y), optimizer)
    LOG.append(loss.item())  # HERE
    return loss


def appended_tensor(model, optimizer, x, y):
    loss = finish(loss_of(model, x, y), optimizer)
    LOG.append(loss.detach())  # HERE
    return loss


def counter(model, optimizer, x, y):
    global CALLS
    CALLS += 1  # HERE
    return finish(loss_of(model, x, y) / CALLS, optimizer)


def held_by_an_object(model, optimizer, x, y):
    loss = loss_of(model, x, y)
    loss.backward()
    for parameter in Holder.parameters:
        parameter.grad.mul_(0.5)  # HERE
    optimizer.step()
    optimizer.zero_grad()
    return loss


def row_numbers(model, optimizer, x, y):
    rows = (y > 2).nonzero()[:, 0]  # HERE
    return finish(loss_of(model, x[rows], y[rows]), optimizer)


def loss_scaling(model, optimizer, x, y):
    scaler = torch.amp.GradScaler("cpu")
    loss = loss_of(model, x, y)
    scaler.scale(loss).backward()  # HERE
    scaler.step(optimizer)
    scaler.update()
    return loss


def nonfinite_norm(model, optimizer, x, y):
    loss = loss_of(model, x, y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)  # HERE
    optimizer.step()
    return loss


class Trainer:
    __slots__ = ("calls",)

    def __init__(self):
        self.calls = 0


TRAINER = Trainer()
RANDOM, NUMPY_RANDOM, BATCHES = random.Random(0), np.random.default_rng(0), iter([1, 2, 3, 4])


def counted_in_an_object(model, optimizer, x, y):
    TRAINER.calls += 1  # HERE
    return finish(loss_of(model, x, y), optimizer)


def counted_by_a_function(model, optimizer, x, y):
    count_call()
    return finish(loss_of(model, x, y), optimizer)


def count_call():
    counted_by_a_function.calls = getattr(counted_by_a_function, "calls", 0) + 1


def appended_number(model, optimizer, x, y):
    LOG.append(len(x))  # HERE
    return finish(loss_of(model, x, y), optimizer)


def drawn_by_python(model, optimizer, x, y):
    return finish(loss_of(model, x, y) * random.random(), optimizer)  # HERE


def drawn_by_numpy(model, optimizer, x, y):
    return finish(loss_of(model, x, y) * float(np.random.rand()), optimizer)  # HERE


def drawn_by_own_generators(model, optimizer, x, y):
    mixed = RANDOM.random()  # HERE
    return finish(loss_of(model, x * mixed * NUMPY_RANDOM.beta(1.0, 1.0), y), optimizer)


def seeded(model, optimizer, x, y):
    torch.manual_seed(1234)  # HERE
    return finish(loss_of(model, x + torch.randn_like(x), y), optimizer)


def taken_from_an_iterator(model, optimizer, x, y):
    return finish(loss_of(model, x, y) * next(BATCHES), optimizer)  # HERE


def written_part_of_a_constant(model, optimizer, x, y):
    loss = loss_of(model, x, y)
    LOSSES[0] = loss.detach()  # HERE
    return finish(loss, optimizer)


LOSSES = torch.zeros(3)


EXPECTED = {
    counted_in_an_object: ("changes 'TRAINER.calls'", "count outside of the step"),
    appended_number: ("changes the number of entries of 'LOG'", "return it from the step"),
    drawn_by_python: ("draws Python's random numbers", "draw with torch"),
    drawn_by_numpy: ("draws numpy's random numbers", "draw with torch"),
    drawn_by_own_generators: ("changes the state of 'RANDOM'", "outside of the step"),
    seeded: ("seeds torch's random numbers", "before the capture"),
    taken_from_an_iterator: ("changes the state of 'BATCHES'", "outside of the step"),
    written_part_of_a_constant: ("neither model, optimizer nor argument", "register_buffer"),
    appended_item: (r"stores a tensor in 'LOG'", "return it from the step"),
    appended_tensor: (r"stores a tensor in 'LOG'", "return it from the step"),
    counter: ("changes 'CALLS'", "count outside of the step"),
    held_by_an_object: ("the gradient of parameter 'fc1.weight'", r"model.parameters\(\)"),
    row_numbers: ("shape depends on data", "mask"),
    loss_scaling: ("the step makes a GradScaler", "make it outside"),
    nonfinite_norm: ("error_if_nonfinite=True decides in Python", "return the norm"),
    branch_on_value: (r"control flow.*\baten\.gt|control flow", "torch.where"),
    to_numpy: ("numpy", "return the tensor from the step"),
    formatted: ("formatted as text", "print what the call gives back"),
    python_arithmetic: ("(?s)value", "tensor"),
    as_float: ("(?s)value", "tensor"),
    unique_labels: ("aten._unique2.default returns .* shape depends on data", "outside of the step.*one_hot"),
    custom_op: ("spmd_test::no_fake", "spmd.register_decomposition"),
    explicit_generator: ("torch.Generator", "default generator"),
    held_parameters: ("the gradient of parameter 'fc1.weight'", r"model.parameters\(\)"),
    held_parameter_in_forward: ("parameter 'fc1.weight'", r"model.parameters\(\)"),
    autocast_for_cuda: ("autocast for 'cuda'", r"torch.autocast\(x.device.type"),
    changed_rate: ("learning rate", "after the training step"),
    written_constant: ("neither model, optimizer nor argument", "register_buffer"),
}


def marked_line(step) -> int:
    first = step.__code__.co_firstlineno
    lines = HERE.read_text().splitlines()
    return next(n for n in range(first, len(lines) + 1) if "# HERE" in lines[n - 1])


@pytest.mark.parametrize("step", EXPECTED, ids=lambda step: step.__name__)
def test_names_line_and_hint(step) -> None:
    what, hint = EXPECTED[step]
    example = mlp.setup()
    model, optimizer = example["model"], example["optimizer"]
    HELD[:] = Holder.parameters[:] = list(model.parameters())
    LOG.clear()
    SCHEDULER[:] = [torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)]
    with pytest.raises(spmd.CaptureError) as error:
        spmd.capture(step, model, optimizer, *example["args"])
    message = str(error.value)
    assert f'File "{HERE}", line {marked_line(step)}, in {step.__name__}' in message
    assert re.search(what, message), message
    assert re.search(f"hint: .*{hint}", message), message
    assert type(next(model.parameters())) is nn.Parameter, "capture leaves the model as it was"
    step_again = spmd.capture(mlp.train_step, model, optimizer, *example["args"])
    assert step_again.step["nodes"], "and itself"


class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(12, 6)
        self.register_buffer("mean", torch.zeros(12))

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        return self.fc(x - self.mean)


def test_replaced_buffer() -> None:
    model = Running()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = mlp.setup()["args"]
    with pytest.raises(spmd.CaptureError, match=r"replaces buffer 'mean'[^\0]*self.mean.copy_"):
        spmd.capture(mlp.train_step, model, optimizer, x, y)


@pytest.mark.parametrize("text", [lambda t: str(t.item()), lambda t: f"{t.item()}", str, lambda t: f"loss {t.item()}!",
                                  lambda t: repr((t > 0).sum().item())])
def test_a_returned_text_with_a_value(text) -> None:
    """Instead of the value it has the name that a trace gives it."""
    def step(model, optimizer, x, y):
        loss = mlp.train_step(model, optimizer, x, y)
        return {"loss": loss, "names": "u0 zuf0", "text": text(loss)}
    model = mlp.setup()["model"]
    x, y = mlp.setup()["args"]
    with pytest.raises(spmd.CaptureError, match=r"a string with a tensor's value in it[^\0]*test_capture_errors.py"
                                                r"[^\0]*hint: return the value"):
        spmd.capture(step, model, torch.optim.SGD(model.parameters(), lr=0.1), x, y)


class Counting(nn.Module):
    """Counts its calls, or keeps its output."""

    def __init__(self, keeps: bool):
        super().__init__()
        self.fc, self.keeps, self.calls, self.last = nn.Linear(12, 6), keeps, 0, None

    def forward(self, x):
        y = self.fc(x)
        if self.keeps:
            self.last = y.detach()
        else:
            self.calls += 1
        return y


@pytest.mark.parametrize("keeps, message", [(False, "changes 'calls' from 0 to 1[^\0]*register_buffer"),
                                            (True, "stores a tensor in 'last'[^\0]*return it from the step")])
def test_attributes_of_modules(keeps: bool, message: str) -> None:
    model = Counting(keeps)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(spmd.CaptureError, match=message):
        spmd.capture(mlp.train_step, model, optimizer, *mlp.setup()["args"])
    assert model.calls == 0 and model.last is None


def test_functions_that_a_step_calls() -> None:
    example = mlp.setup()
    with pytest.raises(spmd.CaptureError, match="changes 'counted_by_a_function.calls'"):
        spmd.capture(counted_by_a_function, example["model"], example["optimizer"], *example["args"])


def test_what_hooks_keep() -> None:
    example, norms = mlp.setup(), []
    example["model"].fc1.weight.register_hook(lambda gradient: norms.append(gradient.norm()))
    with pytest.raises(spmd.CaptureError, match=r"stores a tensor in 'norms'"):
        spmd.capture(mlp.train_step, example["model"], example["optimizer"], *example["args"])


@pytest.mark.parametrize("what, do", [("prints", lambda: print("one step")),
                                      ("logs", lambda: logging.getLogger("spmd.test").warning("one step")),
                                      ("reads a clock", lambda: time.perf_counter())])
def test_output_and_clocks_are_warnings_with_their_line(what: str, do) -> None:
    def step(model, optimizer, x, y):
        loss = finish(loss_of(model, x, y), optimizer)
        do()  # HERE
        return loss

    example = mlp.setup()
    with pytest.warns(UserWarning, match=f"the step {what}[^\0]*File \"{re.escape(str(HERE))}\", line ") as record:
        spmd.capture(step, example["model"], example["optimizer"], *example["args"])
    assert len([w for w in record if "compiled step does so only once" in str(w.message)]) == 1


class Counts(torch.optim.Optimizer):
    """Adam's bias correction from a count that Python keeps in one of several places."""

    def __init__(self, params, where: str):
        super().__init__(params, {"lr": 0.1, "count": 0})
        self.where, self.count, self.history = where, 0, []

    @torch.no_grad()
    def step(self, closure=None):
        self.count += self.where == "attribute"
        self.history += [0] * (self.where == "history")
        if self.where == "shared":
            self.state.setdefault("shared", {"count": [0]})["count"][0] += 1
        for group in self.param_groups:
            group["count"] += self.where == "group"
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["average"], state["count"] = torch.zeros_like(p), 0
                state["count"] += self.where == "state"
                state["average"].mul_(0.9).add_(p.grad, alpha=0.1)
                number = {"attribute": self.count, "group": group["count"], "state": state["count"], "nowhere": 1,
                          "history": len(self.history)}.get(self.where) or self.state["shared"]["count"][0]
                p.sub_(state["average"] / (1 - 0.9**number), alpha=group["lr"])


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize("where, message", [
    ("state", r"'Counts\.state\['weight'\]\['count'\]' from 1 to 2"),
    ("group", r"'Counts\.param_groups\[0\]\['count'\]' from 1 to 2"),
    ("attribute", r"'Counts\.count' from 1 to 2"),
    ("history", r"the number of entries of 'Counts\.history' from 1 to 2"),
    ("shared", ""), ("nowhere", "")])
def test_optimizers_that_count_in_python(where: str, message: str, warm: bool) -> None:
    model = torch.nn.Linear(4, 2)
    optimizer = Counts(model.parameters(), where)

    def step(model, optimizer, x):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    x = torch.ones(3, 4)
    if warm:
        step(model, optimizer, x)
    if where == "nowhere":
        spmd.capture(step, model, optimizer, x)
        return
    before = copy.deepcopy((optimizer.state_dict(), optimizer.count, optimizer.history))
    expected = r"Counts stores state\['shared'\], which belongs to no parameter[^\0]*hint: store it in the state of each parameter" \
        if where == "shared" else rf"{message}[^\0]*in step\n *p\.sub_\([^\0]*hint: store it as a tensor"
    with pytest.raises(spmd.CaptureError, match=expected):
        spmd.capture(step, model, optimizer, x)
    after = optimizer.state_dict(), optimizer.count, optimizer.history
    assert str(after) == str(before)  # what the step did to it in the trace is undone


def test_two_optimizers_of_one_parameter() -> None:
    example = mlp.setup()
    model, optimizer = example["model"], example["optimizer"]
    other = torch.optim.SGD(model.fc1.parameters(), lr=0.1)
    with pytest.raises(spmd.CaptureError, match=r"two optimizers of the step have one parameter[^\0]*hint: "):
        spmd.capture(lambda m, o, p, x, y: None, model, optimizer, other, *example["args"])


def test_what_closures_hold_is_part_of_a_program() -> None:
    """A graph holds their numbers as constants: another value is another graph. Tensors are read at every call."""
    from spmd.capture.world.captured_constants import captured_constants, changed
    example = mlp.setup()
    scale, weights = 1.0, torch.ones(6)

    def step(model, optimizer, x, y):
        return finish(F.cross_entropy(model(x), y, weight=weights) * scale, optimizer)

    package = spmd.capture(step, example["model"], example["optimizer"], *example["args"])
    held, reads = package.held, package.reads
    baked = captured_constants(step, example["model"], held)
    assert reads.difference() is None and list(held.tensors) == ["weights"]
    mlp.train_step(example["model"], example["optimizer"], *example["args"])
    weights.mul_(2)
    assert reads.difference() is None and changed(baked) is None and held.now().is_same(held)
    weights = torch.zeros(6)
    assert changed(baked) is None and held.now().tensors["weights"][1] is weights, "another tensor of the same form"
    weights = torch.zeros(6, dtype=torch.float64)
    assert held.now().key([]) != held.key([])
    scale = 2.0
    assert str(reads.difference()) == "'scale' is 2.0, it was 1.0"


def test_globals_named_like_attributes_are_no_part_of_a_program() -> None:
    """for step in range(n): loss = train_step(...), in a step that calls optimizer.step() and reads out.loss."""
    example = mlp.setup()
    values: dict = {"F": F, "step": 1, "backward": torch.ones(()), "sum": 2.0, "SCALE": 1.0, "__name__": "users"}
    exec("def train_step(model, optimizer, x, y):\n"
         "    loss = F.cross_entropy(model(x), y)\n    loss.backward()\n    optimizer.step()\n    return loss.sum() * "
         "[SCALE for _ in range(1)][0]\n", values)
    reads = spmd.capture(values["train_step"], example["model"], example["optimizer"], *example["args"]).reads
    values.update(step=2, backward=torch.zeros(()), sum=3.0)
    assert reads.difference() is None
    values["SCALE"] = 2.0
    assert str(reads.difference()) == "'SCALE' is 2.0, it was 1.0", "what a function within the step reads"


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.drop, self.options = nn.Linear(12, 6), nn.Dropout(0.0), types.SimpleNamespace(temperature=1.0)
        self.steps_seen = 0

    def forward(self, x):
        return self._scaled(self.drop(self.fc(x)))

    def _scaled(self, x):
        return x / self.options.temperature


class Weighted:
    """A step as a method, with what it reads in its object."""

    def __init__(self):
        self.weights, self.names, self.step_number, self.loss = {"main": 1.0}, [1, 2], 0, None

    def step(self, model, optimizer, x, y):
        loss = loss_of(model, x, y) * self.weights["main"] * sum(self.names) * scale()
        self.step_of(optimizer)
        return loss

    def step_of(self, optimizer):
        optimizer.step()


SCALE = {"scale": 1.0}
loss = step = 1.0


def scale():
    return SCALE["scale"]


def test_what_objects_and_modules_hold_is_part_of_a_program() -> None:
    """Each number that the code reads, and none that it does not, whatever it is called."""
    model, owner = Scaled(), Weighted()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    reads = spmd.capture(owner.step, model, optimizer, torch.ones(4, 12), torch.zeros(4, dtype=torch.int64)).reads
    assert reads.difference() is None
    owner.step_number, owner.loss, model.steps_seen = 7, torch.ones(()), 7
    assert reads.difference() is None, "not read by the step"
    model.eval()
    assert reads.difference() is None, "the modes are in the key"
    model.train()

    def changes(set_to, path: str, target, name: str):
        places = target if isinstance(target, (dict, list)) else vars(target)
        before, places[name] = places[name], set_to
        assert reads.difference().path == path
        places[name] = before
        assert reads.difference() is None

    changes(2.0, "self.weights['main']", owner.weights, "main")
    changes(3, "self.names", owner.names, 0)
    changes(2.0, "SCALE['scale']", SCALE, "scale")
    changes(0.5, "drop.p", model.drop, "p")
    changes(0.5, "model.options.temperature", model.options, "temperature")


class Complex(nn.Linear):
    def __init__(self):
        super().__init__(12, 6)
        self.phase = nn.Parameter(torch.zeros(3, dtype=torch.complex64))


@dataclasses.dataclass
class Weights:
    """An argument of a step."""

    alpha: float = 1.0

    def of(self, loss):
        return loss * self.alpha


class Slotted:
    __slots__ = ("alpha",)

    def __init__(self):
        self.alpha = 1.0


def scaled(loss, weights):
    return loss * weights.alpha


class Classy(nn.Module):
    """Of which a number is the class's own."""

    gain = 1.0

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, x):
        return self.linear(x) * self.gain


def set_alpha(model, argument, value: float) -> None:
    argument.alpha = value


@pytest.mark.parametrize("argument, use, change", [
    (Weights, lambda loss, a: loss * a.alpha, set_alpha),
    (Weights, lambda loss, a: a.of(loss), set_alpha),
    (Weights, scaled, set_alpha),
    (Slotted, scaled, set_alpha),
    (lambda: argparse.Namespace(alpha=1.0), lambda loss, a: loss * a.alpha, set_alpha),
    (lambda: argparse.Namespace(alpha=1.0), scaled, set_alpha),
    (lambda: nn.HuberLoss(delta=1.0), lambda loss, a: a(loss, loss * 0), lambda m, a, value: setattr(a, "delta", value)),
    (lambda: {"first"}, lambda loss, a: loss * len(a), lambda m, a, value: a.add("second")),
    (lambda: None, lambda loss, a: loss, lambda m, a, value: setattr(Classy, "gain", value)),
    (lambda: None, lambda loss, a: loss, lambda m, a, value: setattr(m, "forward", lambda x: m.linear(x) * value)),
], ids=["attribute", "method", "handed on", "slots", "namespace", "namespace handed on", "criterion", "set", "class",
        "forward"])
def test_what_arguments_and_classes_hold_is_part_of_a_program(argument, use, change, monkeypatch) -> None:
    monkeypatch.setattr(Classy, "gain", 1.0)
    x = torch.ones(4, 4)

    def step(model, optimizer, x, argument):
        return finish(use(model(x).square().mean(), argument), optimizer)

    def setup():
        torch.manual_seed(0)
        model = Classy()
        return model, torch.optim.SGD(model.parameters(), lr=0.1), argument()

    (model, optimizer, given), (expected, eager, own) = setup(), setup()
    compiled = spmd.compile(step, ranks=1)
    for number in range(4):
        if number == 2:
            change(model, given, 0.5), change(expected, own, 0.5)
        loss = compiled(model, optimizer, x, given)
        assert abs(loss.item() - step(expected, eager, x, own).item()) < 1e-6
    assert compiled.compiles == 2


class Scale:
    def __init__(self):
        self.alpha = 1.0

    def __call__(self, loss):
        return loss * self.alpha


class Reader:
    """A trainer that reads its configuration in every way there is, and counts steps that nothing reads."""

    def __init__(self):
        torch.manual_seed(0)
        self.model = nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.names, self.steps = ["a"], 0
        self.weights, self.nested, self.lists = {"a": 1.0, "b": 1.0}, {"a": {"b": 1.0}}, [[1.0], [1.0]]
        self.options, self.plain, self.scale = argparse.Namespace(alpha=1.0), Weights(), Scale()

    def loss(self, x):
        return self.model(x).square().mean()

    def by_get(self, x):
        return self.loss(x) * self.weights.get("a", 1.0) * self.weights.get("b")

    def by_a_computed_key(self, x):
        return sum(self.loss(x) * self.weights[name] for name in self.names)

    def by_items(self, x):
        return sum(self.loss(x) * weight for _, weight in self.weights.items())

    def by_a_local(self, x):
        inner, plain = self.nested["a"], self.plain
        return self.loss(x) * inner["b"] * plain.alpha

    def by_lists_in_lists(self, x):
        return sum(self.loss(x) * weight for weight, in self.lists)

    def by_a_computed_name(self, x):
        return self.loss(x) * getattr(self.plain, "al" + "pha") * vars(self.options)["alpha"]

    def by_a_function(self, x):
        return scaled(scaled(self.loss(x), self.options), self.plain)

    def by_a_call(self, x):
        return self.scale(self.loss(x))

    def change(self):
        self.weights["a"] = self.nested["a"]["b"] = self.lists[0][0] = 0.5
        self.options.alpha = self.plain.alpha = self.scale.alpha = 0.5


@pytest.mark.parametrize("name", [name for name in vars(Reader) if name.startswith("by_")])
def test_whatever_a_step_reads_of_a_configuration(name: str) -> None:
    def step_of(owner):
        return lambda x: finish(getattr(owner, name)(x), owner.optimizer)

    class Ours(Reader):
        def step(self, x):
            return finish(self.named(x), self.optimizer)

        named = vars(Reader)[name]

    ours, eager = Ours(), Reader()
    compiled, step = spmd.compile(ours.step, ranks=1), step_of(eager)
    for number in range(4):
        if number == 2:
            ours.change(), eager.change()
        assert abs(compiled(torch.ones(4, 4)).item() - step(torch.ones(4, 4)).item()) < 1e-6
        ours.steps += 1
    assert compiled.compiles == 2


class Meter:
    def __init__(self):
        self.count = 0


@pytest.mark.parametrize("argument, change, message", [
    (Meter, lambda a: setattr(a, "count", a.count + 1), "the step changes 'notes.count' from 0 to 1"),
    (list, lambda a: a.append(1), "the step changes its argument 'notes'"),
    (lambda: {"seen": 0}, lambda a: a.update(seen=1), "the step changes its argument 'notes'"),
    (lambda: {"y": torch.ones(4)}, lambda a: a.pop("y"), ""),
], ids=["object", "list", "dict", "batch"])
def test_what_a_step_changes_in_its_arguments(argument, change, message: str) -> None:
    def step(model, optimizer, x, notes):
        change(notes)
        return finish(model(x).square().mean(), optimizer)

    model = nn.Linear(4, 2)
    with pytest.raises(spmd.CaptureError, match=message) if message else contextlib.nullcontext():
        spmd.capture(step, model, torch.optim.SGD(model.parameters(), lr=0.1), torch.ones(4, 4), argument())


def test_torch_logs_nothing_of_its_own(caplog) -> None:
    example = mlp.setup()
    x, y = example["args"]
    with pytest.raises(spmd.CaptureError, match="same reduction dim|must match|cannot be multiplied"):
        spmd.capture(mlp.train_step, example["model"], example["optimizer"], x[:, :5], y)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("build, message", [
    (Complex, r"parameter 'phase' has dtype torch.complex64[^\0]*hint: "),
    (lambda: nn.Sequential(torch.jit.trace(nn.Linear(12, 6), torch.zeros(8, 12))),
     r"module '0' is TorchScript[^\0]*hint: ")],
    ids=["complex parameter", "TorchScript"])
def test_models_that_have_no_program(build, message: str) -> None:
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(spmd.CaptureError, match=message):
        spmd.capture(mlp.train_step, model, optimizer, *mlp.setup()["args"])


def test_arguments() -> None:
    example = mlp.setup()
    step, model, optimizer, (x, y) = (example[k] for k in ("train_step", "model", "optimizer", "args"))
    with pytest.raises(spmd.CaptureError, match=r"gets no torch.nn.Module as an argument that its optimizer trains[^\0]*hint: "):
        spmd.capture(lambda opt, x: None, optimizer, x)
    with pytest.raises(spmd.CaptureError, match="do not fit"):
        spmd.capture(step, model, optimizer, x)
    with pytest.raises(spmd.CaptureError, match="'y' is a ndarray"):
        spmd.capture(step, model, optimizer, x, y.numpy())
    with pytest.raises(spmd.CaptureError, match="argument 'p.0' is parameter 'fc1.weight' of the model.*\n.*hint: "):
        spmd.capture(lambda model, optimizer, x, y, p: step(model, optimizer, x, y), model, optimizer, x, y,
                     list(model.parameters()))
    with pytest.raises(spmd.CaptureError, match="batch_dims names 'z'; expected one of x, y"):
        spmd.capture(step, model, optimizer, x, y, batch_dims={"z": 0})
    with pytest.raises(spmd.CaptureError, match=r"batch_dims\['y'\] is 1"):
        spmd.capture(step, model, optimizer, x, y, batch_dims={"y": 1})
    with pytest.raises(spmd.CaptureError, match="no parameter of the model"):
        spmd.capture(step, model, torch.optim.SGD([nn.Parameter(torch.zeros(3))], lr=0.1), x, y)
    with pytest.raises(spmd.CaptureError, match="reference batch 1: 'x' is .*the captured call has"):
        spmd.capture(step, model, optimizer, x, y, reference=[(x, y), (x[:4], y)])
    with pytest.raises(spmd.CaptureError, match="device is 'tpu'"):
        spmd.capture(step, model, optimizer, x, y, device="tpu")


def test_lines_are_the_users_where_the_package_is_imported_over_a_relative_path(tmp_path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys; sys.path.insert(0, 'test/../python-bindings'); import torch, spmd\n"
                      "def step(model, optimizer, x):\n"
                      "    return float(model(x).sum())\n"
                      "model = torch.nn.Linear(2, 2)\n"
                      "spmd.capture(step, model, torch.optim.SGD(model.parameters(), lr=0.1), torch.ones(1, 2))\n")
    done = subprocess.run([sys.executable, str(script)], cwd=Path(__file__).parents[2], text=True, capture_output=True)
    error = done.stderr[done.stderr.rindex("CaptureError"):]
    assert f'File "{script}", line 3, in step' in error and "spmd/capture" not in error
