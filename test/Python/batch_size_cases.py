"""Steps that one program can serve several batch sizes of: a model, what makes a batch of so many rows, and a loss."""
from __future__ import annotations

from typing import Callable

import torch
import torch.nn.functional as F
from torch import nn

LARGEST = 9


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(rows, length, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(rows, length, width)
        x = x + self.drop(self.out(y))
        return x + self.mlp(x)


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(11, 8), nn.Embedding(5, 8)
        self.blocks, self.head = nn.Sequential(Block(8), Block(8)), nn.Linear(8, 11, bias=False)

    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device)
        return self.head(self.blocks(self.tokens(x) + self.places(places)))


def gpt():
    return GPT(), lambda n: (torch.randint(0, 11, (n, 5)), torch.randint(0, 11, (n, 5))), \
        lambda model, x, y: F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def mlp():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4)), \
        lambda n: (torch.randn(n, 6), torch.randn(n, 4)), lambda model, x, y: F.mse_loss(model(x), y)


def batch_norm():
    model = nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5))
    return model, lambda n: (torch.randn(n, 3, 8, 8), torch.randint(0, 5, (n,))), \
        lambda model, x, y: F.cross_entropy(model(x), y)


def statistics():
    """Largest and smallest, variances and means over rows, and a number that Python computes from how many there are."""
    def loss(model, x, y):
        out = model(x)
        high, low = out.amax(0), out.amin(0)
        whole = out.std() + out.var(0, unbiased=False).sum() + (out * out).sum() / x.shape[0] + out.mean(0).norm()
        return whole + F.smooth_l1_loss(out, y) + (high - low).sum() + F.l1_loss(out, y, reduction="sum") / (3 * len(y))
    return nn.Linear(6, 4), lambda n: (torch.randn(n, 6), torch.randn(n, 4)), loss


def per_row():
    """Rows that a step makes itself, and outputs with rows."""
    def loss(model, x, y):
        numbers = torch.arange(x.shape[0], dtype=x.dtype).view(-1, 1)
        out = model(torch.cat([x, torch.ones(x.shape[0], 1)], 1)) + 0.1 * numbers
        return ((out - y) ** 2).sum(1)
    return nn.Linear(7, 4), lambda n: (torch.randn(n, 6), torch.randn(n, 4)), loss


def time_major():
    return nn.Linear(6, 4), lambda n: (torch.randn(3, n, 6), torch.randn(3, n, 4)), \
        lambda model, x, y: F.mse_loss(model(x), y) + model(x).flatten(0, 1).square().mean()


def broadcast():
    """A table of one row for all, whose gradient PyTorch adds up only where there are several."""
    class Shifted(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.shift = nn.Linear(6, 4), nn.Parameter(torch.randn(1, 4))

        def forward(self, x):
            return torch.tanh(self.first(x) + self.shift) * self.shift
    return Shifted(), lambda n: (torch.randn(n, 6), torch.randn(n, 4)), lambda model, x, y: F.mse_loss(model(x), y)


CASES = {case.__name__: case for case in (gpt, mlp, batch_norm, statistics, per_row, time_major, broadcast)}
DIMS = {"time_major": {"x": 1, "y": 1}}


def train_step_of(loss_of: Callable) -> Callable:
    def train_step(model, optimizer, x, y):
        loss = loss_of(model, x, y)
        loss.sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss
    return train_step
