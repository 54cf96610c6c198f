"""Trains a small GPT-like model by @spmd.compile, and prints losses and a checksum of the parameters.

    train.py TARGET RANKS [OPTION...]      in one process, or in several, each with its rows
"""
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn

import spmd

target, ranks, *options = sys.argv[1:]
rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
torch.manual_seed(3)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(32), nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        return x + self.down(F.dropout(F.relu(self.up(self.norm(x))), 0.1))


model = nn.Sequential(nn.Embedding(50, 32), Block(), Block(), nn.Linear(32, 50))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)


@spmd.compile(ranks=int(ranks), policy="class:Block", target=target, options=options)
def train_step(model, optimizer, x, y):
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return loss, norm


generator = torch.Generator().manual_seed(5)
for step in range(4):
    x, y = torch.randint(50, (8, 6), generator=generator), torch.randint(50, (8, 6), generator=generator)
    rows = slice(rank * 8 // world, (rank + 1) * 8 // world)
    loss, norm = train_step(model, optimizer, x[rows], y[rows])
    if rank == 0:
        print("loss", float(loss).hex(), "norm", float(norm).hex(), flush=True)
if "SPMD_HOST" in os.environ:  # on several hosts all read together
    train_step.sync()
if rank == 0:  # alone, as scripts save
    print("sum", sum(parameter.detach().double().abs().sum().item() for parameter in model.parameters()).hex())
