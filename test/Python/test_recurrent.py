"""Recurrent layers are traced as the arithmetic of their time steps: training on 2 ranks follows eager PyTorch."""
from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from rounding import rounding
import spmd

STEPS, BATCH, LENGTH, INPUTS, HIDDEN = 3, 4, 5, 6, 8


class Tagger(nn.Module):
    def __init__(self, layer, **options):
        super().__init__()
        self.recurrent = layer(INPUTS, HIDDEN, **options)
        self.head = nn.Linear((2 if options.get("bidirectional") else 1) * HIDDEN, 3)

    def forward(self, x):
        return self.head(self.recurrent(x)[0])


def train_step(model, optimizer, x, y):
    loss = (model(x) - y).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def chain_of(layers: int) -> int:
    """Terms of the sums that follow each other in a step: at each position of each layer those over inputs and state, and
    in the backward those over up to four gates; rows of gradients and of the loss."""
    return LENGTH * layers * (2 * HIDDEN + HIDDEN + 4 * HIDDEN) + 2 * 2 * HIDDEN + 3 + 2 * BATCH * LENGTH * 3


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("options", [{"batch_first": True}, {"batch_first": True, "num_layers": 2, "bidirectional": True}])
def test_recurrent(layer, options) -> None:
    torch.manual_seed(0)
    model = Tagger(layer, **options)
    eager = copy.deepcopy(model)
    batches = [(torch.randn(BATCH, LENGTH, INPUTS), torch.randn(BATCH, LENGTH, 3)) for _ in range(STEPS)]
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, eager)]
    step = spmd.compile(train_step, ranks=2)
    chain = chain_of(options.get("num_layers", 1))
    for i, (x, y) in enumerate(batches):
        ours, theirs = step(model, optimizers[0], x, y), train_step(eager, optimizers[1], x, y)
        assert abs(ours.item() - theirs.item()) < rounding((i + 1) * chain) * theirs.item()
    step.sync()
    for (name, ours), theirs in zip(model.named_parameters(), eager.parameters()):
        assert (ours - theirs).norm() < rounding(STEPS * chain) * theirs.norm(), name
