"""torch.nn.functional.grouped_mm in all its forms, and the ways in which mixtures of experts use it: on ranks as in eager,
with every rank keeping its own tokens."""
from __future__ import annotations

import copy
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import spmd

ROWS, WIDTH, HIDDEN, EXPERTS, CHOSEN = 12, 8, 16, 4, 2


class Forms(nn.Module):
    """Groups of rows, of columns, and of what is multiplied along, one of them without any."""

    def __init__(self):
        super().__init__()
        self.rows = nn.Parameter(torch.randn(EXPERTS, WIDTH, HIDDEN) * 0.3)
        self.columns = nn.Parameter(torch.randn(EXPERTS, WIDTH, HIDDEN) * 0.3)

    def forward(self, x):
        ends = torch.tensor([2, 2, 7, ROWS], dtype=torch.int32)
        y = F.grouped_mm(x, self.rows, offs=ends)
        z = F.grouped_mm(self.columns, y.t(), offs=ends)
        return F.grouped_mm(z, y, offs=ends).square().mean()


class Experts(nn.Module):
    """Tokens sorted by expert, as torchtitan does it: how many each expert has is counted before they are sorted, and
    what comes out is added up where the tokens were."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.up = nn.Parameter(torch.randn(EXPERTS, WIDTH, HIDDEN) * 0.3)
        self.down = nn.Parameter(torch.randn(EXPERTS, HIDDEN, WIDTH) * 0.3)

    def forward(self, x):
        scores, chosen = self.router(x).sigmoid().topk(CHOSEN, -1)
        counts = torch.histc(chosen.view(-1).float(), bins=EXPERTS, min=0, max=EXPERTS - 1)
        order = torch.argsort(chosen.view(-1), stable=True)
        tokens = (order // CHOSEN).reshape(-1, 1).expand(-1, WIDTH)
        ends = torch.cumsum(counts, 0, dtype=torch.int32)
        routed = torch.gather(x, 0, tokens) * scores.view(-1)[order].reshape(-1, 1)
        out = F.grouped_mm(F.grouped_mm(routed, self.up, offs=ends).relu(), self.down, offs=ends)
        return torch.zeros_like(x).scatter_add(0, tokens, out).square().mean()


def step(model, optimizer, x):
    loss = model(x)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


@pytest.mark.parametrize("kind, ranks", [(Forms, 1), (Forms, 2), (Experts, 1), (Experts, 2), (Experts, 3)])
def test_trains_as_in_eager(kind: type[nn.Module], ranks: int) -> None:
    torch.manual_seed(0)
    model = kind()
    eager = copy.deepcopy(model)
    compiled = spmd.compile(step, ranks=ranks)
    ours, theirs = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, eager))
    with warnings.catch_warnings():
        if kind is Experts:
            warnings.simplefilter("error", spmd.CompilerWarning)  # no activation is gathered
        for _ in range(3):
            x = torch.randn(ROWS, WIDTH)
            torch.testing.assert_close(compiled(model, ours, x), step(eager, theirs, x), rtol=1e-5, atol=1e-7)
    for (name, p), q in zip(model.named_parameters(), eager.parameters()):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6, msg=name)


def test_a_bias_is_refused() -> None:
    class Biased(Forms):
        def forward(self, x):
            ends = torch.tensor([2, 2, 7, ROWS], dtype=torch.int32)
            return F.grouped_mm(x, self.rows, offs=ends, bias=self.rows[:, 0]).sum()

    model = Biased()
    with pytest.raises(spmd.CaptureError, match="with a bias"):
        spmd.capture(step, model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(ROWS, WIDTH))
