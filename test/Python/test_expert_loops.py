"""Loops over experts as people write them, drawn at random: with one expert, one token or one choice, experts without a row, and
numbers that are rows of one entry. What is captured, run node by node, gives eager's numbers."""
from __future__ import annotations

import copy
import dataclasses
import random

import pytest
import torch
import torch.nn.functional as F
from step_interpreter import StepInterpreter
from torch import nn

import spmd


@dataclasses.dataclass(frozen=True)
class Form:
    experts: int
    tokens: int
    width: int
    chosen: int  # experts of a token; 0: one, whose index has no dim of its own
    computes: str  # what an expert does
    numbers: str  # what the loop goes over: all experts, or in which form those that are hit
    number: str  # what is made of the loop's variable
    mask: str  # what is made of the mask of one expert
    finds: str  # how its rows are found
    adds: str
    weighs: str
    only: int | None  # the one expert that gets all rows
    is_bool: bool


CHOICES = dict(
    experts=(1, 1, 2, 3, 4), tokens=(1, 1, 2, 3, 5), width=(1, 2, 3), computes=("param", "param", "module", "shared", "gain", "root", "same"),
    numbers=("range", "column", "column", "flat", "squeezed", "where"),
    number=("[0]", "[-1]", "squeeze", "squeeze(0)", "item", "int", "raw"),
    mask=("", "", "squeeze(0)", "squeeze", "view"), finds=("where", "nonzero", "torch.nonzero"), adds=("in place", "in place", "anew"),
    weighs=("None", "unsqueeze"), only=(None, None, 0, -1), is_bool=(False, True))


def draw(seed: int) -> Form:
    numbers = random.Random(seed)
    form = {name: numbers.choice(values) for name, values in CHOICES.items()}
    if form["numbers"] in ("flat", "squeezed", "where"):
        form["number"] = numbers.choice(("squeeze", "item", "int", "raw"))
    return Form(**form, chosen=numbers.randrange(form["experts"] + 1))


class Mixture(nn.Module):
    def __init__(self, form: Form):
        super().__init__()
        torch.manual_seed(0)
        self.form, n, width = form, form.experts, form.width
        self.router, self.shared = nn.Linear(width, n), nn.Linear(width, width)
        self.up, self.down = (nn.Parameter(torch.randn(n, 4, width) * 0.3) for _ in range(2))
        self.bias, self.gain = nn.Parameter(torch.randn(n, 4) * 0.3), nn.Parameter(torch.rand(n) + 0.5)
        self.modules_of = nn.ModuleList(nn.Linear(width, width) for _ in range(n))

    def expert(self, rows, e):
        match self.form.computes:
            case "param":
                return F.silu(F.linear(rows, self.up[e].squeeze(), self.bias[e].squeeze())) @ self.down[e].squeeze()
            case "module":
                return self.modules_of[e](rows).relu()
            case "shared":
                return self.shared(rows) * self.gain[e]
            case "gain":
                return rows * self.gain[e]
            case "root":  # whose gradients at 0 are infinite
                return rows.abs().sqrt() * self.gain[e] + self.shared((rows * rows).log())
            case "same":
                return rows

    def add(self, out, token, position, rows, scores):
        scores = scores[token] if position is None else scores[token, position]
        rows = rows * (scores[:, None] if self.form.weighs == "None" else scores.unsqueeze(-1))
        return out.index_add_(0, token, rows) if self.form.adds == "in place" else out.index_add(0, token, rows)

    def places(self, mask):
        return torch.where(mask) if self.form.finds == "where" else mask.nonzero(as_tuple=True) \
            if self.form.finds == "nonzero" else torch.nonzero(mask, as_tuple=True)

    def numbers_of(self, hits):
        match self.form.numbers:
            case "column":
                return hits.nonzero()
            case "flat":
                return hits.nonzero().flatten()
            case "squeezed":
                return hits.nonzero().squeeze(-1)
            case "where":
                return torch.where(hits)[0]

    def number_of(self, e):
        match self.form.number:
            case "[0]":
                return e[0]
            case "[-1]":
                return e[-1]
            case "squeeze":
                return e.squeeze()
            case "squeeze(0)":
                return e.squeeze(0)
            case "item":
                return e.item()
            case "int":
                return int(e)
            case "raw":
                return e

    def mask_of(self, mask):
        sizes = (self.form.tokens,) if self.form.chosen == 0 else (self.form.chosen, self.form.tokens)
        match self.form.mask:
            case "squeeze(0)":
                return mask.squeeze(0)
            case "squeeze":
                return mask.squeeze()
            case "view":
                return mask.view(sizes)
        return mask

    def forward(self, x):
        form = self.form
        scores, index = self.router(x).softmax(-1).topk(max(form.chosen, 1), -1)
        if form.only is not None:
            index = index * 0 + form.only % form.experts
        if form.chosen == 0:
            scores, index = scores[:, 0], index[:, 0]
        out = torch.zeros_like(x)
        if form.numbers == "range":
            for e in range(form.experts):
                token, *position = self.places(index == e)
                out = self.add(out, token, position[0] if position else None, self.expert(x[token], e), scores)
            return out
        masks = F.one_hot(index, form.experts)
        masks = masks.permute(1, 0) if form.chosen == 0 else masks.permute(2, 1, 0)
        masks = masks > 0 if form.is_bool else masks
        hits = masks.flatten(1).sum(1) > 0
        for hit in self.numbers_of(hits):
            e = self.number_of(hit)
            *position, token = self.places(self.mask_of(masks[e]))
            out = self.add(out, token, position[-1] if form.chosen else None, self.expert(x[token], e), scores)
        return out


def step(model, optimizer, x, y):
    loss = (model(x) - y).square().sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


@pytest.mark.filterwarnings("ignore")
def test_random_loops_give_eagers_numbers(whole: bool) -> None:
    trained = 0
    for seed in range(100 if whole else 40):
        form = draw(seed)
        model = Mixture(form)
        eager = copy.deepcopy(model)
        generator = torch.Generator().manual_seed(seed)
        batches = [torch.randn(2, form.tokens, form.width, generator=generator).unbind() for _ in range(2)]
        optimizer = torch.optim.SGD(eager.parameters(), lr=0.1)
        try:
            losses = [step(eager, optimizer, *batch).item() for batch in batches]
        except (RuntimeError, IndexError, ValueError, TypeError):
            with pytest.raises(Exception):  # noqa: B017, PT011: what eager refuses, in whatever way
                spmd.capture(step, model, torch.optim.SGD(model.parameters(), lr=0.1), *batches[0])
            continue
        if form.tokens == 1 and form.chosen == 0 and form.mask.startswith("squeeze"):
            continue  # a mask of no dim, which is refused
        package = spmd.capture(step, model, torch.optim.SGD(model.parameters(), lr=0.1), *batches[0])
        run = StepInterpreter(package.step, package.weights)
        found = [run(dict(zip("xy", batch)), [0.1])[0].item() for batch in batches]
        assert found == pytest.approx(losses, rel=1e-4, abs=1e-6), form
        want = dict(eager.named_parameters())
        for name, value in run.tensors().items():
            torch.testing.assert_close(value, want[name].detach(), rtol=1e-3, atol=1e-5, msg=lambda text, name=name: f"{form}, {name}: {text}")
        trained += 1
    assert trained >= (70 if whole else 28)
