"""A small network of blocks and its step, of which tests make compiled steps and FSDP2's."""
from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, width: int = 32, tokens: int = 64):
        super().__init__()
        self.embed, self.norm = nn.Embedding(tokens, width), nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(2))
        self.head = nn.Linear(width, tokens, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def train_step(model, optimizer, x, y):
    loss = F.cross_entropy(model(x).flatten(0, 1).float(), y.flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


def setup():
    torch.manual_seed(0)
    model = Net()
    with torch.no_grad():
        model.embed.weight.mul_(0.1)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batches(steps: int):
    torch.manual_seed(1)
    return [(x, (7 * x + 3) % 64) for x in (torch.randint(0, 64, (12, 10)) for _ in range(steps))]
