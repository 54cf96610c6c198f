"""Clipping by other norms than the Euclidean, and weights that are a direction and a length: what ranks hold pieces of
is measured whole."""
from __future__ import annotations

from pathlib import Path

import pipeline
import pytest
import torch
import torch.nn.functional as F
import zoo
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_
from torch.nn.utils.parametrizations import weight_norm

import spmd

ROWS = 5


class Net(nn.Module):
    def __init__(self, wrap=lambda module: module):
        super().__init__()
        self.layers = nn.Sequential(wrap(nn.Linear(7, 12)), nn.Tanh(), wrap(nn.Linear(12, 3)))

    def forward(self, x, y):
        return F.mse_loss(self.layers(x), y)


def step_with(clip):
    def train_step(model, optimizer, x, y):
        loss = model(x, y)
        loss.backward()
        clip(model.parameters())
        optimizer.step()
        optimizer.zero_grad()
        return loss
    return train_step


def check(model: nn.Module, clip, folder: Path) -> None:
    """On 2 and 3 ranks the captured step in doubles; three steps of the compiled one follow eager PyTorch."""
    torch.manual_seed(0)
    batches = [(torch.randn(ROWS, 7), torch.randn(ROWS, 3)) for _ in range(3)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    path = folder / "clip.step"
    spmd.capture(step_with(clip), model, optimizer, *batches[0], reference=batches).save(path)
    case = zoo.Case("Net", "", {}, dict, "Linear")
    for ranks in (2, 3):
        pipeline.compare(path, case, ranks)
    pipeline.train(path, case, 2, rtol=1e-5)


def check_norm(order: float, foreach: bool, folder: Path) -> None:
    torch.manual_seed(1)
    model, limit = Net(), 0.05 if order >= 0 else 1e-9  # the smallest gradient is the largest that such a norm can be

    def clip(parameters):
        return clip_grad_norm_(parameters, limit, norm_type=order, foreach=foreach)
    check(model, clip, folder)
    # It does something: the first gradient is longer.
    torch.manual_seed(0)
    model(torch.randn(ROWS, 7), torch.randn(ROWS, 3)).backward()
    assert float(clip(model.parameters())) > limit


@pytest.mark.parametrize("foreach", [True, False])
def test_clipped_by_the_largest(foreach, tmp_path) -> None:
    check_norm(float("inf"), foreach, tmp_path)


@pytest.mark.parametrize("foreach", [True, False])
@pytest.mark.parametrize("order", [0.5, 1.0, 3.0, 0.0, -1.5, float("-inf")])
def test_clipped_by_another_norm(order, foreach, tmp_path) -> None:
    check_norm(order, foreach, tmp_path)


def test_clipped_by_value(tmp_path) -> None:
    torch.manual_seed(1)
    check(Net(), lambda parameters: clip_grad_value_(parameters, 0.01), tmp_path)


def test_weight_norm(tmp_path) -> None:
    torch.manual_seed(1)
    check(Net(weight_norm), lambda parameters: clip_grad_norm_(parameters, 1.0), tmp_path)
