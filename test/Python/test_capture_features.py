"""Steps as people write them, end to end: captured, equal to eager; partitioned on 1, 2 and 4 ranks, equal to the
captured step in float64; trained on two ranks of the host, like eager."""
from __future__ import annotations

import copy
import json

import mlp
import pytest
import torch
import torch.nn.functional as F
from step_check import StepCheck
from step_interpreter import StepInterpreter
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_, parametrizations
from torch.utils.checkpoint import checkpoint

import spmd


def finish(loss, optimizer):
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def cross_entropy(model, x, y, **options):
    return F.cross_entropy(model(x), y, **options)


def item_returned(model, optimizer, x, y):
    return finish(cross_entropy(model, x, y), optimizer).item()


def dict_of_outputs(model, optimizer, x, y):
    logits = model(x)
    loss = finish(F.cross_entropy(logits, y), optimizer)
    return {"loss": loss.detach(), "positive": (logits > 0).float().mean(), "more": [logits.detach(), "text"]}


def microbatches_sliced(model, optimizer, x, y):
    total = 0
    for k in range(2):
        loss = cross_entropy(model, x[k * 4:(k + 1) * 4], y[k * 4:(k + 1) * 4]) / 2
        loss.backward()
        total = total + loss.detach()
    optimizer.step()
    optimizer.zero_grad()
    return total


def microbatches_chunked(model, optimizer, x, y):
    total = 0
    for rows, labels in zip(x.chunk(2), y.chunk(2)):
        loss = cross_entropy(model, rows, labels) / 2
        loss.backward()
        total = total + loss.detach()
    optimizer.step()
    optimizer.zero_grad()
    return total


def gradients_zeroed_to_zero(model, optimizer, x, y):
    loss = cross_entropy(model, x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    return loss


def gradients_never_zeroed(model, optimizer, x, y):
    loss = cross_entropy(model, x, y)
    loss.backward()
    optimizer.step()
    return loss


def label_smoothing(model, optimizer, x, y):
    return finish(cross_entropy(model, x, y, label_smoothing=0.1, ignore_index=2), optimizer)


def hook_on_activation(model, optimizer, x, y):
    logits = model(x)
    logits.register_hook(lambda gradient: gradient * 0.5)
    return finish(F.cross_entropy(logits, y), optimizer)


def hooks_on_parameters(model, optimizer, x, y):
    handles = [p.register_hook(lambda gradient: gradient.clamp(-0.01, 0.01)) for p in model.parameters()]
    loss = finish(cross_entropy(model, x, y), optimizer)
    for handle in handles:
        handle.remove()
    return loss


def hooks_after_accumulation(model, optimizer, x, y):
    def halve(parameter):
        parameter.grad.mul_(0.5)

    handles = [p.register_post_accumulate_grad_hook(halve) for p in model.parameters()]
    loss = finish(cross_entropy(model, x, y), optimizer)
    for handle in handles:
        handle.remove()
    return loss


def clipped(norm_type, foreach):
    def step(model, optimizer, x, y):
        loss = cross_entropy(model, x, y)
        loss.backward()
        norm = clip_grad_norm_(model.parameters(), 0.1, norm_type=norm_type, foreach=foreach)
        optimizer.step()
        optimizer.zero_grad()
        return loss, norm
    return step


def clipped_by_value(foreach):
    def step(model, optimizer, x, y):
        loss = cross_entropy(model, x, y)
        loss.backward()
        clip_grad_value_(model.parameters(), 0.01, foreach=foreach)
        optimizer.step()
        optimizer.zero_grad()
        return loss
    return step


def plain(model, optimizer, x, y):
    return finish(cross_entropy(model, x, y), optimizer)


def average_in_buffers(model, optimizer, x, y):
    loss = finish(cross_entropy(model.net, x, y), optimizer)
    with torch.no_grad():
        for name, parameter in model.net.named_parameters():
            model.get_buffer(name.replace(".", "_")).lerp_(parameter, 0.1)
    return loss


class Checkpointed(mlp.MLP):
    """Both kinds of activation checkpointing."""

    def __init__(self, use_reentrant):
        super().__init__(12, 20, 6)
        self.use_reentrant, self.middle = use_reentrant, nn.Linear(20, 20)

    def forward(self, x):
        return self.fc2(checkpoint(lambda h: torch.tanh(self.middle(h)), self.fc1(x), use_reentrant=self.use_reentrant))


class Averaged(nn.Module):
    """Parameters and a moving average of them."""

    def __init__(self):
        super().__init__()
        self.net = mlp.MLP(12, 20, 6)
        for name, parameter in self.net.named_parameters():
            self.register_buffer(name.replace(".", "_"), parameter.detach().clone())


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 6)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.c(torch.tanh(self.b(torch.tanh(self.a(x)))))


class SharedGradient(nn.Module):
    """Two parameters with one gradient."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(12, 6, bias=False)
        self.first, self.second = nn.Parameter(torch.zeros(6)), nn.Parameter(torch.ones(6))

    def forward(self, x):
        return self.fc(x) + self.first + self.second


def frozen():
    model = mlp.MLP(12, 20, 6)
    model.fc1.weight.requires_grad_(False)
    model.unused = nn.Linear(3, 3)
    return model


def weight_normed():
    model = mlp.MLP(12, 20, 6)
    parametrizations.weight_norm(model.fc1)
    return model


def net():
    return mlp.MLP(12, 20, 6)


# name -> (step, model, whether the host trains it too)
CASES = {
    "loss.item() returned": (item_returned, net, True),
    "dict of outputs": (dict_of_outputs, net, True),
    "microbatches by slices": (microbatches_sliced, net, True),
    "microbatches by chunk": (microbatches_chunked, net, False),
    "zero_grad(set_to_none=False)": (gradients_zeroed_to_zero, net, True),
    "gradients never zeroed": (gradients_never_zeroed, net, False),
    "frozen and unused parameters": (plain, frozen, False),
    "checkpoint": (plain, lambda: Checkpointed(False), False),
    "checkpoint, reentrant": (plain, lambda: Checkpointed(True), False),
    "label smoothing": (label_smoothing, net, True),
    "hook on an activation": (hook_on_activation, net, False),
    "hooks on parameters": (hooks_on_parameters, net, False),
    "hooks after accumulation": (hooks_after_accumulation, net, False),
    "clip norm 2, foreach": (clipped(2.0, True), net, False),
    "clip norm 2": (clipped(2.0, False), net, True),
    "clip norm inf, foreach": (clipped(float("inf"), True), net, True),
    "clip norm inf": (clipped(float("inf"), False), net, False),
    "clip norm 1, foreach": (clipped(1.0, True), net, True),
    "clip norm 3, foreach": (clipped(3, True), net, True),
    "clip norm 0.5": (clipped(0.5, False), net, True),
    "clip value, foreach": (clipped_by_value(True), net, False),
    "clip value": (clipped_by_value(False), net, False),
    "moving average in buffers": (average_in_buffers, Averaged, False),
    "tied by assignment": (plain, Tied, False),
    "two parameters with one gradient": (plain, SharedGradient, False),
}


def make(name: str):
    step, build, _ = CASES[name]
    torch.manual_seed(0)
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    batches = [(torch.randn(8, 12), torch.randint(6, (8,))) for _ in range(5)]
    return step, model, optimizer, batches


@pytest.mark.filterwarnings("ignore:the step does not update")
@pytest.mark.parametrize("name", CASES)
def test_step(name: str, tmp_path) -> None:
    step, model, optimizer, batches = make(name)
    reference = batches if CASES[name][2] else None
    package = spmd.capture(step, model, optimizer, *batches[0], reference=reference)

    run, twin, twin_optimizer = StepInterpreter(json.loads(package.text()),
                                                package.weights), *copy.deepcopy((model, optimizer))
    for x, y in batches:
        expected = [v for v in torch.utils._pytree.tree_leaves(step(twin, twin_optimizer, x, y))
                    if not isinstance(v, str)]
        for got, wanted in zip(run({"x": x, "y": y}), expected):
            torch.testing.assert_close(torch.as_tensor(got).float(), torch.as_tensor(wanted).detach().float(),
                                       rtol=1e-6, atol=1e-6)
    for own, value in (dict(twin.named_parameters()) | dict(twin.named_buffers())).items():
        torch.testing.assert_close(run.tensors()[own], value.detach(), rtol=0, atol=1e-6)

    check = StepCheck(package, tmp_path)
    for ranks in (1, 2, 4):
        said = check.interpret(ranks, "class:Linear" if ranks == 4 else "none")
        assert "run on every rank alike" not in said, "no matrix product is replicated"
    if reference:
        check.train(2, rtol=2e-5)


def add_hooks(model) -> None:
    def halve(parameter):
        parameter.grad.mul_(0.5)

    for parameter in model.parameters():
        parameter.register_hook(lambda gradient: gradient.clamp(-0.01, 0.01))
        parameter.register_post_accumulate_grad_hook(halve)


def test_hooks_that_parameters_have_before_the_step(tmp_path) -> None:
    """They are carried over to what is traced, and to the copy that the reference is trained on."""
    _, model, optimizer, batches = make("hooks on parameters")
    add_hooks(model)
    package = spmd.capture(plain, model, optimizer, *batches[0], reference=batches)
    run, (twin, twin_optimizer) = StepInterpreter(json.loads(package.text()),
                                                  package.weights), copy.deepcopy((model, optimizer))
    add_hooks(twin)
    for x, y in batches:
        plain(twin, twin_optimizer, x, y)
        run({"x": x, "y": y})
    for name, value in twin.named_parameters():
        torch.testing.assert_close(run.tensors()[name], value.detach(), rtol=0, atol=1e-6)
    StepCheck(package, tmp_path).train(2, rtol=2e-5)
