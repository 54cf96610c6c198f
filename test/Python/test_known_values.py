"""A step that asks for values that are computed from sizes and numbers alone goes its way as eager does; others are refused."""
from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F

import spmd

X, Y = torch.linspace(-1, 1, 24).reshape(6, 4), torch.linspace(1, -1, 12).reshape(6, 2)


def ones(x):
    return torch.ones(x.shape[0]).any().item()


def like(x):
    return torch.full_like(x, 3).sum() > 70


def written(x):
    mask = torch.zeros(x.shape[:1], dtype=torch.bool)
    mask[1:3] = True
    return mask.sum().item() == 2


def through_a_view(x):
    mask = torch.zeros(4, 4)
    mask[0].add_(1)
    return mask.flatten()[3]


def sizes(x):
    return torch.div(x.size(1), 2, rounding_mode="trunc") == torch.tensor(2)


def arange(x):
    return bool((torch.arange(x.shape[1]) < x.shape[0]).all())


def compared(x):
    return torch.equal(torch.eye(3), torch.ones(3).diag())


def counted(x):
    return int(torch.tril_indices(3, 3).max()) - 1


def train(question):
    def step(model, optimizer, x, y):
        out = model(x)
        if question(x):
            out = out * 2
        loss = F.mse_loss(out, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    return step, model, torch.optim.SGD(model.parameters(), lr=0.1)


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("question", [ones, like, written, through_a_view, sizes, arange, compared, counted])
def test_known(question, negated: bool, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("SPMD_CACHE", str(tmp_path))
    step, model, optimizer = train((lambda x: not question(x)) if negated else question)
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    compiled = spmd.compile(step, ranks=2)
    for i in range(2):
        torch.testing.assert_close(compiled(model, optimizer, X + i, Y), step(twin, twin_optimizer, X + i, Y))


def of_the_batch(x):
    return (x > 0).any()


def of_a_parameter(x):
    return (torch.zeros(3) + x.sum()).any()


def drawn(x):
    return torch.rand(3).sum() > 1


def overwritten(x):
    mask = torch.zeros(4, 4)
    mask[0] = x[0]
    return mask[1].any()


def overwritten_by_a_view(x):
    mask = torch.zeros(4, 4)
    row = mask[2]
    mask.view(-1)[8:12].copy_(x[0])
    return row.any()


def empty(x):
    return torch.empty(3).fill_(x[0, 0]).any()


@pytest.mark.parametrize("question", [of_the_batch, of_a_parameter, drawn, overwritten, overwritten_by_a_view, empty])
def test_unknown(question) -> None:
    step, model, optimizer = train(question)
    with pytest.raises(spmd.CaptureError, match="depends on a tensor's value"):
        spmd.capture(step, model, optimizer, X, Y)
