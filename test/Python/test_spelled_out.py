"""grid_sample, affine_grid and ctc_loss, which are traced as arithmetic: as eager, with their gradients."""
from __future__ import annotations

import functools
import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import spmd


def train(make, loss_of, batch, step_of):
    def step(model, optimizer, *batch):
        losses = loss_of(model, *batch)
        loss = losses.sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return losses
    torch.manual_seed(0)
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = step_of(step)
    return [step(model, optimizer, *batch).detach() for _ in range(2)], list(model.parameters())


def check(make, loss_of, batch, monkeypatch, folder) -> None:
    """Losses are eager's, and parameters within ten times the rounding that eager has against f64: places in a picture lose digits, others on
    another processor."""
    monkeypatch.setenv("SPMD_CACHE", str(folder))
    losses, ours = train(make, loss_of, batch, lambda step: spmd.compile(step, ranks=2))
    expected, theirs = train(make, loss_of, batch, lambda step: step)
    _, exact = train(lambda: make().double(), loss_of, [t.double() if t.is_floating_point() else t for t in batch], lambda step: step)
    torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-6)
    for a, b, c in zip(ours, theirs, exact, strict=True):
        assert (a - c).norm() <= 10 * (b - c).norm() + 2**-23 * c.norm()


class Transformer(nn.Module):
    """Turns pictures as they say themselves, and looks at them in other places."""

    def __init__(self, options):
        super().__init__()
        self.turn, self.features, self.options = nn.Linear(30, 6), nn.Conv2d(1, 2, 3, padding=1), options

    def forward(self, x, places):
        sizes = (*x.shape[:2], 4, 7)
        turned = F.grid_sample(x, F.affine_grid(self.turn(x.flatten(1)).view(-1, 2, 3), sizes, self.options[2]), *self.options)
        found = F.grid_sample(self.features(x), places + self.turn.bias.mean(), *self.options)
        return turned.square().mean((1, 2, 3)) + (found * torch.linspace(0, 1, 2)).square().mean((1, 2, 3))


@pytest.mark.sample(7)
@pytest.mark.parametrize("options", itertools.product(("bilinear", "nearest"), ("zeros", "border", "reflection"), (False, True)),
                         ids=str)
def test_grid_sample(options, monkeypatch, tmp_path) -> None:
    torch.manual_seed(1)
    batch = torch.randn(4, 1, 5, 6), 1.3 * torch.randn(4, 3, 2, 2)
    check(functools.partial(Transformer, options), lambda model, *batch: model(*batch), batch, monkeypatch, tmp_path)


TARGETS = torch.tensor([[1, 1, 2, 5], [3, 4, 0, 0], [2, 2, 2, 2], [5, 1, 3, 0]])
LENGTHS = torch.tensor([4, 2, 0, 3])


@pytest.mark.sample(2)
@pytest.mark.parametrize("targets, options", [
    (TARGETS, {}), (torch.cat([row[:n] for row, n in zip(TARGETS, LENGTHS)]), {"reduction": "none"}),
    (TARGETS, {"reduction": "sum", "zero_infinity": True}),
], ids=["mean", "flat", "impossible"])
def test_ctc(targets, options, monkeypatch, tmp_path) -> None:
    """One label twice, no label at all, and fewer steps than labels."""
    torch.manual_seed(1)
    steps = torch.tensor([6, 5, 4, 2 if "zero_infinity" in options else 6])

    def loss_of(model, x, targets, steps, lengths):
        return F.ctc_loss(model(x).log_softmax(-1).transpose(0, 1), targets, steps, lengths, **options)
    check(lambda: nn.Linear(5, 6), loss_of, (torch.randn(4, 6, 5), targets, steps, LENGTHS), monkeypatch, tmp_path)


def test_an_impossible_label_has_an_infinite_loss() -> None:
    def step(model, x, targets):
        return F.ctc_loss(model(x).log_softmax(-1).transpose(0, 1), targets, (6, 2), (4, 3), reduction="none")
    model, x, targets = nn.Linear(5, 6), torch.randn(2, 6, 5), torch.tensor([[1, 2, 3, 4], [1, 2, 3, 0]])
    ours, expected = spmd.compile(step, ranks=1)(model, x, targets), step(model, x, targets)
    assert expected[1] == float("inf")
    torch.testing.assert_close(ours, expected.detach())


def bicubic(model, x):
    return F.grid_sample(model(x), torch.zeros(4, 2, 2, 2), mode="bicubic", align_corners=False).sum()


def test_bicubic_is_refused_at_its_line() -> None:
    with pytest.raises(spmd.CaptureError, match="(?s)bicubic.*in bicubic.*hint"):
        train(lambda: nn.Conv2d(1, 1, 1), bicubic, (torch.randn(4, 1, 3, 3),), lambda step: spmd.compile(step, ranks=2))
