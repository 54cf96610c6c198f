"""Optimizers of one's own that count in Python: python test/Kinds/optimizers.py --all

Each case is the step() of an optimizer that changes Python numbers. It is crossed with how the step is used and with one and two
ranks, and compared with eager PyTorch: losses, parameters, and each Python number of the optimizer after each call. The cases of
REFUSED need a constant where the number changes: for them, "right" is an error that has a hint, before anything has changed.
"""
from __future__ import annotations

import contextlib
import math
import tempfile
import types
from typing import Any, Callable

import torch
import torch.nn.functional as F

import harness
import spmd
from harness import Outcome

STEPS = 5
IN_GROUPS = ("in_groups", "schedule_free", "every_third", "annealed", "counts_down", "a_flag")  # checkpoints have no other numbers
USES = ("plain", "accumulated", "scheduled", "masters", "state_dict", "checkpoint")
MASTERS = "param=bf16,master=f32"


class Counting(torch.optim.Optimizer):
    """An optimizer of two param groups, whose step() is a function of the optimizer."""

    def __init__(self, params: list[torch.Tensor], function: Callable[[Counting], None]):
        options = {"lr": 0.05, "step": 0, "weight_decay": 0.0, "betas": (0.9, 0.99), "sum": 0.0, "lr_max": 0.0, "is_warm": False}
        super().__init__([{"params": params[:1]}, {"params": params[1:], "lr": 0.02}], options)
        self.calls, self.rate, self._hidden, self.function = 0, 1.0, 0, function
        self.listed, self.held, self.of_object = [0], {"n": 0}, types.SimpleNamespace(n=0)

    @torch.no_grad()
    def step(self, closure=None):
        self.function(self)

    def parts(self):
        """Each group, and each parameter of it that has a gradient."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    yield group, p


def in_groups(self):
    for group in self.param_groups:
        group["step"] += 1
    for group, p in self.parts():
        p.sub_(p.grad, alpha=group["lr"] / (1 - 0.5 ** group["step"]))


def in_state(self):
    """Adam, as it is often written."""
    for group, p in self.parts():
        state = self.state[p]
        if len(state) == 0:
            state["step"] = 0
            state["m"], state["v"] = torch.zeros_like(p), torch.zeros_like(p)
        state["step"] += 1
        a, b = group["betas"]
        state["m"].mul_(a).add_(p.grad, alpha=1 - a)
        state["v"].mul_(b).addcmul_(p.grad, p.grad, value=1 - b)
        denominator = (state["v"].sqrt() / math.sqrt(1 - b ** state["step"])).add_(1e-3)
        p.addcdiv_(state["m"], denominator, value=-group["lr"] / (1 - a ** state["step"]))


def in_attributes(self):
    self.calls += 1
    self._hidden += 2
    self.rate *= 0.9
    for group, p in self.parts():
        p.sub_(p.grad, alpha=group["lr"] * self.rate + 1e-3 * self.calls / self._hidden)


def products(self):
    """NAdam's product of momenta; state that is a float."""
    for group, p in self.parts():
        state = self.state[p]
        state["n"] = state.get("n", 0) + 1
        mu = 0.9 * (1.0 - 0.5 * 0.96 ** (state["n"] * 0.004))
        state["product"] = state.get("product", 1.0) * mu
        p.add_(p.grad, alpha=-group["lr"] * (1.0 - mu) / (1.0 - state["product"]))


def schedule_free(self):
    """AdamWScheduleFree's weights: a maximum, a sum of powers, and a division that may be by zero."""
    for group in self.param_groups:
        k = group["step"]
        rate = group["lr"] * min(1.0, (k + 1) / 3)
        rate = group["lr_max"] = max(rate, group["lr_max"])
        weight = ((k + 1) ** 0.5) * (rate ** 2.0)
        group["sum"] = total = group["sum"] + weight
        try:
            share = weight / total
        except ZeroDivisionError:
            share = 0
        for p in group["params"]:
            if p.grad is None:
                continue
            z = self.state[p].setdefault("z", p.detach().clone())
            p.lerp_(end=z, weight=share)
            p.add_(p.grad, alpha=rate * (0.9 * (1 - share) - 1))
            z.sub_(p.grad, alpha=rate)
        group["step"] = k + 1


def adafactor(self):
    """Adafactor's relative step and decay."""
    for group, p in self.parts():
        state = self.state[p]
        if "step" not in state:
            state["step"], state["v"] = 0, torch.zeros_like(p)
        state["step"] += 1
        rate = min(1e-2, 1.0 / math.sqrt(state["step"]))
        beta = 1.0 - math.pow(state["step"], -0.8)
        state["v"].mul_(beta).add_(p.grad.square() + 1e-3, alpha=1.0 - beta)
        p.add_(state["v"].rsqrt() * p.grad, alpha=-rate)


def rectified(self):
    """RAdam's branch on the length of its average."""
    for group, p in self.parts():
        state = self.state[p]
        if not state:
            state.update(step=0, m=torch.zeros_like(p))
        state["step"] += 1
        state["m"].mul_(0.9).add_(p.grad, alpha=0.1)
        longest, power = 2 / (1 - 0.8) - 1, 0.8 ** state["step"]
        length = longest - 2 * state["step"] * power / (1 - power)
        if length >= 3:
            rectifier = math.sqrt((1 - power) * (length - 2) / (longest - 2) * longest / length)
            p.sub_(state["m"], alpha=group["lr"] * rectifier / (1 - 0.9 ** state["step"]))
        else:
            p.sub_(state["m"], alpha=group["lr"])


def every_third(self):
    """Lookahead: slow weights follow at every third step; the count begins anew."""
    for group in self.param_groups:
        group["step"] += 1
        for p in group["params"]:
            if p.grad is None:
                continue
            slow = self.state[p].setdefault("slow", p.detach().clone())
            p.sub_(p.grad, alpha=group["lr"]).add_(slow, alpha=1e-3)  # state that the second step does not use is an error
            if group["step"] == 3:
                slow.lerp_(p, 0.5)
                p.copy_(slow)
        if group["step"] == 3:
            group["step"] = 0


def annealed(self):
    """Options that follow from a count, a cosine among them."""
    for group in self.param_groups:
        group["weight_decay"] = 0.01 * group["step"]
        share = 0.5 * (1 + math.cos(math.pi * (group["step"] % 4) / 4)) + math.exp(-group["step"]) + group["step"] // 2
        group["step"] += 1
        for p in group["params"]:
            if p.grad is not None:
                p.mul_(1 - group["lr"] * group["weight_decay"]).sub_(p.grad, alpha=group["lr"] * share)


def counts_down(self):
    """A number that changes by groups, sinks, and is below zero."""
    for number, group in enumerate(self.param_groups):
        group["step"] -= 1 + number
        group["sum"] = abs(group["step"]) - -group["sum"] * 0.5
        for p in group["params"]:
            if p.grad is not None:
                p.sub_(p.grad * torch.tensor(group["step"]).abs(), alpha=group["lr"] * group["sum"])


def as_arguments(self):
    """The count as an argument of functions of tensors."""
    self.calls += 1
    x = self.calls / 4
    for group, p in self.parts():
        change = torch.where(p.grad > 0, p.grad.clamp(-x, x), p.grad * x).lerp(p, x / 50)
        change = change + torch.full_like(p, 0.01) * self.calls + torch.pow(torch.full_like(p, 0.5), self.calls)
        p.add_(torch.maximum(change, torch.full_like(p, -1.0)), alpha=-group["lr"])


def a_flag(self):
    """A flag that the first step sets."""
    for group, p in self.parts():
        p.sub_(p.grad, alpha=group["lr"] * (2.0 if group["is_warm"] else 1.0))
    for group in self.param_groups:
        group["is_warm"] = True


def in_range(self):
    self.calls += 1
    for _ in range(self.calls):
        for group, p in self.parts():
            p.sub_(p.grad, alpha=group["lr"])


def as_index(self):
    self.calls += 1
    for group, p in self.parts():
        p.sub_(p.grad, alpha=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6)[self.calls])


def as_key(self):
    self.calls += 1
    for group, p in self.parts():
        p.sub_(p.grad, alpha={1: 0.1, 2: 0.2, 3: 0.3}.get(self.calls, 0.4))


def as_text(self):
    self.calls += 1
    for group, p in self.parts():
        p.sub_(p.grad, alpha=0.1 * len(f"{self.calls * 3}"))


def as_float(self):
    self.calls += 1
    for group, p in self.parts():
        p.sub_(p.grad, alpha=0.1 / float(self.calls))


def as_int(self):
    self.calls += 1
    for group, p in self.parts():
        p.sub_(p.grad, alpha=0.1 / (1 + int(self.calls / 2)))


def rounded(self):
    self.calls += 1
    for group, p in self.parts():
        p.sub_(p.grad, alpha=0.1 / (1 + round(self.calls / 2)))


def bits(self):
    self.calls += 1
    for group, p in self.parts():
        p.sub_(p.grad, alpha=0.01 * (1 << self.calls))


def odd(self):
    self.calls += 1
    for group, p in self.parts():
        p.sub_(p.grad, alpha=0.1 if self.calls & 1 else 0.2)


def as_size(self):
    self.calls += 1
    for group, p in self.parts():
        p.sub_(p.grad * torch.ones(self.calls).sum(), alpha=0.01)


def in_numpy(self):
    import numpy
    self.calls += 1
    for group, p in self.parts():
        p.sub_(p.grad, alpha=0.1 / float(numpy.sqrt(self.calls)))


def in_a_list(self):
    self.listed[0] += 1
    for group, p in self.parts():
        p.sub_(p.grad, alpha=0.1 / self.listed[0])


def in_a_dict(self):
    self.held["n"] += 1
    for group, p in self.parts():
        p.sub_(p.grad, alpha=0.1 / self.held["n"])


def in_a_tuple(self):
    for group in self.param_groups:
        group["betas"] = (group["betas"][0] * 0.9, group["betas"][1])
    for group, p in self.parts():
        p.sub_(p.grad, alpha=0.1 * group["betas"][0])


def of_values(self):
    self.rate = self.rate + sum(p.grad.abs().sum().item() for _, p in self.parts())
    for group, p in self.parts():
        p.sub_(p.grad, alpha=0.1)


def flips(self):
    for group, p in self.parts():
        p.sub_(p.grad, alpha=0.1 if group["is_warm"] else 0.2)
    for group in self.param_groups:
        group["is_warm"] = not group["is_warm"]


def of_the_rate(self):
    for group, p in self.parts():
        p.sub_(p.grad, alpha=group["lr"])
    for group in self.param_groups:
        group["lr"] *= 0.9


TRAINS = {f.__name__: f for f in (in_groups, in_state, in_attributes, products, schedule_free, adafactor, rectified, every_third, annealed,
                                  counts_down, as_arguments, a_flag)}
REFUSED = {f.__name__: f for f in (in_range, as_index, as_key, as_text, as_float, as_int, rounded, bits, odd, as_size, in_numpy, in_a_list,
                                   in_a_dict, in_a_tuple, of_values, flips, of_the_rate)}


def call(model, optimizer, x, y):
    loss = F.cross_entropy(model(x).double(), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def accumulates(model, optimizer, x, y, updates):
    loss = F.cross_entropy(model(x).double(), y) / 2
    loss.backward()
    if updates:
        optimizer.step()
        optimizer.zero_grad()
    return loss


class Masters:
    """f32 masters of a model in bf16, by hand: what precision="master=f32" keeps."""

    def __init__(self, model: torch.nn.Module, function: Callable[[Counting], None]):
        self.model, self.masters = model, [p.detach().float() for p in model.parameters()]
        self.inner = Counting(self.masters, function)
        self.param_groups = self.inner.param_groups

    def step(self) -> None:
        for master, p in zip(self.masters, self.model.parameters()):
            master.grad = p.grad.float()
        self.inner.step()
        with torch.no_grad():
            for master, p in zip(self.masters, self.model.parameters()):
                p.copy_(master)

    def zero_grad(self) -> None:
        self.model.zero_grad()


class Training:
    """Model and optimizer of a case, trained eagerly or compiled."""

    def __init__(self, function: Callable[[Counting], None], use: str, ranks: int):
        self.function, self.use, self.ranks = function, use, ranks
        self.train_step = accumulates if use == "accumulated" else call
        self.begin()

    def begin(self) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Linear(5, 3, dtype=torch.bfloat16 if self.use == "masters" else torch.float64)
        eager_masters = self.use == "masters" and not self.ranks
        self.optimizer = Masters(self.model, self.function) if eager_masters else Counting(list(self.model.parameters()), self.function)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda n: 1 / (1 + n)) if self.use == "scheduled" else None
        options = {"precision": MASTERS} if self.use == "masters" else {}
        self.step = spmd.compile(self.train_step, ranks=self.ranks, threads=2, **options) if self.ranks else self.train_step

    def resume(self) -> None:
        """Goes on with new objects, from what is saved."""
        if self.use == "state_dict":
            model, optimizer = (one.state_dict() for one in (self.model, self.optimizer))
            attributes = {name: getattr(self.optimizer, name) for name in ("calls", "rate", "_hidden")}
            with contextlib.ExitStack() as stack:
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                torch.save((model, optimizer), f"{folder}/file")
                model, optimizer = torch.load(f"{folder}/file")
            self.begin()
            self.model.load_state_dict(model)
            self.optimizer.load_state_dict(optimizer)
            vars(self.optimizer).update(attributes)
        elif self.ranks:
            with tempfile.TemporaryDirectory() as folder:
                self.step.save_checkpoint(folder)
                self.begin()
                self.step(self.model, self.optimizer, *batch(0, self.use))
                self.step.load_checkpoint(folder)

    def run(self, number: int) -> torch.Tensor:
        more = (number % 2 == 1,) if self.use == "accumulated" else ()
        loss = self.step(self.model, self.optimizer, *batch(number, self.use), *more)
        if self.scheduler is not None:
            self.scheduler.step()
        return loss.detach().double()

    def numbers(self) -> str:
        """All Python numbers of the optimizer, with their types."""
        optimizer = getattr(self.optimizer, "inner", self.optimizer)
        return str(([{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups],
                    [found for state in optimizer.state.values() if (found := {k: v for k, v in state.items() if not isinstance(v, torch.Tensor)})],
                    {k: v for k, v in vars(optimizer).items() if type(v) in (int, float)}))


def weights(training: Training) -> list[torch.Tensor]:
    """The parameters, or their masters."""
    optimizer = training.optimizer
    if training.use == "masters":
        return optimizer.masters if isinstance(optimizer, Masters) else [optimizer.state[p]["master"].detach() for p in training.model.parameters()]
    return [p.detach() for p in training.model.parameters()]


def batch(number: int, use: str) -> tuple[torch.Tensor, torch.Tensor]:
    made = torch.Generator().manual_seed(number)
    dtype = torch.bfloat16 if use == "masters" else torch.float64
    return torch.randn(6, 5, generator=made, dtype=dtype), torch.randint(3, (6,), generator=made)


def names() -> list[str]:
    crossed = [f"{name}/{use}/{ranks}" for name in TRAINS for use in USES for ranks in (1, 2)]
    return crossed + [f"{name}/{use}/{ranks}" for name in REFUSED for use, ranks in (("plain", 1), ("accumulated", 2))]


def case(name: str) -> Outcome:
    """The outcome of one case."""
    function, use, ranks = name.split("/")
    if function in REFUSED:
        return _refused(REFUSED[function], use, int(ranks))
    eager, compiled = Training(TRAINS[function], use, 0), Training(TRAINS[function], use, int(ranks))
    for number in range(STEPS):
        if number == STEPS // 2 and use == "checkpoint" and function not in IN_GROUPS:
            return _cannot_be_saved(compiled)
        if number == STEPS // 2 and use in ("state_dict", "checkpoint"):
            for one in (eager, compiled):
                one.resume()
        losses = [one.run(number) for one in (eager, compiled)]
        tolerance = 0.02 if use == "masters" else 1e-10  # bf16: what ranks add up in another order is rounded otherwise
        found = harness.compare([losses[0], *weights(eager)], [losses[1], *weights(compiled)], tolerance)
        if found.kind != "right":
            return Outcome(found.kind, f"step {number}: {found.text}")
        if eager.numbers() != compiled.numbers():
            return Outcome("wrong", f"step {number}: numbers are {compiled.numbers()}, eager's {eager.numbers()}")
    return Outcome("right")


def _cannot_be_saved(training: Training) -> Outcome:
    """Right: an error when the checkpoint is saved, since it would lack numbers."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            training.step.save_checkpoint(folder)
        except RuntimeError as error:
            return Outcome("right" if "checkpoints have Python numbers of param groups only\n  hint: " in str(error) else "wrong", str(error))
    return Outcome("wrong", "a checkpoint without the numbers is saved")


def _refused(function: Callable[[Counting], None], use: str, ranks: int) -> Outcome:
    """Right: an error with a hint, and nothing has changed; or eager's numbers."""
    eager, compiled = Training(function, use, 0), Training(function, use, ranks)
    for number in range(STEPS):
        before, values = compiled.numbers(), [p.detach().clone() for p in compiled.model.parameters()]
        try:
            loss = compiled.run(number)
        except harness.REFUSALS as error:
            is_unchanged = compiled.numbers() == before and all(map(torch.equal, compiled.model.parameters(), values))
            has_line = f"in {function.__name__}" in str(error) or __file__ in str(error)
            return Outcome("right" if "\n  hint: " in str(error) and is_unchanged and has_line else "wrong",
                           f"step {number}, unchanged {is_unchanged}, line {has_line}: {error}")
        found = harness.compare([eager.run(number), *weights(eager)], [loss, *weights(compiled)], 1e-10)
        if found.kind != "right" or eager.numbers() != compiled.numbers():
            return Outcome("wrong", f"step {number}: {found.text} numbers are {compiled.numbers()}, eager's {eager.numbers()}")
    return Outcome("right", "trains")


if __name__ == "__main__":
    harness.main("optimizers", names(), case)
