"""Iterations of a loop over microbatches are traced once, and are what a trace of each of them is."""
from __future__ import annotations

import random
from typing import Any, Callable

import pytest
import torch
import torch.nn.functional as F

import spmd

from iterations import renamed, trace_each, unroll


def canonical(step: dict[str, Any]) -> dict[str, Any]:
    """With each iteration spelled out; numbers in order, what an operator in place gives named as what it wrote to; and the
    views of the batch, which a loop has before it, before all else, in an order of their own."""
    step = unroll(step)
    names = {entry["id"]: f"{entry['id']:09}" for entry in step["inputs"] if entry["kind"] == "batch"}
    cuts: dict[str, list[dict]] = {}
    for node in step["nodes"]:
        base = dict(node["args"])[node["view_of"]].get("value") if "view_of" in node and not node.get("mutates") else None
        if base in names:
            name = f"{names[base]} {node['op']} {[argument for argument in node['args'] if argument[0] != node['view_of']]}"
            cuts.setdefault(name, []).append(node)
            names |= {result["id"]: f"{name} {place}" for place, result in enumerate(node["results"])}
    first = [node for _, nodes in sorted(cuts.items()) for node in nodes]
    nodes, numbers = [], {entry["id"]: entry["id"] for entry in step["inputs"]}
    count = len(numbers)
    for node in first + [node for node in step["nodes"] if not any(node is cut for cut in first)]:
        node = renamed(node, numbers.__getitem__)
        for result in filter(None, node["results"]):
            if node.get("view_of") in node.get("mutates", ()):
                numbers[result["id"]] = dict(node["args"])[node["view_of"]]["value"]
            else:
                numbers[result["id"]], count = count, count + 1
            result["id"] = numbers[result["id"]]
        nodes.append(node)
    outputs = [entry | {"value": numbers[entry["value"]]} for entry in step["outputs"]]
    return step | {"version": 9, "nodes": nodes, "outputs": outputs}


def captured(make: Callable, step: Callable, monkeypatch, repeat: bool, optimizer=torch.optim.AdamW) -> spmd.StepPackage:
    torch.manual_seed(0)
    model, *batch = make()
    with monkeypatch.context() as patch:
        if not repeat:
            trace_each(patch)
        return spmd.capture(step, model, optimizer(model.parameters(), lr=1e-2), *batch)


def check(make: Callable, step: Callable, monkeypatch, iterations: int | None) -> spmd.StepPackage:
    """`iterations`: how often what is traced once runs; None: each is traced."""
    quick, slow = (captured(make, step, monkeypatch, repeat) for repeat in (True, False))
    assert [one["count"] for one in quick.step.get("repeats", ())] == ([] if iterations is None else [iterations])
    assert "repeats" not in slow.step
    assert canonical(quick.step) == canonical(slow.step)
    assert quick.result == slow.result
    return quick


class Block(torch.nn.Module):
    def __init__(self, width: int = 8):
        super().__init__()
        self.norm, self.qkv, self.out = torch.nn.LayerNorm(width), torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (t.view(*t.shape[:2], 2, -1).transpose(1, 2) for t in self.qkv(self.norm(x)).split(x.shape[-1], 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).reshape(x.shape))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.place, self.head = torch.nn.Embedding(16, 8), torch.nn.Embedding(6, 8), torch.nn.Linear(8, 16, bias=False)
        self.head.weight = self.embed.weight
        self.blocks = torch.nn.Sequential(Block(), Block())

    def forward(self, x, y):
        hidden = self.embed(x) + self.place(torch.arange(x.shape[1], device=x.device))
        return F.cross_entropy(self.head(self.blocks(hidden)).flatten(0, 1), y.flatten())


def lists(count: int = 7) -> Callable:
    def make():
        return Model(), list(torch.randint(16, (count, 4, 6))), list(torch.randint(16, (count, 4, 6)))
    return make


def update(model, optimizer) -> None:
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


def test_lists_of_microbatches(monkeypatch) -> None:
    def step(model, optimizer, xs, ys):
        total = 0
        for x, y in zip(xs, ys):
            loss = model(x, y) / len(xs)
            loss.backward()
            total = total + loss.detach()
        update(model, optimizer)
        return total
    check(lists(), step, monkeypatch, 5)


def test_batches_of_several_sizes() -> None:
    """Of these, ops of two captures are compared one by one."""
    def step(model, optimizer, xs, ys):
        for x, y in zip(xs, ys):
            (model(x, y) / len(xs)).backward()
        update(model, optimizer)
    model, xs, ys = lists()()
    package = spmd.capture(step, model, torch.optim.SGD(model.parameters()), xs, ys, dynamic_batch=5)
    assert package.step["version"] == 8 and not {"repeats"} & (package.step.keys() | package.other_batch.step.keys())
    assert len(package.step["nodes"]) == len(package.other_batch.step["nodes"])


STEPS: dict[str, tuple[Callable, Callable, int | None]] = {}


def repeats(iterations: int | None, make: Callable = lists()) -> Callable:
    def note(step: Callable) -> Callable:
        STEPS[step.__name__] = make, step, iterations
        return step
    return note


@repeats(5)
def a_sum_in_place(model, optimizer, xs, ys):
    total = torch.zeros(())
    for x, y in zip(xs, ys):
        loss = model(x, y)
        total += loss.detach() / len(xs)
        (loss / len(xs)).backward()
    update(model, optimizer)
    return total, loss


@repeats(5)
def what_the_last_one_gave(model, optimizer, xs, ys):
    for x, y in zip(xs, ys):
        loss = model(x, y)
        loss.backward()
    update(model, optimizer)
    return {"loss": loss.detach() * 2, "same": loss}


def stacked(count: int = 7) -> Callable:
    def make():
        return Model(), torch.randint(16, (count, 4, 6)), torch.randint(16, (count, 4, 6))
    return make


@repeats(5, stacked())
def rows_of_a_tensor(model, optimizer, xs, ys):
    for number in range(len(xs)):
        model(xs[number], ys[number]).backward()
    update(model, optimizer)


@repeats(5, stacked())
def slices_of_a_tensor(model, optimizer, xs, ys):
    for first in range(0, 28, 4):
        x, y = xs.flatten(0, 1)[first:first + 4], ys.flatten(0, 1)[first:first + 4]
        model(x, y).backward()
    update(model, optimizer)


@repeats(5, stacked())
def parts_made_before(model, optimizer, xs, ys):
    for x, y in zip(xs.flatten(0, 1).chunk(7), ys.unbind()):
        model(x, y).backward()
    update(model, optimizer)


@repeats(5)
def losses_in_a_list(model, optimizer, xs, ys):
    losses = []
    for x, y in zip(xs, ys):
        loss = model(x, y)
        loss.backward()
        losses.append(loss.detach())
    update(model, optimizer)
    return torch.stack(losses).mean()


@repeats(5)
def the_third_one(model, optimizer, xs, ys):
    for number, (x, y) in enumerate(zip(xs, ys)):
        loss = model(x, y)
        loss.backward()
        if number == 2:
            third = loss
    update(model, optimizer)
    return third


@repeats(5)
def a_loss_that_is_kept_by_hand(model, optimizer, xs, ys):
    kept = None
    for number, (x, y) in enumerate(zip(xs, ys)):
        loss = model(x, y)
        loss.backward()
        if number == 4:
            kept = loss
    update(model, optimizer)
    return kept.detach() + 1


@repeats(None)
def another_weight_for_each(model, optimizer, xs, ys):
    for number, (x, y) in enumerate(zip(xs, ys)):
        (model(x, y) * (number + 1.0)).backward()
    update(model, optimizer)


@repeats(3)
def gradients_that_come_late(model, optimizer, xs, ys):
    for number, (x, y) in enumerate(zip(xs, ys)):
        hidden = model.embed(x)
        if number > 1:
            hidden = model.blocks(hidden)
        F.cross_entropy(model.head(hidden).flatten(0, 1), y.flatten()).backward()
    update(model, optimizer)


@repeats(4)
def gradients_that_come_in_the_third(model, optimizer, xs, ys):
    for number, (x, y) in enumerate(zip(xs, ys)):
        hidden = model.embed(x) if number > 1 else model.embed(x) + 0 * model.place.weight
        F.cross_entropy(model.head(hidden).flatten(0, 1), y.flatten()).backward()
    update(model, optimizer)


@repeats(None)
def an_optimizer_for_each(model, optimizer, xs, ys):
    for x, y in zip(xs, ys):
        model(x, y).backward()
        update(model, optimizer)


@repeats(5)
def what_an_iteration_hands_on(model, optimizer, xs, ys):
    hidden = torch.zeros(4, 6, 8)
    for x, y in zip(xs, ys):
        hidden = model.blocks(model.embed(x) + hidden.detach())
        F.cross_entropy(model.head(hidden).flatten(0, 1), y.flatten()).backward()
    update(model, optimizer)
    return hidden.mean()


@repeats(None)
def what_two_before_hand_on(model, optimizer, xs, ys):
    before, earlier = torch.zeros(4, 6, 8), torch.zeros(4, 6, 8)
    for x, y in zip(xs, ys):
        hidden = model.blocks(model.embed(x) + earlier)
        earlier, before = before, hidden.detach()
        F.cross_entropy(model.head(hidden).flatten(0, 1), y.flatten()).backward()
    update(model, optimizer)


@repeats(None)
def counts_that_are_asked_for(model, optimizer, xs, ys):
    count = torch.zeros(())
    for x, y in zip(xs, ys):
        model(x, y).backward()
        count += 1
    update(model, optimizer)
    return model.head.weight.detach().sum() * count.item() if count.item() > 5 else count


@repeats(5)
def counts(model, optimizer, xs, ys):
    count, total = torch.zeros(()), 0
    for x, y in zip(xs, ys):
        loss = model(x, y)
        loss.backward()
        count += 1
        total = total + loss.detach()
    update(model, optimizer)
    return total / count


@repeats(5)
def casts_for_each(model, optimizer, xs, ys):
    for x, y in zip(xs, ys):
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(x, y)
        loss.backward()
    update(model, optimizer)


@repeats(5)
def casts_around_all(model, optimizer, xs, ys):
    with torch.autocast("cpu", torch.bfloat16):
        for x, y in zip(xs, ys):
            model(x, y).backward()
    update(model, optimizer)


@repeats(3)
def others_at_the_end(model, optimizer, xs, ys):
    for x, y in zip(xs[:5], ys):
        model(x, y).backward()
    for x, y in zip(xs[5:], ys):
        with torch.no_grad():
            hidden = model.embed(x).mean() * 0.1
        (F.cross_entropy(model.head(model.embed(x)).flatten(0, 1), y.flatten()) + hidden).backward()
    update(model, optimizer)


@repeats(5)
def gradients_that_are_left(model, optimizer, xs, ys):
    for x, y in zip(xs, ys):
        model(x, y).backward()


class Function(torch.autograd.Function):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


@repeats(None)
def a_function_of_the_users(model, optimizer, xs, ys):
    for x, y in zip(xs, ys):
        Function.apply(model(x, y)).backward()
    update(model, optimizer)


@repeats(None)
def hooks(model, optimizer, xs, ys):
    for x, y in zip(xs, ys):
        loss = model(x, y)
        loss.register_hook(lambda gradient: gradient * 2)
        loss.backward()
    update(model, optimizer)


def with_hook(make: Callable = lists()) -> Callable:
    def hooked():
        model, *batch = make()
        model.head.weight.register_hook(lambda gradient: gradient * 2)
        return model, *batch
    return hooked


@repeats(None, with_hook())
def hooks_of_parameters(model, optimizer, xs, ys):
    for x, y in zip(xs, ys):
        model(x, y).backward()
    update(model, optimizer)


class Normed(torch.nn.Module):
    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.inner, self.norm, self.out = torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, x):
        return self.out(self.dropout(self.norm(self.inner(x)).relu())).square().mean()


def normed(dropout: float = 0.0) -> Callable:
    return lambda: (Normed(dropout), torch.randn(7, 4, 6))


@repeats(5, normed())
def running_statistics(model, optimizer, xs):
    for x in xs:
        model(x).backward()
    update(model, optimizer)
    return model.norm.running_mean.sum()


@repeats(5, normed(0.5))
def draws(model, optimizer, xs):
    for x in xs:
        model(x).backward()
    update(model, optimizer)
    return F.dropout(model.out.weight.detach(), 0.5)


@repeats(5, normed())
def an_average_that_follows(model, optimizer, xs):
    with torch.no_grad():
        mean = torch.zeros_like(model.out.weight)
    for x in xs:
        model(x).backward()
        with torch.no_grad():
            mean.mul_(0.9).add_(model.out.weight, alpha=0.1)
            model.norm.weight.add_(mean.sum())
    update(model, optimizer)
    return mean


@repeats(None, normed())
def a_batch_that_is_written(model, optimizer, xs):
    for x in xs.clone():
        x.t().mul_(2)
        model(x).backward()
    update(model, optimizer)


@repeats(None)
def other_operands_in_the_fifth(model, optimizer, xs, ys):
    for number, (x, y) in enumerate(zip(xs, ys)):
        one, other = model.embed(x), model.blocks(model.embed(x))
        hidden = one - other if number == 4 else other - one
        F.cross_entropy(model.head(hidden).flatten(0, 1), y.flatten()).backward()
    update(model, optimizer)


@repeats(5, normed())
def errors_that_are_caught(model, optimizer, xs):
    losses = []
    for x in xs:
        loss = model(x)
        losses.append(loss)
        loss.backward()
    try:
        total = sum(loss.detach() for loss in losses)
    except Exception:
        total = losses[-1].detach()
    update(model, optimizer)
    return total


class Weights(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Parameter(torch.randn(2, 4)), torch.nn.Parameter(torch.randn(2, 4))
        self.register_buffer("average", torch.zeros(2, 4))


def weights() -> tuple:
    return Weights(), torch.randn(7, 2, 4)


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factors):
        ctx.factors = factors
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.factors[-1], None


scaled = Scaled.apply


@repeats(None, weights)
def a_function_by_another_name(model, optimizer, xs):
    factors = [1.0]
    for x in xs:
        factors.append(factors[-1] + 1)
        scaled(model.a * x, factors).sum().backward()
    update(model, optimizer)


@repeats(None, weights)
def hooks_from_before_the_loop(model, optimizer, xs):
    factors = [1.0]
    handle = model.a.register_hook(lambda gradient: gradient * factors[-1])
    for x in xs:
        factors.append(factors[-1] + 1)
        (model.a * x * model.b).sum().backward()
    handle.remove()
    update(model, optimizer)


@repeats(None, weights)
def hooks_of_autograds_nodes(model, optimizer, xs):
    calls = []
    handle = model.a.expand_as(model.a).grad_fn.next_functions[0][0].register_hook(lambda *gradients: calls.append(1))
    for x in xs:
        (model.a * x * model.b).sum().backward()
    handle.remove()
    update(model, optimizer)
    return model.a.detach() * len(calls)


@repeats(None, weights)
def hooks_of_what_is_saved(model, optimizer, xs):
    factors = [1.0]
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor * factors[-1], lambda tensor: tensor):
        for x in xs:
            factors.append(factors[-1] + 1)
            (model.a * x * model.b).sum().backward()
    update(model, optimizer)


@repeats(4, weights)
def a_list_that_changes_behind_a_call(model, optimizer, xs):
    for number, x in enumerate(xs):
        parts = [x * 2, x * 3]
        both = torch.stack(parts)
        parts.reverse()
        if number == 6:
            both = both.exp()
            break
        (model.a * both * model.b).sum().backward()
    update(model, optimizer)
    return both


@repeats(4, weights)
def lines_of_what_is_begun(model, optimizer, xs):
    for number in range(7):
        x = xs[number]
        twice = x * 2
        more = twice + 1
        if number == 6:
            more = more.exp()
            break
        (model.a * more * model.b).sum().backward()
    update(model, optimizer)
    return more


@repeats(None, weights)
def parameters_that_are_frozen_in_turns(model, optimizer, xs):
    for x in xs:
        model.a.requires_grad_(not model.a.requires_grad)
        for _ in range(30):
            x = x + 1
        (model.a * x * model.b).sum().backward()
    model.a.requires_grad_(True)
    update(model, optimizer)


@repeats(None, weights)
def a_sum_for_a_last_backward(model, optimizer, xs):
    total = torch.zeros(())
    for number, x in enumerate(xs):
        for _ in range(60):
            x = x + 1
        loss = (model.a * x * model.b).sum()
        with torch.set_grad_enabled(number >= 2):
            total += loss
        loss.backward(retain_graph=True)
    total.backward()
    update(model, optimizer)


@repeats(None, weights)
def gradients_of_an_iterations_own(model, optimizer, xs):
    kept = []
    for x in xs:
        kept.append(x.clone().requires_grad_())
        (model.a * kept[-1] * model.b).sum().backward()
    update(model, optimizer)
    return model.a.detach() if kept[4].grad is None else kept[4].grad


@repeats(None, weights)
def gradients_of_what_is_kept(model, optimizer, xs):
    kept = []
    for x in xs:
        kept.append((model.a * x * model.b).sum())
        kept[-1].backward(retain_graph=True)
    gradients = torch.autograd.grad(kept[4], [model.a, model.b], allow_unused=True)
    update(model, optimizer)
    return [gradient for gradient in gradients if gradient is not None]


@repeats(2, weights)
def writes_that_no_call_shows(model, optimizer, xs):
    shared = torch.ones(2, 4) * xs[0]
    for number, x in enumerate(xs):
        if number == 4:
            with torch._C.DisableTorchFunction():
                shared.mul_(2)
        (model.a * x * model.b * shared).sum().backward()
    update(model, optimizer)


class Factor(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("factor", torch.randn(4))


FACTORS = [Factor() for _ in range(7)]


@repeats(5, weights)
def modules_that_only_one_iteration_reads(model, optimizer, xs):
    for x, other in zip(xs, FACTORS):
        (model.a * x * model.b * other.factor).sum().backward()
    update(model, optimizer)


@repeats(5, weights)
def the_loss_among_others(model, optimizer, xs):
    kept, largest = [], []
    for x in xs:
        product = model.a * x * model.b
        largest.append(product.detach().max())
        kept.append(product.sum())
        kept[-1].backward()
    update(model, optimizer)
    return largest[5], kept[4]


@repeats(4, weights)
def numbers_of_losses(model, optimizer, xs):
    total, kept = 0.0, []
    for x in xs:
        loss = (model.a * x * model.b).sum()
        loss.backward()
        total += loss.item() / len(xs)
        kept.append(2 - abs(loss.item()))
        loss = loss.item()
    update(model, optimizer)
    return total, 1 / (total + 3), kept[2:], kept[6] + total, loss


@repeats(None, weights)
def a_number_that_scales_an_iteration(model, optimizer, xs):
    total = 1.0
    for number, x in enumerate(xs):
        loss = (model.a * x * model.b).sum()
        (loss * total if number == 4 else loss).backward()
        total += loss.item()
    update(model, optimizer)
    return total


@repeats(None, weights)
def views_that_are_written_behind_the_loop(model, optimizer, xs):
    mask = torch.ones(8)
    for x in xs:
        view = mask.view(2, 4)
        (model.a * x * model.b * view).sum().backward()
    view.mul_(0)
    update(model, optimizer)
    return model.a.detach() * (2 if mask.sum() > 0 else 3)


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.sample(4)
def test_repeats(name, monkeypatch) -> None:
    make, step, iterations = STEPS[name]
    check(make, step, monkeypatch, iterations)


def random_loop(seed: int) -> Callable:
    """A step with a loop of random operators, on what its iterations have, share, hand on and keep; with luck all are alike."""

    def step(model, optimizer, xs):
        once = random.Random(seed)
        shared = [model.a.detach() * 2, torch.ones(2, 4)]
        total, kept, handed_on, number_of_all = torch.zeros(2, 4), [], torch.zeros(2, 4), 0.0
        style, odd = once.choice(["rows", "unbind", "slices"]), once.choice([None, None, None, 0, 3, 6])
        rows = xs.unbind() if style == "unbind" else None
        for number in range(len(xs)):
            rng = random.Random(seed + 1)
            x = rows[number] if rows else xs[number] if style == "rows" else xs[number:number + 1].squeeze(0)
            values = [x, model.a, model.b, *shared, handed_on.detach() if rng.random() < 0.5 else x, model.a * x]
            for _ in range(rng.randint(3, 9)):
                kind, a, b = rng.choice("sum product sine halves turned add_to_total add_to_own kept dropout average detached item".split()), \
                    rng.choice(values), rng.choice(values)
                if kind == "sum":
                    values.append(a + b)
                elif kind == "product":
                    values.append(a * b * 0.5)
                elif kind == "sine":
                    values.append(a.sin())
                elif kind == "halves":
                    values.append(torch.cat(a.split(2, 1)[::-1], 1))
                elif kind == "turned":
                    values.append(a.t().contiguous().view(2, 4))
                elif kind == "add_to_total":
                    total += a.detach()
                elif kind == "add_to_own":
                    own = b * 1
                    own[0] += a[1].detach()
                    values.append(own)
                elif kind == "kept":
                    kept.append(a.detach() if rng.random() < 0.5 else a)
                elif kind == "dropout":
                    values.append(F.dropout(a, 0.5))
                elif kind == "average":
                    with torch.no_grad():
                        model.average.mul_(0.9).add_(b, alpha=0.1)
                elif kind == "item":
                    number_of_all = number_of_all / 2 - a.sum().item() * b.mean().item()
                else:
                    values.append(a.detach())
            if number == odd:
                values.append(values[-1] * 3)
            handed_on = values[-1]
            (values[-1] * model.b).sum().backward()
        update(model, optimizer)
        chosen = [k for k in kept if once.random() < 0.3]
        result = {"total": total, "last": handed_on.detach(), "number": number_of_all, "kept": [k.detach() + 1 for k in chosen], "as it is": kept[-2:]}
        if once.random() < 0.3 and kept:
            result["sum"] = torch.stack([k.detach() for k in kept]).sum(0)
        return result
    return step


@pytest.mark.parametrize("part", range(4))
def test_random_loops(part, monkeypatch) -> None:
    repeated = 0
    for seed in range(part * 15, part * 15 + 15):
        quick, slow = (captured(lambda: (Weights(), torch.randn(7, 2, 4)), random_loop(seed), monkeypatch, repeat, torch.optim.SGD)
                       for repeat in (True, False))
        assert canonical(quick.step) == canonical(slow.step), seed
        assert quick.result == slow.result
        repeated += "repeats" in quick.step
    assert repeated > 5
