"""Training programs as people write them, with a decorator and nothing else changed: each against eager, on 1, 2 and 3
ranks, and compiled as often as it says."""
from __future__ import annotations

import contextlib
import copy
import functools
import pickle
import warnings
from typing import Any, Callable

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import spmd

Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Wrap = Callable[[Callable], Callable]


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))


def batches(count: int = 4) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(6, 8, generator=generator), torch.randint(0, 4, (6,), generator=generator))
            for _ in range(count)]


def update(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> torch.Tensor:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


class Trainer:
    """Model, optimizer and options are attributes, the loss is a method."""

    def __init__(self):
        self.model = network()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.smoothing = 0.1

    def loss(self, x, y):
        return F.cross_entropy(self.model(x), y, label_smoothing=self.smoothing)

    def train_step(self, x, y):
        return update(self.optimizer, self.loss(x, y))


def method(wrap: Wrap) -> tuple[Step, nn.Module]:
    made = type("Made", (Trainer,), {"train_step": wrap(Trainer.train_step)})()
    return made.train_step, made.model


class Lit(nn.Module):
    """A module that has its own step and optimizer."""

    def __init__(self):
        super().__init__()
        self.net = network()
        self.optimizers = {"net": torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)}

    def training_step(self, x, y):
        return update(self.optimizers["net"], F.cross_entropy(self.net(x), y))


def method_of_a_module(wrap: Wrap) -> tuple[Step, nn.Module]:
    made = type("Made", (Lit,), {"training_step": wrap(Lit.training_step)})()
    return made.training_step, made


def closure(wrap: Wrap) -> tuple[Step, nn.Module]:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return wrap(lambda x, y: update(optimizer, F.cross_entropy(model(x), y))), model


def partial(wrap: Wrap) -> tuple[Step, nn.Module]:
    model = network()

    def step(model, optimizer, x, y, *, smoothing):
        return update(optimizer, F.cross_entropy(model(x), y, label_smoothing=smoothing))
    return wrap(functools.partial(step, model, torch.optim.SGD(model.parameters(), lr=0.1), smoothing=0.2)), model


def encoder_and_decoder(wrap: Wrap) -> tuple[Step, nn.Module]:
    model = network()
    encoder, decoder = model[:2], model[2:]

    def step(encoder, decoder, optimizer, x, y):
        return update(optimizer, F.cross_entropy(decoder(encoder(x)), y))
    return functools.partial(wrap(step), encoder, decoder, torch.optim.Adam(model.parameters(), lr=0.01)), model


def teacher_that_the_step_updates(wrap: Wrap) -> tuple[Step, nn.Module]:
    student = network()
    teacher = copy.deepcopy(student)

    def step(student, teacher, optimizer, x, y):
        with torch.no_grad():
            target = teacher(x)
        loss = update(optimizer, F.cross_entropy(student(x), y) + F.mse_loss(student(x), target))
        with torch.no_grad():
            for p, q in zip(student.parameters(), teacher.parameters()):
                q.mul_(0.9).add_(p, alpha=0.1)
        return loss
    return functools.partial(wrap(step), student, teacher, torch.optim.Adam(student.parameters(), lr=0.01)), \
        nn.ModuleList([student, teacher])


def adversaries(wrap: Wrap) -> tuple[Step, nn.Module]:
    """Two networks, two optimizers of different classes, two backwards in one step."""
    torch.manual_seed(0)
    generator, critic = nn.Linear(8, 8), nn.Linear(8, 1)
    of_generator = torch.optim.Adam(generator.parameters(), lr=0.01)
    of_critic = torch.optim.Adagrad(critic.parameters(), lr=0.02)

    @wrap
    def step(x, y):
        loss = update(of_critic, critic(generator(x).detach()).mean() - critic(x).mean() + critic(x).square().mean())
        return loss + update(of_generator, -critic(generator(x)).mean())
    return step, nn.ModuleList([generator, critic])


def torch_compiled(wrap: Wrap) -> tuple[Step, nn.Module]:
    """A compiled model, a part that was compiled in place, and a compiled loss; eager needs no C++ compiler for it."""
    model = network()
    model[0].compile(backend="aot_eager")
    compiled, loss = torch.compile(model, backend="aot_eager"), torch.compile(F.cross_entropy, backend="aot_eager")

    def step(model, optimizer, x, y):
        return update(optimizer, loss(model(x), y))
    return functools.partial(wrap(step), compiled, torch.optim.SGD(model.parameters(), lr=0.1)), model


def update_by_hand(wrap: Wrap) -> tuple[Step, nn.Module]:
    model = network()

    def step(model, x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-0.1)
            p.grad = None
        return loss
    return functools.partial(wrap(step), model), model


def gradients_only(wrap: Wrap) -> tuple[Step, nn.Module]:
    """The optimizer steps outside."""
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    @wrap
    def gradients(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    def step(x, y):
        loss = gradients(x, y)
        norm = sum(p.grad.norm() for p in model.parameters())
        optimizer.step()
        optimizer.zero_grad()
        return loss + norm
    return step, model


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.norm = nn.Linear(8, 4, bias=False), nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.linear(x))


def train_and_evaluate(wrap: Wrap) -> tuple[Step, nn.Module]:
    model = Normed()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    @wrap
    def train(x, y):
        return update(optimizer, F.cross_entropy(model(x), y))

    @wrap
    @torch.no_grad()
    def evaluate(x, y):
        return F.cross_entropy(model(x), y)

    def step(x, y):
        model.train()
        loss = train(x, y)
        model.eval()
        return loss + evaluate(x, y)
    return step, model


def distributed(wrap: Wrap) -> tuple[Step, nn.Module]:
    if not dist.is_initialized():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    trainer = Trainer()
    trainer.model = nn.parallel.DistributedDataParallel(trainer.model)
    return wrap(trainer.train_step), trainer.model


def autocast_of_another_device(wrap: Wrap) -> tuple[Step, nn.Module]:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        with torch.autocast("cuda", enabled=False):
            loss = F.cross_entropy(model(x), y)
        return update(optimizer, loss)
    return wrap(step), model


def scaler_that_is_off(wrap: Wrap) -> tuple[Step, nn.Module]:
    model = network()
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu", enabled=False)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss
    return wrap(step), model


class Leaves(nn.Module):
    """A forward that leaves tensors and numbers on its model, and reads one of them in the next step."""

    def __init__(self):
        super().__init__()
        self.net, self.memory, self.level = network(), None, 0.0

    def forward(self, x, y):
        out = self.net(x)
        if self.memory is not None:
            out = out + 0.1 * self.memory
        self.memory, self.level = out.detach(), out.mean().item()
        self.net.last_loss = F.cross_entropy(out, y)


def attributes(wrap: Wrap) -> tuple[Step, nn.Module]:
    model = Leaves()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @wrap
    def train(x, y):
        model(x, y)
        return update(optimizer, model.net.last_loss)

    def step(x, y):
        return train(x, y) + model.net.last_loss.detach() + model.level + model.memory.norm()
    return step, model


class Translator(nn.Module):
    """PyTorch asks whether a mask is the causal one."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.transformer = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        x = torch.stack((x, x.flip(1), x * x), 1)
        mask = nn.Transformer.generate_square_subsequent_mask(3)
        return self.head(self.transformer(x, x, src_mask=mask, tgt_mask=mask)[:, -1])


def transformer_with_masks(wrap: Wrap) -> tuple[Step, nn.Module]:
    model = Translator()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return wrap(lambda x, y: update(optimizer, F.cross_entropy(model(x), y))), model


class Casts(Normed):
    """A module that a forward puts into the type and on the device where it is, as transformers' routers do."""

    def forward(self, x):
        self.linear = self.linear.to(torch.float32).to(x.device)
        return super().forward(x.to(torch.float32))


def cast_in_a_forward(wrap: Wrap) -> tuple[Step, nn.Module]:
    model = Casts()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return wrap(lambda x, y: update(optimizer, F.cross_entropy(model(x), y))), model


PROGRAMS = [method, method_of_a_module, closure, partial, encoder_and_decoder, teacher_that_the_step_updates, adversaries,
            torch_compiled, update_by_hand, gradients_only, train_and_evaluate, distributed, autocast_of_another_device,
            scaler_that_is_off, attributes, transformer_with_masks, cast_in_a_forward]


@pytest.mark.filterwarnings("ignore::spmd.CompilerWarning", "ignore::spmd.Remark", "ignore:.*scalar may lead")
@pytest.mark.parametrize("build", PROGRAMS, ids=lambda build: build.__name__)
def test_trains_as_in_eager(build: Callable[[Wrap], tuple[Step, nn.Module]], whole: bool) -> None:
    check(build, (1, 2, 3) if whole else (1, 3))


def check(build: Callable[[Wrap], tuple[Step, nn.Module]], ranks: tuple[int, ...]) -> None:
    step, expected = build(lambda function: function)
    losses = [float(step(*batch)) for batch in batches()]
    state = expected.state_dict()
    for count in ranks:
        compiled, model = build(spmd.compile(ranks=count))
        torch.testing.assert_close([float(compiled(*batch)) for batch in batches()], losses, rtol=2e-6, atol=2e-6)
        for name, value in model.state_dict().items():
            torch.testing.assert_close(value, state[name], rtol=1e-4, atol=2e-6, msg=lambda text: f"{name}: {text}")


def test_a_module_that_a_forward_changes_is_an_error() -> None:
    model = Casts().double()
    step = spmd.compile(lambda optimizer, x, y: update(optimizer, F.cross_entropy(model(x), y)))
    with pytest.raises(spmd.CaptureError, match="(?s)changes a Linear of torch.float64 to torch.float32.*self.linear.to.*hint: cast"):
        step(torch.optim.SGD(model.parameters(), lr=0.1), *batches()[0])


def test_each_object_has_its_own_step() -> None:
    class Made(Trainer):
        train_step = spmd.compile(Trainer.train_step, ranks=2)

    first, second = Made(), Made()
    x, y = batches()[0]
    losses = [first.train_step(x, y).item() for _ in range(3)]
    assert [second.train_step(x, y).item() for _ in range(3)] == losses
    assert first.train_step is first.train_step and first.train_step is not second.train_step
    assert first.train_step.compiles == second.train_step.compiles == 1
    copied = copy.deepcopy(first)
    assert copied.train_step.steps == 0
    assert copied.train_step(x, y).item() == first.train_step(x, y).item()
    assert "not called yet" in repr(Made.train_step)


class Saved(nn.Module):
    """At the top of a module, where pickle finds it."""

    def __init__(self):
        super().__init__()
        self.net = network()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    @spmd.compile(ranks=2)
    def train_step(self, x, y):
        return update(self.optimizer, F.cross_entropy(self.net(x), y))


def test_an_object_with_a_compiled_method_is_saved() -> None:
    model = Saved()
    x, y = batches()[0]
    model.train_step(x, y)
    loaded = pickle.loads(pickle.dumps(model))
    assert loaded.train_step(x, y).item() == model.train_step(x, y).item()


def test_model_and_optimizer_are_read_at_every_call() -> None:
    trainer = Trainer()
    step = spmd.compile(trainer.train_step, ranks=2)
    x, y = batches()[0]
    step(x, y)
    trainer.optimizer.param_groups[0]["lr"] = 0.0
    before = copy.deepcopy(trainer.model.state_dict())
    trainer.optimizer.param_groups[0]["weight_decay"] = 0.0
    with pytest.warns(spmd.Remark, match="weight_decay of param group 0 is 0.0, it was 0.01"):
        step(x, y)
    torch.testing.assert_close(trainer.model.state_dict(), before, rtol=0, atol=0)
    trainer.model = network()
    trainer.optimizer = torch.optim.AdamW(trainer.model.parameters(), lr=0.01)
    with pytest.raises(ValueError, match=r"was compiled for another model or optimizer; call reset\(\)"):
        step(x, y)


def kept(keep_grads: bool) -> tuple[Step, nn.Module]:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    return spmd.compile(lambda x, y: update(optimizer, F.cross_entropy(model(x), y)), ranks=2,
                        keep_grads=keep_grads), model


def test_gradients_are_read_after_a_step_that_clears_them() -> None:
    step, expected = closure(lambda function: function)
    compiled, model = kept(keep_grads=True)
    model.load_state_dict(expected.state_dict())
    for x, y in batches():
        expected.load_state_dict(model.state_dict())
        step(x, y)
        compiled(x, y)
        for p, q in zip(model.parameters(), expected.parameters()):
            torch.testing.assert_close(p.grad, q.grad)
    assert compiled.compiles == 1
    compiled, model = kept(keep_grads=False)
    compiled(*batches()[0])
    with pytest.raises(RuntimeError, match=r"gradient that the step leaves[^\0]*hint: set spmd.compile\(keep_grads=True\)"):
        model[0].weight.grad.norm()


HIDDEN = {"optimizer": lambda: None}


def test_an_optimizer_that_is_not_found() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    HIDDEN["optimizer"] = lambda optimizer=optimizer: optimizer

    @spmd.compile(ranks=2)
    def step(x, y):
        F.cross_entropy(model(x), y).backward()
        getattr(HIDDEN["optimizer"](), "step")()

    with pytest.raises(spmd.CaptureError, match=r"step\(\) of a SGD that the capture cannot find[^\0]*hint: pass the opt"):
        step(*batches()[0])


class Gained(torch.optim.Optimizer):
    """With numbers of its own, in itself, in its groups and in its state."""

    def __init__(self, params):
        super().__init__(params, {"lr": 0.1, "gain": 1.0})
        self.scale, self.config = 1.0, {"factors": [1.0]}

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["average"], state["factor"] = torch.zeros_like(p), 1.0
                state["average"].mul_(0.9).add_(p.grad)
                factor = self.scale * group["gain"] * state["factor"] * self.config["factors"][0]
                p.sub_(state["average"], alpha=group["lr"] * factor)


@pytest.mark.parametrize("change, message", [
    (lambda o: setattr(o, "scale", 3.0), r"'Gained\['scale'\]' is 3.0, it was 1.0"),
    (lambda o: o.config["factors"].__setitem__(0, 3.0), r"'Gained\['config'\]\['factors'\]\[0\]' is 3.0, it was 1.0"),
    (lambda o: o.param_groups[0].update(gain=3.0), "gain of param group 0 is 3.0, it was 1.0"),
    (lambda o: [s.update(factor=3.0) for s in o.state.values()], r"'Gained.state\[...\]\['factor'\]' is 3.0, it was 1.0"),
    (lambda o: [s["average"].zero_() for s in o.state.values()], ""),
], ids=["attribute", "nested", "group", "state", "tensor"])
def test_numbers_of_an_optimizer_are_read_at_every_call(change, message: str) -> None:
    """One that is changed between calls makes another program; a tensor does not."""
    (model, expected) = network(), network()
    optimizer, eager = Gained(model.parameters()), Gained(expected.parameters())
    step = spmd.compile(lambda x, y: update(optimizer, F.cross_entropy(model(x), y)), ranks=2)
    for number, (x, y) in enumerate(batches() * 2):
        if number == 2:
            change(optimizer), change(eager)
        with pytest.warns(spmd.Remark, match=message) if message and number == 2 else contextlib.nullcontext():
            loss = step(x, y)
        assert abs(loss.item() - update(eager, F.cross_entropy(expected(x), y)).item()) < 1e-6
    for ours, theirs in zip(model.parameters(), expected.parameters()):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=2e-6)
        assert optimizer.state[ours].keys() == eager.state[theirs].keys()
        assert optimizer.state[ours]["factor"] == eager.state[theirs]["factor"]
    assert step.compiles == (2 if message else 1)


def test_what_cannot_be_a_batch() -> None:
    step, _ = closure(spmd.compile(ranks=2))
    x, y = batches()[0]
    with pytest.raises(spmd.CaptureError, match=r"argument 'x' has the layout torch.sparse_coo\n  hint: .*to_dense"):
        step(x.to_sparse(), y)


def test_says_what_differs_when_it_compiles_too_often() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @spmd.compile(ranks=1, max_compiles=2)
    def step(x, y, smoothing):
        return update(optimizer, F.cross_entropy(model(x), y, label_smoothing=smoothing))

    x, y = batches()[0]
    step(x, y, 0.0)
    with pytest.warns(spmd.Remark, match="compiled again: argument 'smoothing' is 0.1, it was 0.0"):
        step(x, y, 0.1)
    with pytest.raises(RuntimeError, match=r"reason of each compilation:\n  x\[6, 8\], y\[6\]\n  argument 'smoothing' is 0.1, it was 0.0\n"
                                           r"now: argument 'smoothing' is 0.2, it was 0.1\n"):
        step(x, y, 0.2)


class Scaled(nn.Module):
    """A parameter without dims beside others: what an optimizer keeps once for each parameter has its shape."""

    def __init__(self):
        super().__init__()
        self.net = network()
        self.scale = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        return self.net(x) * self.scale.exp()


@pytest.mark.parametrize("kind, options", [(torch.optim.NAdam, {}), (torch.optim.ASGD, {}), (torch.optim.RAdam, {}),
                                           (torch.optim.AdamW, {"amsgrad": True}), (torch.optim.Adamax, {})],
                         ids=lambda value: getattr(value, "__name__", ""))
def test_a_parameter_without_dims(kind: type, options: dict[str, Any]) -> None:
    def build(wrap: Wrap) -> tuple[Step, nn.Module]:
        model = Scaled()
        optimizer = kind(model.parameters(), lr=0.01, foreach=False, **options)
        return wrap(lambda x, y: update(optimizer, F.cross_entropy(model(x), y))), model
    check(build, (3,))


def test_a_part_of_the_model_is_trained() -> None:
    """Parameters that no optimizer has, and that the step writes, have no state."""
    def build(wrap: Wrap) -> tuple[Step, nn.Module]:
        model = network()
        optimizer = torch.optim.Adagrad(model[2].parameters(), lr=0.1)

        def step(x, y):
            loss = update(optimizer, F.cross_entropy(model(x), y))
            for p in model.parameters():
                p.data.clamp_(-0.3, 0.3)
                p.grad = None
            return loss
        made = wrap(step)
        made.optimizer = optimizer
        return made, model
    check(build, (1, 3))
    step, model = build(spmd.compile(ranks=2))
    step(*batches()[0])
    assert len(step.optimizer.state_dict()["state"]) == 2
