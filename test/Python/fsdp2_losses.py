"""Losses of PyTorch's FSDP2 on CPUs, for test_precision.py and test_meshes.py: python fsdp2_losses.py RANKS PARAM REDUCE STEPS.

RANKS is a number, or a mesh of two axes like 2x2.

Prints the losses of each step, the mean over the ranks, and the types that were gathered and reduced.
"""
from __future__ import annotations

import json
import math
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from gloo_process import leave
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


def main(rank: int, sizes: list[int], param: str, reduce: str, steps: int, store: str) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    ranks = math.prod(sizes)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    model, _ = setup()
    policy = MixedPrecisionPolicy(*(getattr(torch, name) if name else None for name in (param, reduce)))
    options = {"mp_policy": policy}
    if len(sizes) > 1:
        options["mesh"] = init_device_mesh("cpu", tuple(sizes), mesh_dim_names=("replicate", "shard"))
    for block in model.blocks:
        fully_shard(block, **options)
    fully_shard(model, **options)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    seen = {"all_gather": set(), "reduce_scatter": set(), "all_reduce": set()}
    _record(dist, seen)
    losses = []
    for x, y in batches(steps):
        loss = train_step(model, optimizer, x.chunk(ranks)[rank], y.chunk(ranks)[rank])
        dist.all_reduce(loss)
        losses.append(loss.item() / ranks)
    if rank == 0:
        print(json.dumps({"losses": losses, **{name: sorted(types) for name, types in seen.items()}}))
    leave()


def _record(module, seen: dict[str, set[str]]) -> None:
    """Notes the types that collectives move, under the names that they have had."""
    for name, function in (("all_gather_single", "all_gather"), ("all_gather_into_tensor", "all_gather"),
                           ("reduce_scatter_single", "reduce_scatter"), ("reduce_scatter_tensor", "reduce_scatter"), ("all_reduce", "all_reduce")):
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, _noting(original, seen[function]))


def _noting(original, types: set[str]):
    def noted(*args, **kwargs):
        moved = next(x for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor))
        types.add(str(moved.dtype).removeprefix("torch."))
        return original(*args, **kwargs)

    return noted


if __name__ == "__main__":
    mesh, *names, count, file = sys.argv[1:]
    mesh = [int(size) for size in mesh.split("x")]
    torch.multiprocessing.spawn(main, (mesh, *names, int(count), file), nprocs=math.prod(mesh))
