"""Training steps that compute with parameters and gradients themselves, outside of the usual forward and backward."""
from __future__ import annotations

import dataclasses
from typing import Callable

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, prune

#: Everything has this size, the batch too: nothing can be told apart by its shape.
WIDTH = 6


class Net(nn.Module):
    """Two square layers, of one weight if tied, and a head; `function`, if there is one, is what a layer does with its
    input and weight."""

    def __init__(self, tied: bool, function: Callable | None = None):
        super().__init__()
        self.first, self.second = (nn.Linear(WIDTH, WIDTH) for _ in range(2))
        self.head = nn.Linear(WIDTH, 4)
        if tied:
            self.second.weight = self.first.weight
        self.function = function

    def forward(self, x):
        for layer in (self.first, self.second):
            x = torch.tanh(self.function(x, layer.weight) + layer.bias if self.function else layer(x))
        return self.head(x)


class WithAnchors(Net):
    """Keeps where the weights were, and how much each entry counts (elastic weight consolidation)."""

    def __init__(self, tied: bool):
        super().__init__(tied)
        for index, p in enumerate(self.parameters()):
            self.register_buffer(f"anchor_{index}", p.detach().clone())
            self.register_buffer(f"fisher_{index}", torch.rand_like(p))

    def anchors(self):
        return [(p, getattr(self, f"anchor_{i}"), getattr(self, f"fisher_{i}"))
                for i, p in enumerate(self.parameters())]


class LowRank(nn.Module):
    """W + A B, all trained or W frozen."""

    def __init__(self, tied: bool, frozen: bool = True):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WIDTH, WIDTH) / 3, requires_grad=not frozen)
        self.a = nn.Parameter(torch.randn(WIDTH, 2) / 3)
        self.b = nn.Parameter(torch.randn(2, WIDTH) / 3) if not tied else None
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, x):
        b = self.a.t() if self.b is None else self.b
        return self.head(torch.tanh(F.linear(x, self.weight + 0.5 * (self.a @ b))))


def task(model, x, y):
    return F.cross_entropy(model(x), y)


def penalized(penalty: Callable) -> Callable:
    """The usual step, with a penalty on the parameters in its loss."""
    def step(model, optimizer, x, y):
        loss = task(model, x, y) + 0.1 * penalty(model)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss
    return step


def with_gradients(change: Callable) -> Callable:
    """The usual step; `change` works on parameters with gradients before the optimizer does."""
    def step(model, optimizer, x, y):
        loss = task(model, x, y)
        loss.backward()
        with torch.no_grad():
            change([p for p in model.parameters() if p.grad is not None])
        optimizer.step()
        optimizer.zero_grad()
        return loss
    return step


def afterwards(change: Callable) -> Callable:
    """The usual step; `change` works on the model after the optimizer did."""
    def step(model, optimizer, x, y):
        loss = task(model, x, y)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            change(model)
        optimizer.zero_grad()
        return loss
    return step


usual = penalized(lambda model: 0.0)


def each(function: Callable) -> Callable:
    """`function` of each parameter."""
    def change(parameters):
        for p in parameters:
            function(p)
    return change


def weights(model):
    return [model.first.weight, model.second.weight]


# Reparametrizations --------------------------------------------------------------------------------------------------

def share(first: nn.Module, second: nn.Module) -> None:
    """Every parameter of `second` becomes the one of the same name of `first`."""
    for part, other in zip(first.modules(), second.modules(), strict=True):
        for name in dict(part.named_parameters(recurse=False)):
            if not name.endswith("bias"):
                setattr(other, name, getattr(part, name))


def with_layers(wrap: Callable) -> Callable:
    """Tied, both layers compute their weights from the same parameters (and each from its own buffers)."""
    def make(tied: bool):
        model = Net(False)
        for layer in (model.first, model.second):
            wrap(layer)
        if tied:
            share(model.first, model.second)
        return model
    return make


def standardized(x, weight):
    mean, std = weight.mean(1, keepdim=True), weight.std(1, keepdim=True)
    return F.linear(x, (weight - mean) / (std + 1e-5))


def pruned(tied: bool):
    model = Net(False)
    prune.random_unstructured(model.first, "weight", 0.4)
    prune.ln_structured(model.second, "weight", 0.3, n=2, dim=0)
    if tied:
        share(model.first, model.second)
    return model


class Masked(Net):
    def __init__(self, tied: bool):
        super().__init__(tied, lambda x, w: F.linear(x, torch.where(self.mask, w, 0.0)))
        self.register_buffer("mask", torch.rand(WIDTH, WIDTH) > 0.4)


class Numbers(nn.Module):
    """Parameters of one element, of every rank; a unit of their own under `class:Gains`."""

    class Gains(nn.Module):
        def __init__(self):
            super().__init__()
            self.number, self.one = nn.Parameter(torch.tensor(0.8)), nn.Parameter(torch.tensor([1.2]))
            self.cell = nn.Parameter(torch.tensor([[0.9]]))

        def forward(self, x):
            return x * self.number * self.one + self.cell

    def __init__(self, tied: bool):
        super().__init__()
        self.first, self.second, self.gains = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4), self.Gains()
        self.again = self.gains if tied else self.Gains()

    def forward(self, x):
        return self.second(self.again(torch.tanh(self.first(self.gains(x)))))


class Convolution(nn.Module):
    """Weights of four dimensions, standardized."""

    def __init__(self, tied: bool):
        super().__init__()
        self.conv, self.head = nn.Conv2d(1, 3, (2, 3), bias=not tied), nn.Linear(12, 4)

    def forward(self, x):
        w = self.conv.weight
        w = (w - w.mean((1, 2, 3), keepdim=True)) / (w.std((1, 2, 3), keepdim=True) + 1e-4)
        return self.head(F.conv2d(x.view(-1, 1, 2, 3).repeat(1, 1, 2, 2), w, self.conv.bias).flatten(1)[:, :12])


class Summed(nn.Module):
    """Two parameters of which only the sum is used: both have the same gradient."""

    def __init__(self, tied: bool):
        super().__init__()
        self.left, self.right = (nn.Parameter(torch.randn(WIDTH, WIDTH) / 3) for _ in range(2))
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, x):
        return self.head(torch.tanh(x @ (self.left + self.right)))


# Penalties -----------------------------------------------------------------------------------------------------------

def orthogonality(model):
    return sum((w.t() @ w - torch.eye(WIDTH)).pow(2).sum() for w in weights(model))


def total_variation(model):
    return sum((w[1:] - w[:-1]).abs().sum() + (w[:, 1:] - w[:, :-1]).abs().sum() for w in weights(model))


def masked_penalty(model):
    return sum(torch.where(w > 0, w, torch.zeros_like(w)).sum() + w.masked_fill(w < 0.1, 0.0).pow(2).sum()
               for w in weights(model))


def entropy(model):
    return sum(-(w.softmax(-1) * w.log_softmax(-1)).sum() for w in weights(model))


def consolidation(model):
    return sum((fisher * (p - anchor).pow(2)).sum() for p, anchor, fisher in model.anchors())


def proximal(model):
    return sum(torch.linalg.vector_norm(p - anchor) ** 2 for p, anchor, _ in model.anchors())


def smoothness_of_gradients(model, optimizer, x, y):
    """The gradient of a gradient: the norm of the loss's gradient is part of the loss."""
    first = task(model, x, y)
    gradients = torch.autograd.grad(first, [model.first.weight, model.head.weight], create_graph=True)
    loss = first + 0.1 * sum(g.pow(2).sum() for g in gradients)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def gradient_penalty(model, optimizer, x, y):
    """WGAN-GP: how steep the model is at its inputs."""
    inputs = x.detach().requires_grad_()
    out = model(inputs)
    slope, = torch.autograd.grad(out.sum(), inputs, create_graph=True)
    loss = F.cross_entropy(out, y) + 0.1 * ((slope.norm(dim=1) - 1) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


# Gradient surgery ----------------------------------------------------------------------------------------------------

def two_gradients(model, x, y):
    parameters = list(model.parameters())
    out = model(x)
    first, second = F.cross_entropy(out, y), out.pow(2).mean()
    return (parameters, first + second, torch.autograd.grad(first, parameters, retain_graph=True),
            torch.autograd.grad(second, parameters))


def projected(model, optimizer, x, y):
    """PCGrad of two losses, one parameter at a time."""
    parameters, loss, first, second = two_gradients(model, x, y)
    for p, a, b in zip(parameters, first, second):
        dot = (a * b).sum()
        p.grad = a + b - torch.clamp(dot, max=0.0) / (b.pow(2).sum() + 1e-6) * b
    optimizer.step()
    optimizer.zero_grad()
    return loss


def projected_flat(model, optimizer, x, y):
    """PCGrad on the vector of all gradients."""
    parameters, loss, first, second = two_gradients(model, x, y)
    a, b = (torch.cat([g.flatten() for g in gradients]) for gradients in (first, second))
    a = torch.where(a @ b < 0, a - (a @ b) / (b @ b + 1e-6) * b, a) + b
    start = 0
    for p in parameters:
        p.grad = a[start:start + p.numel()].view_as(p)
        start += p.numel()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def agreement(model, optimizer, x, y):
    """Only where both losses' gradients have one sign."""
    parameters, loss, first, second = two_gradients(model, x, y)
    for p, a, b in zip(parameters, first, second):
        p.grad = torch.where(a.sign() == b.sign(), a + b, torch.zeros_like(a))
    optimizer.step()
    optimizer.zero_grad()
    return loss


def centralize(p):
    if p.grad.dim() > 1:
        p.grad.sub_(p.grad.mean(1, keepdim=True))


def mask_gradient(p):
    p.grad.masked_fill_(p.abs() < 0.1, 0.0)


def lower_gradient(p):
    if p.dim() > 1:
        p.grad.tril_()


def freeze_rows(p):
    p.grad[0] = 0.0


def trust(p):
    p.grad.mul_(p.norm() / (p.grad.norm() + 1e-6))


def unit_rows(p):
    if p.grad.dim() > 1:
        p.grad.div_(p.grad.norm(dim=1, keepdim=True) + 1e-6)


def unit_whole(p):
    p.grad.div_(p.grad.norm(dim=tuple(range(p.dim())), keepdim=True) + 1e-6)


def adaptive_clip(p):
    """Unit-wise, as NFNets do it."""
    if p.dim() > 1:
        limit = p.norm(dim=1, keepdim=True).clamp_min(1e-3) * 0.05
        norm = p.grad.norm(dim=1, keepdim=True)
        p.grad.copy_(torch.where(norm > limit, p.grad * (limit / norm.clamp_min(1e-6)), p.grad))


def transpose_gradient(p):
    if p.dim() > 1 and p.shape[0] == p.shape[1]:
        p.grad = p.grad.t().clone()


def exchange(parameters):
    """The gradient of one parameter for another of the same shape."""
    square = [p for p in parameters if p.shape == (WIDTH, WIDTH)]
    square[0].grad = square[0].grad + square[-1].grad * 0.5
    square[-1].grad = square[0].grad.clone()


def sharpness_aware(model, optimizer, x, y):
    """SAM: the gradient is taken uphill of the weights."""
    task(model, x, y).backward()
    parameters = list(model.parameters())
    with torch.no_grad():
        norm = torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in parameters]))
        steps = [p.grad * (0.05 / (norm + 1e-12)) for p in parameters]
        for p, e in zip(parameters, steps):
            p.add_(e)
            p.grad = None
    loss = task(model, x, y)
    loss.backward()
    with torch.no_grad():
        for p, e in zip(parameters, steps):
            p.sub_(e)
    optimizer.step()
    optimizer.zero_grad()
    return loss


def skipped_unless_finite(model, optimizer, x, y):
    """What a gradient scaler does: no step where a gradient is not finite."""
    loss = task(model, x, y)
    (loss * 128.0).backward()
    with torch.no_grad():
        finite = torch.stack([torch.isfinite(p.grad).all() for p in model.parameters()]).all()
        for p in model.parameters():
            p.grad = torch.where(finite, p.grad / 128.0, torch.zeros_like(p.grad))
    optimizer.step()
    optimizer.zero_grad()
    return loss


def sparsified(p):
    """Keeps the largest entries of a gradient."""
    smallest = p.grad.abs().flatten().topk(max(p.numel() // 2, 1)).values[-1]
    p.grad.mul_((p.grad.abs() >= smallest).to(p.grad.dtype))


def orthogonalize(p):
    """Muon's update, two iterations of Newton and Schulz."""
    if p.dim() == 2:
        update = p.grad / (p.grad.norm() + 1e-7)
        for _ in range(2):
            gram = update @ update.t()
            update = 3.4445 * update + (-4.7750 * gram + 2.0315 * gram @ gram) @ update
        p.grad.copy_(update)


def normed_lists(model, optimizer, x, y):
    """Each gradient divided by its norm, as lists."""
    loss = task(model, x, y)
    loss.backward()
    gradients = [p.grad for p in model.parameters()]
    norms = torch._foreach_norm(gradients, 2)
    torch._foreach_add_(norms, 1e-3)
    torch._foreach_div_(gradients, norms)
    ones = torch._foreach_norm(gradients, 1)
    torch._foreach_mul_(gradients, ones)
    optimizer.step()
    optimizer.zero_grad()
    return loss


def lists_by_hand(model, optimizer, x, y):
    """Parameters, buffers and gradients in lists, without an optimizer."""
    loss = task(model, x, y)
    loss.backward()
    with torch.no_grad():
        parameters, velocities, weights = (list(values) for values in zip(*model.anchors()))
        gradients = [p.grad for p in parameters]
        torch._foreach_mul_(velocities, 0.5)
        torch._foreach_add_(velocities, gradients)
        torch._foreach_addcmul_(parameters, velocities, weights, value=-0.05)
        torch._foreach_mul_(weights, 0.9)
    optimizer.zero_grad()
    return loss


def two_optimizers(model, optimizer, x, y):
    """A critic whose weights are clipped, and then a step against it."""
    loss = task(model, x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        for p in model.head.parameters():
            p.clamp_(-0.1, 0.1)
    second = -model(x).mean()
    second.backward()
    with torch.no_grad():
        for p in model.first.parameters():
            p.sub_(p.grad, alpha=0.01)
    optimizer.zero_grad()
    return loss + second


def accumulated(model, optimizer, x, y):
    """The first gradient is centred before the second is added to it."""
    first = task(model, x, y)
    first.backward()
    with torch.no_grad():
        for p in model.parameters():
            p.grad.sub_(p.grad.mean())
    second = task(model, x.flip(1), y)
    second.backward()
    optimizer.step()
    optimizer.zero_grad()
    return first + second


def curvature(model, optimizer, x, y):
    """Hutchinson's estimate of the Hessian's diagonal scales the gradient (Sophia, AdaHessian)."""
    loss = task(model, x, y)
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(loss, parameters, create_graph=True)
    probes = [p.detach().sign() for p in parameters]
    products = torch.autograd.grad(sum((g * v).sum() for g, v in zip(gradients, probes)), parameters,
                                   allow_unused=True, materialize_grads=True)
    for p, g, v, h in zip(parameters, gradients, probes, products):
        p.grad = g.detach() / ((h * v).abs() + 0.5)
    optimizer.step()
    optimizer.zero_grad()
    return loss


def clipped_regularizer(model, optimizer, x, y):
    """Gradients that are whole on every rank."""
    loss = sum(p.pow(4).sum() for p in model.parameters())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad()
    return loss


def clipped(norm_type: float = 2.0) -> Callable:
    def step(model, optimizer, x, y):
        loss = task(model, x, y) + 0.1 * model.first.weight.abs().sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1, norm_type)
        optimizer.step()
        optimizer.zero_grad()
        return loss
    return step


# After the step ------------------------------------------------------------------------------------------------------

def max_norm(model):
    for w in weights(model):
        w.mul_((1.0 / w.norm(dim=1, keepdim=True)).clamp(max=1.0))


def renorm(model):
    for w in weights(model):
        w.renorm_(2, 0, 0.8)


def clip_weights(model):
    for p in model.parameters():
        p.clamp_(-0.2, 0.2)


def prune_weights(model):
    for p in model.parameters():
        p.masked_fill_(p.abs() < 0.05, 0.0)


def lower_weights(model):
    for w in weights(model):
        w.copy_(w.tril())


def zero_row(model):
    model.first.weight[0].zero_()
    model.head.weight[:, 1] = 0.25


def average(model):
    for p, anchor, _ in model.anchors():
        anchor.lerp_(p, 0.1)


def look_ahead(model):
    for p, anchor, _ in model.anchors():
        anchor.add_(p - anchor, alpha=0.5)
        p.copy_(anchor)


def move_along(model):
    """The last two weights: each state takes what another had."""
    for p, anchor, fisher in model.anchors():
        fisher.copy_(anchor)
        anchor.copy_(p)


def exchange_buffers(model):
    for _, anchor, fisher in model.anchors():
        kept = anchor.clone()
        anchor.copy_(fisher)
        fisher.copy_(kept)


def pull_together(model):
    model.second.weight.lerp_(model.first.weight, 0.3)


def exchange_weights(model):
    first = model.first.weight.clone()
    model.first.weight.copy_(model.second.weight)
    model.second.weight.copy_(first)


def dropped_state(model, optimizer, x, y):
    """A row of the optimizer's state starts anew."""
    loss = task(model, x, y)
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for state in optimizer.state.values():
            for value in state.values():
                if isinstance(value, torch.Tensor) and value.dim() > 1:
                    value[0] = 0.0
    optimizer.zero_grad()
    return loss


def symmetrize(model):
    for w in weights(model):
        w.copy_((w + w.t()) / 2)


def mirrored(model, optimizer, x, y):
    """A weight that is computed whole, of which each rank cuts its part, changes that and gathers it for the result."""
    loss = task(model, x, y)
    loss.backward()
    optimizer.step()
    weight = model.head.weight
    with torch.no_grad():
        weight.copy_(weight.flip(0))
        weight.mul_(weight.abs() > 0.05)
    optimizer.zero_grad()
    return loss, weight.detach().clone()


class WithTeacher(nn.Module):
    """A frozen copy of the student that follows it."""

    def __init__(self, tied: bool):
        super().__init__()
        self.student, self.teacher = Net(tied), Net(tied)
        self.teacher.load_state_dict(self.student.state_dict())
        self.teacher.requires_grad_(False)

    def forward(self, x):
        return self.student(x) + 0.1 * self.teacher(x)


def follow(model):
    for t, s in zip(model.teacher.parameters(), model.student.parameters()):
        t.mul_(0.9).add_(s, alpha=0.1)


def momentum_in_buffers(model, optimizer, x, y):
    loss = task(model, x, y)
    loss.backward()
    with torch.no_grad():
        for p, velocity, _ in model.anchors():
            velocity.mul_(0.9).add_(p.grad)
            p.sub_(velocity, alpha=0.05)
    optimizer.zero_grad()
    return loss


def reports(model, optimizer, x, y):
    loss = task(model, x, y)
    loss.backward()
    norms = torch.stack([p.grad.norm() for p in model.parameters()] + [p.norm() for p in model.parameters()])
    signs = [p.grad > 0 for p in model.parameters()]
    optimizer.step()
    optimizer.zero_grad()
    return loss, norms, *signs


@dataclasses.dataclass
class Case:
    step: Callable
    make: Callable = Net


CASES = {
    "weight_norm, old": Case(usual, with_layers(nn.utils.weight_norm)),
    "weight_norm": Case(usual, with_layers(parametrizations.weight_norm)),
    "spectral_norm, old": Case(usual, with_layers(nn.utils.spectral_norm)),
    "spectral_norm": Case(usual, with_layers(parametrizations.spectral_norm)),
    "weight standardization": Case(usual, lambda tied: Net(tied, standardized)),
    "low rank, frozen": Case(usual, LowRank),
    "low rank": Case(usual, lambda tied: LowRank(tied, frozen=False)),
    "pruned": Case(usual, pruned),
    "masked": Case(usual, Masked),
    "tril": Case(usual, lambda tied: Net(tied, lambda x, w: F.linear(x, w.tril()))),
    "symmetric": Case(usual, lambda tied: Net(tied, lambda x, w: F.linear(x, (w + w.t()) / 2))),
    "used twice": Case(penalized(lambda m: m.first.weight.pow(2).sum()),
                       lambda tied: Net(tied, lambda x, w: F.linear(F.linear(x, w), w.t()))),
    "sum of two": Case(usual, Summed),
    "dropped weights": Case(usual, lambda tied: Net(tied, lambda x, w: F.linear(x, F.dropout(w, 0.3)))),
    "convolution": Case(usual, Convolution),
    "numbers": Case(penalized(lambda m: sum(p.pow(2).sum() for p in m.parameters())), Numbers),
    "numbers clipped": Case(clipped(), Numbers),
    "numbers, unit": Case(with_gradients(each(lambda p: p.grad.div_(p.grad.norm() + 1e-3))), Numbers),
    "numbers clamped": Case(afterwards(lambda m: [p.clamp_(-0.9, 0.9) for p in m.parameters()]), Numbers),
    "numbers pulled": Case(afterwards(lambda m: [p.mul_(m.gains.number.abs() * 0.5 + 0.5) for p in m.parameters()]),
                           Numbers),

    "L1": Case(penalized(lambda m: sum(p.abs().sum() for p in m.parameters()))),
    "L2": Case(penalized(lambda m: sum(p.pow(2).sum() for p in m.parameters()))),
    "norms": Case(penalized(lambda m: sum(p.norm() for p in m.parameters()))),
    "mean square": Case(penalized(lambda m: sum((p * p).mean() for p in m.parameters()))),
    "norms of order 3": Case(penalized(lambda m: sum(torch.linalg.vector_norm(p, 3) for p in weights(m)))),
    "nuclear by hand": Case(penalized(lambda m: sum((w @ w.t()).diagonal().sum() for w in weights(m)))),
    "orthogonality": Case(penalized(orthogonality)),
    "total variation": Case(penalized(total_variation)),
    "row": Case(penalized(lambda m: m.first.weight[0].pow(2).sum() + m.head.weight[:, 1:3].abs().sum())),
    "rows by index": Case(penalized(lambda m: m.first.weight[torch.tensor([0, 2, 2])].pow(2).sum())),
    "group lasso": Case(penalized(lambda m: sum(w.norm(dim=1).sum() for w in weights(m)))),
    "group lasso, keepdim": Case(penalized(lambda m: sum(w.norm(dim=0, keepdim=True).sum() for w in weights(m)))),
    "whole norm, keepdim": Case(penalized(lambda m: sum(w.norm(dim=(0, 1), keepdim=True).sum() for w in weights(m)))),
    "distance of two": Case(penalized(lambda m: (m.first.weight - m.second.weight.t()).pow(2).sum())),
    "masked penalty": Case(penalized(masked_penalty)),
    "entropy of a weight": Case(penalized(entropy)),
    "consolidation": Case(penalized(consolidation), WithAnchors),
    "proximal": Case(penalized(proximal), WithAnchors),
    "gradient of a gradient": Case(smoothness_of_gradients),
    "gradient penalty": Case(gradient_penalty),

    "projected gradients": Case(projected),
    "projected gradients, flat": Case(projected_flat),
    "gradients that agree": Case(agreement),
    "centralized gradients": Case(with_gradients(each(centralize))),
    "noise": Case(with_gradients(each(lambda p: p.grad.add_(torch.randn_like(p.grad), alpha=0.1)))),
    "masked gradients": Case(with_gradients(each(mask_gradient))),
    "lower gradients": Case(with_gradients(each(lower_gradient))),
    "frozen rows": Case(with_gradients(each(freeze_rows))),
    "sign": Case(with_gradients(each(lambda p: p.grad.sign_()))),
    "trust ratio": Case(with_gradients(each(trust))),
    "unit rows": Case(with_gradients(each(unit_rows))),
    "unit whole": Case(with_gradients(each(unit_whole))),
    "adaptive clipping": Case(with_gradients(each(adaptive_clip))),
    "transposed gradients": Case(with_gradients(each(transpose_gradient))),
    "exchanged gradients": Case(with_gradients(exchange)),
    "clipped by value": Case(with_gradients(each(lambda p: p.grad.clamp_(-0.01, 0.01)))),
    "decay by hand": Case(with_gradients(each(lambda p: p.grad.add_(p * p.abs(), alpha=0.1)))),
    "sharpness aware": Case(sharpness_aware),
    "skipped unless finite": Case(skipped_unless_finite),
    "sparsified": Case(with_gradients(each(sparsified))),
    "orthogonalized": Case(with_gradients(each(orthogonalize))),
    "lists of norms": Case(normed_lists),
    "lists by hand": Case(lists_by_hand, WithAnchors),
    "accumulated": Case(accumulated),
    "curvature": Case(curvature),
    "clipped regularizer": Case(clipped_regularizer),
    "clipped": Case(clipped()),
    "clipped by the largest": Case(clipped(float("inf"))),

    "max norm": Case(afterwards(max_norm)),
    "renorm": Case(afterwards(renorm)),
    "weight clipping": Case(afterwards(clip_weights)),
    "pruned after": Case(afterwards(prune_weights)),
    "lower weights": Case(afterwards(lower_weights)),
    "rows set": Case(afterwards(zero_row)),
    "averages": Case(afterwards(average), WithAnchors),
    "look ahead": Case(afterwards(look_ahead), WithAnchors),
    "moved along": Case(afterwards(move_along), WithAnchors),
    "exchanged buffers": Case(afterwards(exchange_buffers), WithAnchors),
    "pulled together": Case(afterwards(pull_together)),
    "symmetrized": Case(afterwards(symmetrize)),
    "exchanged weights": Case(afterwards(exchange_weights)),
    "state dropped": Case(dropped_state),
    "a critic's clipping": Case(two_optimizers),
    "teacher": Case(afterwards(follow), WithTeacher),
    "momentum in buffers": Case(momentum_in_buffers, WithAnchors),
    "norms and signs reported": Case(reports),
    "mirrored": Case(mirrored),
}

#: By name; the sharding must not matter to any of them.
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, foreach=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
}


def setup(name: str, tied: bool, optimizer: str = "sgd", dtype: torch.dtype = torch.float32):
    """Step, model, optimizer and batches of a case."""
    torch.manual_seed(0)
    case = CASES[name]
    model = case.make(tied).to(dtype)
    made = OPTIMIZERS[optimizer]([p for p in model.parameters() if p.requires_grad])
    batches = [(torch.randn(WIDTH, WIDTH, dtype=dtype), torch.randint(0, 4, (WIDTH,))) for _ in range(3)]
    return case.step, model, made, batches
