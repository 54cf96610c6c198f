"""What a step returns that is made of parameters, with batches of one row and of fewer rows than ranks."""
from __future__ import annotations

import copy

import pytest
import torch

import spmd

FORMS = {
    "itself": lambda w, b: w * 1, "repeat": lambda w, b: b.repeat(5, 1), "expand": lambda w, b: b.expand(4, -1),
    "t": lambda w, b: w.t(), "t twice": lambda w, b: w.t()[1:].t(), "rows": lambda w, b: w[:2], "column": lambda w, b: w[:, 1],
    "every second": lambda w, b: w[::2], "flip": lambda w, b: b.flip(0), "flat t": lambda w, b: w.t().reshape(-1),
    "flat": lambda w, b: w.reshape(-1), "unsqueeze": lambda w, b: b[None], "diagonal": lambda w, b: w.diagonal(),
    "repeated rows": lambda w, b: w.expand(2, -1, -1).reshape(2, -1), "interleaved": lambda w, b: b.repeat_interleave(2),
    "both": lambda w, b: torch.cat([w, b[:, None].expand(-1, 2)], 1), "of another type": lambda w, b: b.expand(3, -1).double(),
    "window": lambda w, b: w.unfold(1, 2, 1), "sum": lambda w, b: w.expand(2, -1, -1).sum(0)}


def make(names: list[str], before: bool):
    def step(model, optimizer, x):
        made = [FORMS[name](model.weight, model.bias) for name in names] if before else []
        hidden = model(x)
        loss = hidden.sum(0).mean() + hidden.pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if not before:
            made = [FORMS[name](model.weight, model.bias) for name in names]
        return loss.detach(), [value.detach() for value in made]
    return step


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sample(6)
@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_they_are_eagers(rows: int, ranks: int, before: bool) -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 6)
    twin = copy.deepcopy(model)
    step = make(list(FORMS), before)
    compiled = spmd.compile(step, ranks=ranks)
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in (model, twin)]
    for _ in range(2):
        x = torch.randn(rows, 3)
        (loss, found), (expected_loss, expected) = compiled(model, optimizers[0], x), step(twin, optimizers[1], x)
        torch.testing.assert_close(loss, expected_loss)
        # Eager's views of a parameter see the update, also those that were made before it.
        for name, ours, eager in zip(FORMS, found, expected, strict=True):
            torch.testing.assert_close(ours, eager, msg=lambda text, name=name: f"{name}: {text}")
    torch.testing.assert_close(dict(model.named_parameters()), dict(twin.named_parameters()))
