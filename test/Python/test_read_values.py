"""Values that a step reads in whatever way Python has, changed between its calls: each call computes with what it finds."""
from __future__ import annotations

import collections
import contextlib
import functools
import os
import types
import warnings
from os import environ, getenv

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode

import spmd

BATCH = torch.linspace(-1, 1, 24).reshape(6, 4), torch.linspace(1, -1, 12).reshape(6, 2)


class Config:
    """Attributes and entries that are computed, as configurations of libraries do."""

    def __init__(self, **entries):
        self.__dict__["_content"] = entries

    def __getattr__(self, name):
        if name.startswith("__") or name not in self.__dict__["_content"]:
            raise AttributeError(name)
        value = self.__dict__["_content"][name]
        return Config(**value) if isinstance(value, dict) else value

    def __getitem__(self, name):
        return getattr(self, name)

    def get(self, name):
        return self._content[name]


class Computed:
    def __init__(self, function):
        self.function = function

    def __get__(self, owner, cls):
        return self.function(owner)


class Base:
    of_base = 1.0


class Holder(Base):
    """Numbers in all places of an object and its class."""

    of_class = 1.0

    def __init__(self):
        self.value = 1.0

    def read(self):
        return self.value

    @property
    def prop(self):
        return self.value

    @Computed
    def computed(self):
        return self.value

    @classmethod
    def of_method(cls):
        return cls.of_class

    @staticmethod
    def of_function():
        return STATE["value"]


class Reversed(torch.autograd.Function):
    """A gradient times a number of the class."""

    scale = 1.0

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * Reversed.scale


class Made:
    """An object that the step makes."""

    gain = 1.0

    def __init__(self, loss):
        self.loss = loss

    def value(self):
        return self.loss * self.gain * STATE["value"]


class Net(nn.Linear):
    of_class = 1.0

    def __init__(self):
        super().__init__(4, 2)
        self.value, self.array, self.queue = 1.0, np.ones(1, dtype=np.float32), collections.deque([1.0])

    @property
    def prop(self):
        return self.value

    @classmethod
    def of_method(cls):
        return cls.of_class

    def scaled(self, loss):
        return loss * self.value


CONFIG, HOLDER, STATE = Config(train={"alpha": 1.0}, alpha=1.0), Holder(), {"value": 1.0, "text": "1"}
ARRAY, NUMBERS = np.ones(1, dtype=np.float32), {"array": np.float32(1)}
QUEUE, USER, CHAIN = collections.deque([1.0]), collections.UserDict(value=1.0), collections.ChainMap({"value": 1.0})
PROXY = types.MappingProxyType(STATE)


def alpha_of(config):
    return config.alpha


BOUND, METHOD = functools.partial(alpha_of, CONFIG), HOLDER.read


def set_entry(target, key):
    return lambda value: target.__setitem__(key, value)


def set_attribute(target, name):
    return lambda value: setattr(target, name, value)


def set_train(value):
    CONFIG._content["train"]["alpha"] = value


ENVIRONMENT = lambda value: os.environ.__setitem__("SPMD_TEST_ALPHA", str(value))  # noqa: E731
TEXT = lambda value: STATE.__setitem__("text", str(value))  # noqa: E731
READS = {  # what a step multiplies its loss by, and what sets it
    "environ": (lambda: float(os.environ["SPMD_TEST_ALPHA"]), ENVIRONMENT),
    "environ.get": (lambda: float(os.environ.get("SPMD_TEST_ALPHA", "1")), ENVIRONMENT),
    "os.getenv": (lambda: float(os.getenv("SPMD_TEST_ALPHA", "1")), ENVIRONMENT),
    "from os": (lambda: float(environ["SPMD_TEST_ALPHA"]), ENVIRONMENT),
    "getenv": (lambda: float(getenv("SPMD_TEST_ALPHA", "1")), ENVIRONMENT),
    "get with a default": (lambda: float(STATE.get("text", "1")), TEXT),
    "array entry": (lambda: float(ARRAY[0]), set_entry(ARRAY, 0)),
    "array method": (lambda: float(ARRAY.sum()), set_entry(ARRAY, 0)),
    "array of a dict": (lambda: float(NUMBERS["array"]), lambda value: NUMBERS.update(array=np.float32(value))),
    "deque": (lambda: QUEUE[0], set_entry(QUEUE, 0)),
    "whole deque": (lambda: max(QUEUE), set_entry(QUEUE, 0)),
    "UserDict": (lambda: USER["value"], set_entry(USER, "value")),
    "ChainMap": (lambda: sum(CHAIN.values()), set_entry(CHAIN, "value")),
    "proxy": (lambda: PROXY["value"], set_entry(STATE, "value")),
    "__getattr__": (lambda: CONFIG.train.alpha, set_train),
    "__getitem__": (lambda: CONFIG["train"]["alpha"], set_train),
    "own get": (lambda: CONFIG.get("alpha"), lambda value: CONFIG._content.update(alpha=value)),
    "handed on": (lambda: alpha_of(CONFIG.train), set_train),
    "partial": (lambda: BOUND(), lambda value: CONFIG._content.update(alpha=value)),
    "bound method": (lambda: METHOD(), set_attribute(HOLDER, "value")),
    "property": (lambda: HOLDER.prop, set_attribute(HOLDER, "value")),
    "descriptor": (lambda: HOLDER.computed, set_attribute(HOLDER, "value")),
    "class method": (lambda: HOLDER.of_method(), set_attribute(Holder, "of_class")),
    "class method of the class": (lambda: Holder.of_method(), set_attribute(Holder, "of_class")),
    "static method": (lambda: Holder.of_function(), set_entry(STATE, "value")),
    "base of a class": (lambda: Holder.of_base, set_attribute(Base, "of_base")),
    "base of its class": (lambda: HOLDER.of_base, set_attribute(Base, "of_base")),
}


def compare(step, set_to) -> None:
    """Four calls, between the first three of which the value changes: losses are eager's, and what is equal is not
    compiled again."""
    losses = []
    for compiled in (False, True):
        set_to(1.0)
        torch.manual_seed(0)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        call = spmd.compile(step) if compiled else step
        losses.append([])
        for value in (1.0, 2.0, 3.0, 3.0):
            set_to(value)
            set_in(model, value)
            losses[-1].append(call(model, optimizer, *BATCH).item())
    set_to(1.0)
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)
    assert call.compiles == 3


def set_in(model: Net, value: float) -> None:
    model.value, model.array[0], model.queue[0] = value, value, value


def finish(loss, optimizer):
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


@pytest.mark.parametrize("read, set_to", READS.values(), ids=READS)
def test_of_objects(read, set_to) -> None:
    compare(lambda model, optimizer, x, y: finish(F.mse_loss(model(x), y) * read(), optimizer), set_to)


def test_looking_makes_no_entry() -> None:
    """What a step may read, and does not, is looked at without a trace."""
    counts = collections.defaultdict(float)
    flag = {"reads": False}

    def step(model, optimizer, x, y):
        loss = F.mse_loss(model(x), y)
        return finish(loss * counts["loss"] if flag["reads"] else loss, optimizer)

    model = Net()
    optimizer, call = torch.optim.SGD(model.parameters(), lr=0.1), spmd.compile(step, ranks=2)
    for _ in range(2):
        call(model, optimizer, *BATCH)
    assert not counts


OF_CLASSES = {
    "backward of a function": (lambda loss: Reversed.apply(loss), set_attribute(Reversed, "scale")),
    "number of a class": (lambda loss: Made(loss).value(), set_attribute(Made, "gain")),
    "global of a method": (lambda loss: Made(loss).value(), set_entry(STATE, "value")),
}


@pytest.mark.parametrize("apply, set_to", OF_CLASSES.values(), ids=OF_CLASSES)
def test_of_classes_whose_objects_a_step_makes(apply, set_to) -> None:
    compare(lambda model, optimizer, x, y: finish(apply(F.mse_loss(model(x), y)), optimizer), set_to)


OF_MODULES = {
    "attribute": lambda model, loss: loss * model.value,
    "property": lambda model, loss: loss * model.prop,
    "array": lambda model, loss: loss * float(model.array[0]),
    "deque": lambda model, loss: loss * model.queue[0],
    "method": lambda model, loss: model.scaled(loss),
    "class method": lambda model, loss: loss * model.of_method(),
}


@pytest.mark.parametrize("apply", OF_MODULES.values(), ids=OF_MODULES)
def test_of_modules_that_a_function_is_called_with(apply) -> None:
    compare(lambda model, optimizer, x, y: finish(apply(model, F.mse_loss(model(x), y)), optimizer),
            set_attribute(Net, "of_class"))


def halve(optimizer, *unused):
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad.mul_(0.5 * STATE["value"])


def shrink(optimizer, *unused):
    with torch.no_grad():
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.mul_(0.9)


def double(module, args, output):
    return output * 2 * STATE["value"]


def double_gradient(gradient):
    return gradient * 2 * STATE["value"]


HOOKS = {
    "before the optimizer": lambda model, optimizer: optimizer.register_step_pre_hook(halve),
    "after the optimizer": lambda model, optimizer: optimizer.register_step_post_hook(shrink),
    "of all optimizers": lambda model, optimizer: register_optimizer_step_pre_hook(halve),
    "of a module": lambda model, optimizer: model.register_forward_hook(double),
    "of all modules": lambda model, optimizer: nn.modules.module.register_module_forward_hook(double),
    "of a parameter": lambda model, optimizer: model.weight.register_hook(double_gradient),
}


@pytest.mark.parametrize("register", HOOKS.values(), ids=HOOKS)
def test_hooks(register) -> None:
    """Registered and removed between calls; of users' hooks, the numbers that they read, too."""
    losses = []
    for compiled in (False, True):
        torch.manual_seed(0)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
        step = lambda model, optimizer, x, y: finish(F.mse_loss(model(x), y), optimizer)  # noqa: E731
        call, handle = spmd.compile(step, ranks=2) if compiled else step, None
        losses.append([])
        for number in range(6):
            STATE["value"] = 2.0 if number == 3 else 1.0
            if number == 1:
                handle = register(model, optimizer)
            if number == 4:
                handle.remove()
            losses[-1].append(call(model, optimizer, *BATCH).item())
        handle.remove()
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)
    assert len(set(losses[0])) == 6


class Doubled(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        return result * 2 if function is F.mse_loss else result


BF16 = 2 ** -7  # an epsilon
AROUND = {
    "autocast": (lambda: torch.autocast("cpu", dtype=torch.bfloat16), BF16),
    "function mode": (Doubled, 1e-6),
    "saved tensors": (lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t), 1e-6),
    "device": (lambda: torch.device("cpu"), 1e-6),
}


@pytest.mark.parametrize("first", [False, True], ids=["later", "first"])
@pytest.mark.parametrize("enter, tolerance", AROUND.values(), ids=AROUND)
def test_what_is_entered_around_a_call(enter, tolerance, first: bool) -> None:
    """In some calls and not in others: a program each, made once."""
    runs = []
    for compiled in (False, True):
        torch.manual_seed(0)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        step = lambda model, optimizer, x, y: finish(F.mse_loss(model(x), y), optimizer)  # noqa: E731
        call = spmd.compile(step, ranks=2) if compiled else step
        runs.append([])
        for number in range(4):
            with enter() if (number % 2 == 0) == first else contextlib.nullcontext():
                runs[-1].append(call(model, optimizer, *BATCH).item())
    assert runs[1] == pytest.approx(runs[0], rel=tolerance)
    if enter is AROUND["autocast"][0]:  # the type shows in the first loss alone
        with torch.no_grad():
            torch.manual_seed(0)
            exact = F.mse_loss(Net()(BATCH[0]), BATCH[1]).item()
        assert (abs(runs[1][0] - exact) > 1e-6) == first
    assert len(call.training_state.programs) == 2


@pytest.mark.parametrize("first", [False, True], ids=["later", "first"])
def test_gradients_that_are_off_around_a_call(first: bool) -> None:
    """A step may ask for it, as PyTorch's layers do: such a call only evaluates."""
    def step(model, optimizer, x, y):
        loss = F.mse_loss(model(x), y)
        return finish(loss, optimizer) if torch.is_grad_enabled() else loss
    runs = []
    for call in (step, spmd.compile(step, ranks=2)):
        torch.manual_seed(0)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", spmd.Remark)
            runs.append([])
            for number in range(6):
                off = torch.no_grad() if number % 3 else torch.inference_mode()
                with off if (number % 2 == 0) == first else contextlib.nullcontext():
                    runs[-1].append(call(model, optimizer, *BATCH).item())
    assert runs[1] == pytest.approx(runs[0], rel=1e-6)


def reverse(groups: list) -> None:
    groups.reverse()


def move(groups: list) -> None:
    groups[0]["params"].append(groups[1]["params"].pop())


@pytest.mark.parametrize("change", [reverse, move])
def test_param_groups_with_other_parameters(change) -> None:
    """As many of them as before, and their options."""
    runs = []
    for compiled in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
        optimizer = torch.optim.Adam([{"params": list(model[0].parameters())},
                                      {"params": list(model[2].parameters()), "lr": 0.1}], lr=0.01)
        step = lambda model, optimizer, x, y: finish(F.mse_loss(model(x), y), optimizer)  # noqa: E731
        call = spmd.compile(step, ranks=2) if compiled else step
        x = torch.randn(6, 4)
        runs.append([])
        for number in range(6):
            runs[-1].append(call(model, optimizer, x, x.flip(0)).item())
            if number == 2:
                change(optimizer.param_groups)
    assert runs[1] == pytest.approx(runs[0], rel=1e-5)
