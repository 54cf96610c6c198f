"""What a step leaves in attributes of objects and in entries of dicts is there after each call, as in eager; a later call
reads it, or overwrites it unread, without being compiled for it."""
from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import spmd

CALLS = 10  # more than max_compiles


def batch(number: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(number)
    return torch.randn(4, 4, generator=generator), torch.randn(4, 2, generator=generator)


class State:
    pass


class Trainer:
    """`what` its step does with what it keeps."""

    def __init__(self, what: str):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.what, self.loss, self.mean, self.log, self.state = what, None, None, {}, State()
        self.model[1].register_forward_hook(lambda module, inputs, output: self.log.__setitem__("hidden", output))

    def train_step(self, x: torch.Tensor, y: torch.Tensor) -> None:
        weight = 1.0
        if self.what == "read":
            weight = 1.0 if self.mean is None else 1 + 0.1 * self.mean
        elif self.what == "read an entry":
            weight = 1 + 0.1 * self.log.get("loss", torch.zeros(()))
        elif self.what == "pass on":
            self.state.previous = getattr(self.state, "current", torch.zeros(()))
        elif self.what == "ask whether it is there":
            weight = 1 + 0.1 * getattr(self, "fresh", torch.ones(())) * (2 if hasattr(self.model[0], "note") else 1)
        elif self.what == "ask for the shape" and self.loss is not None:
            weight = 1.0 + self.loss.dim() + len(self.prediction)
        self.optimizer.zero_grad()
        self.prediction = self.model(x)
        self.loss = weight * F.mse_loss(self.prediction, y) + 0.1 * self.log["hidden"].square().mean()
        self.loss.backward()
        self.optimizer.step()
        self.log["loss"] = self.loss.detach()
        self.fresh, self.model[0].note = self.loss.detach() * 3, self.prediction.detach()
        self.state.current = self.log["loss"] * 2
        self.mean = self.log["loss"] if self.mean is None else 0.9 * self.mean + 0.1 * self.log["loss"]

    def kept(self) -> dict[str, torch.Tensor]:
        """All that the step has left."""
        found = {"loss": self.loss, "mean": self.mean, "prediction": self.prediction, "fresh": self.fresh,
                 "note": self.model[0].note, **self.log, **vars(self.state)}
        return {name: value.detach().clone() for name, value in found.items()}


class CompiledTrainer(Trainer):
    train_step = spmd.compile(Trainer.train_step, ranks=2)


def assert_equal(ours: Trainer, eager: Trainer) -> None:
    assert ours.kept().keys() == eager.kept().keys()
    for name, value in eager.kept().items():
        torch.testing.assert_close(ours.kept()[name], value, msg=lambda text: f"{name}: {text}")


@pytest.mark.parametrize("what", ["overwrite", "read", "read an entry", "pass on", "ask for the shape",
                                  "ask whether it is there"])
def test_it_is_there_after_each_call(what: str) -> None:
    ours, eager = CompiledTrainer(what), Trainer(what)
    for number in range(CALLS):
        ours.train_step(*batch(number)), eager.train_step(*batch(number))
        assert_equal(ours, eager)
    assert ours.train_step.compiles == 2, "for a first call, which finds nothing, and for all others"


def reset(trainer: Trainer) -> None:
    trainer.log["loss"], trainer.mean = torch.tensor(3.0), torch.tensor(4.0)


def write(trainer: Trainer) -> None:
    with torch.no_grad():
        trainer.log["loss"].add_(1), trainer.mean.mul_(2)


def clear(trainer: Trainer) -> None:
    trainer.log.clear()
    trainer.mean = trainer.loss = None


def replace(trainer: Trainer) -> None:
    trainer.log, trainer.state = dict(trainer.log), State()


@pytest.mark.parametrize("what", ["overwrite", "read", "read an entry"])
@pytest.mark.parametrize("change", [reset, write, clear, replace])
def test_what_is_changed_between_calls_counts(change, what: str) -> None:
    ours, eager = CompiledTrainer(what), Trainer(what)
    for number in range(6):
        ours.train_step(*batch(number)), eager.train_step(*batch(number))
        assert_equal(ours, eager)
        if number in (1, 3):
            change(ours), change(eager)


def test_each_object_has_its_own() -> None:
    trainers = [(CompiledTrainer("read"), Trainer("read")) for _ in range(2)]
    for number in range(4):
        for index, pair in enumerate(trainers):
            for trainer in pair:
                trainer.train_step(*batch(10 * index + number))
        for ours, eager in trainers:
            assert_equal(ours, eager)


@pytest.mark.parametrize("what", ["overwrite", "read", "read an entry"])
def test_with_a_local_view_it_is_not_read_again(what: str) -> None:
    """Each rank's own in eager, and one for all here."""
    trainer = Trainer(what)
    trainer.mean = torch.zeros(()) if what == "overwrite" else None
    step = spmd.compile(trainer.train_step, ranks=2, view="local")
    if what == "overwrite":  # but for the mean, which it reads: of the first call the user's own
        step(*batch(0))
        with pytest.raises(spmd.CaptureError, match="stored in 'self.mean': with view='local' it differs between ranks[^\0]*register_buffer"):
            step(*batch(1))
        trainer.mean = torch.zeros(())
        step(*batch(1))
        return
    step(*batch(0))
    with pytest.raises(spmd.CaptureError, match="stored in [^\0]*it differs between ranks[^\0]*register_buffer"):
        step(*batch(1))


def test_a_parameter_that_is_left_is_that_parameter() -> None:
    trainer = Trainer("overwrite")

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        trainer.state.weight, trainer.state.early = trainer.model[0].weight, trainer.model[0].weight.detach()
        loss = F.mse_loss(trainer.model(x), y)
        loss.backward()
        trainer.optimizer.step()
        trainer.optimizer.zero_grad()
        return loss

    compiled = spmd.compile(step, ranks=2)
    for number in range(4):
        compiled(*batch(number))
        assert trainer.state.weight is trainer.model[0].weight
        torch.testing.assert_close(trainer.state.early, trainer.model[0].weight.detach())
        if number == 1:
            trainer.state.weight = None
    assert compiled.compiles <= 3


class Asks(Trainer):
    """Its step asks for the value of what it has left."""

    def __init__(self, ask):
        super().__init__("overwrite")
        self.ask, self.compiled = ask, spmd.compile(self.step, ranks=2)

    def step(self, x: torch.Tensor, y: torch.Tensor) -> None:
        weight = 1.0 if self.loss is None else self.ask(self.loss)
        self.optimizer.zero_grad()
        self.loss = weight * F.mse_loss(self.model(x), y)
        self.loss.backward()
        self.optimizer.step()


def item(loss):
    return 1 + 0.1 * loss.item()


def tolist(loss):
    return 1 + 0.1 * loss.tolist()


def branch(loss):
    return 0.5 if loss > 1 else 1.0


def numpy(loss):
    return 1 + 0.1 * float(loss.detach().numpy())


@pytest.mark.parametrize("ask", [item, tolist, branch, numpy])
def test_asking_for_its_value_is_right_or_an_error(ask) -> None:
    ours, eager = Asks(ask), Asks(ask)
    for number in range(4):
        eager.step(*batch(number))
        try:
            ours.compiled(*batch(number))
        except spmd.CaptureError as error:
            assert f"in {ask.__name__}" in str(error) and number == 1, str(error)
            return
        torch.testing.assert_close(ours.loss.detach(), eager.loss.detach())


def test_a_failed_trace_leaves_nothing() -> None:
    trainer = CompiledTrainer("overwrite")
    trainer.train_step(*batch(0))
    before = dict(vars(trainer), log=dict(trainer.log))

    def fails(x: torch.Tensor, y: torch.Tensor) -> None:
        trainer.loss = trainer.model(x).sum()
        trainer.log["new"] = trainer.loss
        trainer.loss.backward()
        if trainer.loss > 0:
            trainer.optimizer.step()

    with pytest.raises(spmd.CaptureError, match="depends on a tensor's value"):
        spmd.compile(fails, ranks=2)(*batch(1))
    assert trainer.loss is before["loss"] and trainer.log == before["log"]


def test_an_attribute_that_is_there_before_on_a_librarys_module() -> None:
    """It was set to None, as a model's constructor does, and no code of the library knows it."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.body, self.head = nn.Linear(4, 4), nn.utils.weight_norm(nn.Linear(4, 2))
            self.last, self.body.aux, self.head.seen = None, None, torch.zeros(())
            self.head.register_forward_hook(lambda module, inputs, output: setattr(module, "seen", output.mean()))

        def forward(self, x, y):
            hidden = self.body(x)
            self.body.aux = hidden.square().mean()
            self.last = F.mse_loss(self.head(hidden), y) + self.body.aux
            return self.last

    def step(model, optimizer, x, y):
        model(x, y).backward()
        optimizer.step()
        optimizer.zero_grad()

    ours, eager = Net(), Net()
    compiled = spmd.compile(step, ranks=2)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (ours, eager)]
    for number in range(3):
        compiled(ours, optimizers[0], *batch(number)), step(eager, optimizers[1], *batch(number))
        for path, name in (("", "last"), ("body", "aux"), ("head", "seen")):
            found, want = (getattr(model.get_submodule(path), name) for model in (ours, eager))
            torch.testing.assert_close(found, want.detach(), msg=lambda text, name=name: f"{name}: {text}")


class Evaluated(Trainer):
    """Its forward leaves a loss on the model, in evaluations too, which eager does."""

    def train_step(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        self.forward(x, y)
        loss = self.model.last_loss * (1 + 0.1 * self.mean if self.what == "read" else 1)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.mean = 0.9 * self.mean + 0.1 * loss.detach() if self.what == "read" else loss.detach()
        return loss

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> None:
        self.model.last_loss = F.mse_loss(self.model(x), y)


@pytest.mark.parametrize("what", ["overwrite", "read"])
def test_what_others_put_in_its_place(what: str) -> None:
    """As nanoGPT's and llama2.c's evaluations do, however many there are; also a value that the step reads."""
    losses = {}
    for compiled in (False, True):
        trainer = Evaluated(what)
        trainer.mean = torch.zeros(())
        step = spmd.compile(trainer.train_step, ranks=2) if compiled else trainer.train_step
        losses[compiled] = []
        for number in range(2 * CALLS):
            if number % 2:
                with torch.no_grad():
                    trainer.forward(*batch(number))
                losses[compiled].append(trainer.model.last_loss.item())
                trainer.mean = torch.full((), float(number))
            losses[compiled].append(step(*batch(number)).item())
    assert losses[True] == pytest.approx(losses[False], rel=1e-5)
    assert step.compiles <= 3
