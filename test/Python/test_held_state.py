"""What a step reaches without an argument: modules and tensors in globals, closures, attributes, lists. Read fresh at
every call, as eager reads them, without compiling again. Methods that need it, each against eager over several steps
on up to 5 ranks."""
from __future__ import annotations

import copy
import functools
import types
import warnings
from random import Random

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import spmd

pytestmark = pytest.mark.filterwarnings("ignore::spmd.CompilerWarning")
RANKS = [1, 2, 3, 5]


def network(inputs: int = 6, outputs: int = 4) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, outputs))


def moving_average(teacher: nn.Module, model: nn.Module, how: str = "in place") -> None:
    """The ways in which people write it."""
    with torch.no_grad():
        if how == "in place":
            for p, q in zip(teacher.parameters(), model.parameters()):
                p.mul_(0.9).add_(q, alpha=0.1)
        elif how == "data":
            for p, q in zip(teacher.parameters(), model.parameters()):
                p.data.copy_(0.9 * p.data + 0.1 * q.data)
        elif how == "foreach":
            torch._foreach_lerp_(list(teacher.parameters()), list(model.parameters()), 0.1)
        else:
            new = model.state_dict()
            teacher.load_state_dict({n: t.lerp(new[n], 0.1) if t.is_floating_point() else t
                                     for n, t in teacher.state_dict().items()})


class Method:
    """One training method: `step` is what is compiled, `between` what a training loop does between steps."""

    steps = 4

    def __init__(self):
        torch.manual_seed(0)
        self.model = network()
        self.build()
        self.optimizer = self.make_optimizer()

    def build(self) -> None:
        pass

    def make_optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.model.parameters(), lr=0.02)

    def batch(self, number: int) -> tuple[torch.Tensor, ...]:
        generator = torch.Generator().manual_seed(number)
        return torch.randn(6, 6, generator=generator), torch.randn(6, 6, generator=generator)

    def finish(self, loss, optimizer):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    def between(self, number: int, result) -> None:
        pass

    def state(self) -> dict:
        modules = {n: m.state_dict() for n, m in vars(self).items() if isinstance(m, nn.Module)}
        return {**modules, **{n: t for n, t in vars(self).items() if isinstance(t, torch.Tensor)}}


class MeanTeacher(Method):
    def build(self):
        self.teacher = copy.deepcopy(self.model)

    def step(self, model, optimizer, x, y):
        with torch.no_grad():
            target = self.teacher(x)
        return self.finish(F.mse_loss(model(y), target) + model(x).square().mean(), optimizer)

    def between(self, number, result):
        moving_average(self.teacher, self.model)


class MeanTeacherByData(MeanTeacher):
    def between(self, number, result):
        moving_average(self.teacher, self.model, "data")


class MeanTeacherByForeach(MeanTeacher):
    def between(self, number, result):
        moving_average(self.teacher, self.model, "foreach")


class MeanTeacherByStateDict(MeanTeacher):
    def between(self, number, result):
        moving_average(self.teacher, self.model, "state_dict")


class SwaTeacher(MeanTeacher):
    """torch.optim.swa_utils keeps the average."""

    def build(self):
        self.teacher = torch.optim.swa_utils.AveragedModel(
            self.model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))

    def between(self, number, result):
        self.teacher.update_parameters(self.model)


class Byol(Method):
    """The target moves inside of the step."""

    def build(self):
        self.target = copy.deepcopy(self.model)
        self.predictor = nn.Linear(4, 4)
        self.target.requires_grad_(False)

    def make_optimizer(self):
        return torch.optim.SGD([*self.model.parameters(), *self.predictor.parameters()], lr=0.05, momentum=0.9)

    def step(self, model, optimizer, x, y):
        online = F.normalize(self.predictor(model(x)), dim=-1)
        with torch.no_grad():
            target = F.normalize(self.target(y), dim=-1)
        loss = self.finish((2 - 2 * (online * target).sum(-1)).mean(), optimizer)
        moving_average(self.target, model)
        return loss


class DinoLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("center", torch.zeros(1, 4))

    def forward(self, student, teacher):
        target = F.softmax((teacher - self.center) / 0.4, -1)
        with torch.no_grad():
            self.center.copy_(0.9 * self.center + 0.1 * teacher.mean(0, keepdim=True))
        return -(target * F.log_softmax(student / 0.5, -1)).sum(-1).mean()


class Dino(Method):
    def build(self):
        self.teacher = copy.deepcopy(self.model)
        self.loss = DinoLoss()

    def step(self, model, optimizer, x, y):
        with torch.no_grad():
            targets = [self.teacher(view) for view in (x, y)]
        loss = self.loss(model(y), targets[0]) + self.loss(model(x), targets[1])
        return self.finish(loss, optimizer)

    def between(self, number, result):
        moving_average(self.teacher, self.model)


class Moco(Method):
    """The queue is a plain tensor, written between the steps; once it is another tensor, and once written by numpy."""

    def build(self):
        self.key_encoder = copy.deepcopy(self.model)
        self.queue = F.normalize(torch.randn(12, 4), dim=-1)

    def step(self, model, optimizer, x, y):
        queries = F.normalize(model(x), dim=-1)
        with torch.no_grad():
            keys = F.normalize(self.key_encoder(y), dim=-1)
        logits = torch.cat([(queries * keys).sum(-1, keepdim=True), queries @ self.queue.T], 1) / 0.2
        labels = torch.zeros(len(x), dtype=torch.long)
        return self.finish(F.cross_entropy(logits, labels), optimizer), keys

    def between(self, number, result):
        moving_average(self.key_encoder, self.model)
        keys = result[1].detach()
        if number == 0:
            self.queue = torch.ones(12, 4) / 2
        elif number == 1:
            self.queue = torch.cat([keys, self.queue[6:]])
        elif number == 2:
            self.queue.numpy()[:6] = keys.numpy()
        else:
            self.queue.data[6:] = keys


class Dpo(Method):
    """The reference model is the trained one of every second step, a new copy each time."""

    steps = 6

    def build(self):
        self.reference = copy.deepcopy(self.model).requires_grad_(False)

    def step(self, model, optimizer, x, y):
        def log_ratio(of):
            return of(x).log_softmax(-1)[:, 0] - of(y).log_softmax(-1)[:, 0]
        with torch.no_grad():
            reference = log_ratio(self.reference)
        return self.finish(-F.logsigmoid(0.5 * (log_ratio(model) - reference)).mean(), optimizer)

    def between(self, number, result):
        if number % 2:
            self.reference = copy.deepcopy(self.model).requires_grad_(False)


class DpoWithGradients(Dpo):
    """The reference gets gradients that nobody clears, and that a new copy has not."""

    def build(self):
        self.reference = copy.deepcopy(self.model)

    def step(self, model, optimizer, x, y):
        gap = model(x) - self.reference(x)
        return self.finish(F.softplus(gap - model(y)).mean(), optimizer)

    def between(self, number, result):
        if number % 2:
            self.reference = copy.deepcopy(self.model)


class DpoThatReadsGradients(DpoWithGradients):
    """And that the step reads: they are state."""

    def step(self, model, optimizer, x, y):
        loss = super().step(model, optimizer, x, y)
        return loss, sum(p.grad.square().sum() for p in self.reference.parameters())


class Distillation(Method):
    """Teachers in a list and in a dict, one with dropout that is off."""

    def build(self):
        self.teachers = [network(), nn.Sequential(network(), nn.Dropout(0.5)).eval()]
        self.options = {"projector": nn.Linear(4, 4)}

    def step(self, model, optimizer, x, y):
        with torch.no_grad():
            target = sum(teacher(x) for teacher in self.teachers)
            target = self.options["projector"](target)
        return self.finish(F.mse_loss(model(x), target), optimizer)

    def between(self, number, result):
        with torch.no_grad():
            for p in (*self.teachers[0].parameters(), *self.teachers[1].parameters(),
                      *self.options["projector"].parameters()):
                p.mul_(0.8)
        if number == 2:
            self.teachers[1] = copy.deepcopy(self.teachers[0])
            self.teachers[1] = nn.Sequential(self.teachers[1], nn.Dropout(0.5)).eval()

    def state(self):
        return {**super().state(), "teachers": [t.state_dict() for t in self.teachers]}


class Proximal(Method):
    """Lists of the parameters of another model, and of clones; weights of a loss; EWC."""

    def build(self):
        self.other = network()
        self.others = list(self.other.parameters())
        self.anchors = [p.detach().clone() for p in self.model.parameters()]
        self.importance = {n: torch.rand_like(p) for n, p in self.model.named_parameters()}

    def step(self, model, optimizer, x, y):
        loss = F.mse_loss(model(x), y[:, :4])
        for (name, p), q, anchor in zip(model.named_parameters(), self.others, self.anchors):
            loss = loss + (self.importance[name] * (p - anchor).square()).sum() * 0.1
            loss = loss + (p - q.detach()).square().sum() * 0.01
        return self.finish(loss, optimizer)

    def between(self, number, result):
        with torch.no_grad():
            for anchor, q, p in zip(self.anchors, self.others, self.model.parameters()):
                anchor.copy_(p)
                q.mul_(0.9)
            for weight in self.importance.values():
                weight.mul_(0.9)


class ClassWeights(Method):
    """A loss module with a buffer."""

    def build(self):
        self.criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0, 4.0]))

    def step(self, model, optimizer, x, y):
        return self.finish(self.criterion(model(x), y[:, :4].argmax(-1)), optimizer)

    def between(self, number, result):
        self.criterion.weight[number % 4] += 1.0


class Projector(Method):
    """A module that the optimizer trains, and that is no argument."""

    def build(self):
        self.projector = nn.Linear(4, 3)

    def make_optimizer(self):
        return torch.optim.AdamW([{"params": self.model.parameters()},
                                  {"params": self.projector.parameters(), "lr": 0.1}], lr=0.02)

    def step(self, model, optimizer, x, y):
        return self.finish(F.mse_loss(self.projector(model(x)), y[:, :3]), optimizer)

    def between(self, number, result):
        if number == 1:
            with torch.no_grad():
                self.projector.weight.mul_(0.5)


METHODS = [MeanTeacher, MeanTeacherByData, MeanTeacherByForeach, MeanTeacherByStateDict, SwaTeacher, Byol, Dino, Moco,
           Dpo, DpoWithGradients, DpoThatReadsGradients, Distillation, Proximal, ClassWeights, Projector]


def check(a, b) -> None:
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_methods(method, whole: bool) -> None:
    """Losses, and the whole state after the last step, are eager's, and nothing is compiled again: on ranks drawn by the
    method's name, or on all."""
    for ranks in RANKS if whole else Random(method.__name__).sample(RANKS, 2):
        train(method, ranks)


def train(method, ranks: int) -> None:
    ours, eager = method(), method()
    compiled = spmd.compile(ours.step, ranks=ranks)
    for number in range(method.steps):
        batch = ours.batch(number)
        result = compiled(ours.model, ours.optimizer, *batch)
        expected = eager.step(eager.model, eager.optimizer, *batch)
        check(result, expected)
        for one, given in ((ours, result), (eager, expected)):
            one.between(number, given)
    check(ours.state(), eager.state())
    assert compiled.compiles == 1


@pytest.mark.parametrize("ranks", RANKS)
def test_globals_closures_and_unregistered_attributes(ranks: int) -> None:
    def build():
        torch.manual_seed(1)
        model, teacher, second = network(), network(), network()
        model.teachers = [second]  # not registered
        return model, teacher, second, torch.optim.SGD(model.parameters(), lr=0.1)

    def make_step(teacher):
        @torch.no_grad()
        def target(x):
            return teacher(x)

        def step(model, optimizer, x):
            loss = F.mse_loss(model(x), target(x) + model.teachers[0](x).detach())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss
        return step

    ours, eager = build(), build()
    compiled, step = spmd.compile(make_step(ours[1]), ranks=ranks), make_step(eager[1])
    for number in range(3):
        x = torch.randn(6, 6)
        check(compiled(ours[0], ours[3], x), step(eager[0], eager[3], x))
        for _, first, second, _ in (ours, eager):
            moving_average(first, second, "data")
            moving_average(second, first)
    assert compiled.compiles == 1


def test_two_compiled_steps_that_hold_each_others_model() -> None:
    """A GAN: what one step trains, the other reads."""
    def build():
        torch.manual_seed(2)
        generator, critic = network(3, 6), network(6, 1)
        return types.SimpleNamespace(generator=generator, critic=critic, seen=[],
                                     of_generator=torch.optim.SGD(generator.parameters(), lr=0.1),
                                     of_critic=torch.optim.SGD(critic.parameters(), lr=0.1))

    def steps(gan):
        def train_critic(critic, optimizer, real, noise):
            with torch.no_grad():
                fake = gan.generator(noise)
            loss = F.softplus(-critic(real)).mean() + F.softplus(critic(fake)).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        def train_generator(generator, optimizer, noise):
            critic = gan.critic.requires_grad_(False)
            loss = F.softplus(-critic(generator(noise))).mean()
            loss.backward()
            gan.critic.requires_grad_(True)
            optimizer.step()
            optimizer.zero_grad()
            return loss
        return train_critic, train_generator

    ours, eager = build(), build()
    compiled, plain = [spmd.compile(s, ranks=2) for s in steps(ours)], steps(eager)
    for number in range(4):
        real, noise = torch.randn(6, 6), torch.randn(6, 3)
        check(compiled[0](ours.critic, ours.of_critic, real, noise),
              plain[0](eager.critic, eager.of_critic, real, noise))
        check(compiled[1](ours.generator, ours.of_generator, noise),
              plain[1](eager.generator, eager.of_generator, noise))
    check(ours.critic.state_dict(), eager.critic.state_dict())
    check(ours.generator.state_dict(), eager.generator.state_dict())
    assert [c.compiles for c in compiled] == [1, 1]


def test_a_held_models_gradients_are_left_to_who_clears_them() -> None:
    """A GAN as tutorials write it: each step clears first, and the generator's leaves gradients in the critic."""
    def build():
        torch.manual_seed(4)
        generator, critic = nn.Linear(3, 6), nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
        return types.SimpleNamespace(generator=generator, critic=critic,
                                     of_generator=torch.optim.SGD(generator.parameters(), lr=0.1),
                                     of_critic=torch.optim.SGD(critic.parameters(), lr=0.1))

    def steps(gan):
        def finish(loss, optimizer):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        def train_critic(critic, optimizer, real, noise):
            return finish(F.softplus(-critic(real)).mean() + F.softplus(critic(gan.generator(noise).detach())).mean(),
                          optimizer)

        def train_generator(generator, optimizer, noise):
            return finish(F.softplus(-gan.critic(generator(noise))).mean(), optimizer)
        return train_critic, train_generator

    ours, eager = build(), build()
    compiled, plain = [spmd.compile(s, ranks=2) for s in steps(ours)], steps(eager)
    for number in range(3):
        real, noise = torch.randn(6, 6), torch.randn(6, 3)
        check(compiled[0](ours.critic, ours.of_critic, real, noise),
              plain[0](eager.critic, eager.of_critic, real, noise))
        check(compiled[1](ours.generator, ours.of_generator, noise),
              plain[1](eager.generator, eager.of_generator, noise))
        with pytest.raises(RuntimeError, match="is not kept on the ranks"):
            ours.critic[0].weight.grad.norm()
    check(ours.critic.state_dict(), eager.critic.state_dict())
    kinds = {(i["kind"], i.get("state")) for i in compiled[1].package.step["inputs"]}
    assert ("state", "grad") not in kinds, "nothing reads the critic's gradients in the generator's step"


def test_another_form_is_another_program() -> None:
    ours, eager = MeanTeacher(), MeanTeacher()
    compiled = spmd.compile(ours.step, ranks=2)

    def both(change) -> None:
        change(ours), change(eager)
        batch = ours.batch(0)
        check(compiled(ours.model, ours.optimizer, *batch), eager.step(eager.model, eager.optimizer, *batch))

    def wider(method):
        torch.manual_seed(3)
        method.teacher = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 4))

    both(lambda method: None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spmd.Remark)
        both(lambda method: method.teacher.eval())
        both(wider)
        both(lambda method: setattr(method, "teacher", method.model))  # holds nothing, and starts anew
        both(wider)
    assert compiled.compiles == 5
    check(ours.state(), eager.state())


def test_lists_that_grow_and_criteria_that_change() -> None:
    """What a step goes through, and modules without tensors: another number of them, or another one, is another
    program; another value is read as it is."""
    class Scale(nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        def forward(self, x):
            return x * self.factor

    torch.manual_seed(5)
    ours = nn.Linear(6, 4)
    eager = copy.deepcopy(ours)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (ours, eager)]
    held = types.SimpleNamespace(criterion=nn.MSELoss(), teachers=[nn.Linear(6, 4)], scales=[Scale(1.0), Scale(2.0)])

    def step(model, optimizer, x):
        target = sum(teacher(x).detach() for teacher in held.teachers)
        for scale in held.scales:
            x = scale(x)
        loss = held.criterion(model(x), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    compiled = spmd.compile(step, ranks=2)
    for number, (change, compiles) in enumerate((
            (lambda: None, 1), (lambda: held.teachers.append(nn.Linear(6, 4)), 2), (lambda: held.teachers.pop(0), 2),
            (lambda: setattr(held, "criterion", nn.L1Loss()), 3), (lambda: setattr(held, "criterion", nn.L1Loss()), 3),
            (lambda: setattr(held.scales[0], "factor", 3.0), 4), (lambda: held.scales.append(Scale(0.5)), 5))):
        change()
        x = torch.randn(6, 6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", spmd.Remark)
            check(compiled(ours, optimizers[0], x), step(eager, optimizers[1], x))
        assert compiled.compiles == compiles, number


@pytest.mark.sample(2)
@pytest.mark.parametrize("uses", ["first", "second"])
@pytest.mark.parametrize("changes", ["first", "second"])
@pytest.mark.parametrize("what", ["tensor", "module", "part of a module", "entry"])
def test_one_thing_that_is_reached_in_two_ways(what: str, changes: str, uses: str) -> None:
    """Until one of them leads to another: which of them the step goes, nobody can tell."""
    def make() -> types.SimpleNamespace:
        torch.manual_seed(7)
        kept = nn.Sequential(nn.Linear(6, 4), nn.Tanh()) if what == "part of a module" else \
            nn.Linear(6, 4) if what == "module" else torch.randn(4, 6)
        inside = kept[0] if what == "part of a module" else kept
        held = types.SimpleNamespace(first=[inside] if what == "entry" else inside, whole=kept, second=inside)
        held.model = nn.Linear(6, 4)
        held.optimizer = torch.optim.SGD(held.model.parameters(), lr=0.1)
        return held

    def step_of(held: types.SimpleNamespace):
        def step(x):
            target = getattr(held, uses)
            target = target[0] if isinstance(target, list) else target
            target = (target(x) if isinstance(target, nn.Module) else x @ target.T).detach()
            if isinstance(held.whole, nn.Module):
                target = target + held.whole(x).detach()
            loss = F.mse_loss(held.model(x), target)
            held.optimizer.zero_grad()
            loss.backward()
            held.optimizer.step()
            return loss
        return step

    ours, eager = make(), make()
    steps = spmd.compile(step_of(ours), ranks=2), step_of(eager)
    for number in range(4):
        if number == 2:
            for held in (ours, eager):
                torch.manual_seed(8)
                new = nn.Linear(6, 4) if "module" in what else torch.randn(4, 6)
                setattr(held, changes, [new] if what == "entry" and changes == "first" else new)
        x = torch.randn(6, 6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", spmd.Remark)
            check(*(step(x) for step in steps))
        check(ours.model.state_dict(), eager.model.state_dict())


def test_batches_of_two_shapes_share_what_is_held() -> None:
    ours, eager = Moco(), Moco()
    compiled = spmd.compile(ours.step, ranks=2)
    for number, rows in enumerate((6, 4, 6, 4)):
        batch = [t[:rows] for t in ours.batch(number)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", spmd.Remark)
            check(compiled(ours.model, ours.optimizer, *batch), eager.step(eager.model, eager.optimizer, *batch))
        for method in (ours, eager):
            moving_average(method.key_encoder, method.model)
            with torch.no_grad():
                method.queue.mul_(0.5)
    assert len({id(program.home) for program in compiled.training_state.programs}) == 1 and compiled.compiles == 2


def test_it_is_sharded_and_saved_with_the_rest(tmp_path) -> None:
    ours = MeanTeacher()
    compiled = spmd.compile(ours.step, ranks=2)
    compiled(ours.model, ours.optimizer, *ours.batch(0))
    units = {unit.name: unit for unit in compiled.plan.units}
    assert any("teacher" in unit.modules for unit in units.values()), units
    inputs = {i["name"]: i["kind"] for i in compiled.package.step["inputs"] if i["kind"] in ("param", "buffer")}
    assert inputs["teacher.0.weight"] == "param" and inputs["teacher.1.running_mean"] == "buffer"
    moving_average(ours.teacher, ours.model)
    expected = {n: t.clone() for n, t in ours.teacher.state_dict().items()}
    with spmd.load(compiled.save(tmp_path / "step.spmd")) as trainer:
        for name, tensor in expected.items():
            kind = inputs[f"teacher.{name}"]
            check(torch.from_numpy(trainer.read(kind, f"teacher.{name}")), tensor)


def test_what_nobody_can_follow_is_an_error() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    strangers = iter([network()] * 8)
    scripted = torch.jit.trace(nn.Linear(6, 4), torch.zeros(2, 6))
    scale = nn.Parameter(torch.ones(4))

    def finish(loss, optimizer):
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    def from_nowhere(model, optimizer, x):
        return finish(F.mse_loss(model(x), functools.reduce(lambda a, b: b, strangers)(x).detach()), optimizer)

    def through_script(model, optimizer, x):
        return finish(F.mse_loss(model(x), scripted(x).detach()), optimizer)

    def with_gradient(model, optimizer, x):
        return finish((model(x) * scale).square().mean(), optimizer)

    x = torch.randn(6, 6)
    for step, message in ((from_nowhere, "(?s)calls a Linear whose tensor 'weight' the capture cannot find.*test_held.*hint: "),
                          (through_script, "(?s)'scripted.*TorchScript"),
                          (with_gradient, r"(?s)leaves a gradient in 'scale'.*hint: .*detach\(\)")):
        with pytest.raises(spmd.CaptureError, match=message):
            spmd.capture(step, model, optimizer, x)
    assert scale.grad is None


@pytest.mark.parametrize("policy", ["class:Linear", "size:40", "none"])
def test_a_policy_chooses_beside_a_teacher(policy: str) -> None:
    """The teacher is a unit of its own, whatever the policy makes of the model."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4))
    teacher = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @spmd.compile(ranks=2, policy=policy)
    def step(model, optimizer, x):
        with torch.no_grad():
            target = teacher(x) + 1
        loss = F.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    twin, x = copy.deepcopy(model), torch.randn(6, 6)
    other = torch.optim.SGD(twin.parameters(), lr=0.1)
    for _ in range(3):
        loss = F.mse_loss(twin(x), teacher(x).detach() + 1)
        loss.backward()
        other.step()
        other.zero_grad()
        torch.testing.assert_close(step(model, optimizer, x), loss.detach())
    assert "  teacher" in step.report()
