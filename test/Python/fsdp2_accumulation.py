"""Losses of PyTorch's FSDP2 on CPUs over micro-steps, for test_accumulation.py:
python fsdp2_accumulation.py RANKS PARAM SYNC CALLS STORE.

SYNC is "each", FSDP2's default, or "last": set_requires_gradient_sync(False) but for the last of two micro-steps. Prints the
losses of each call, the mean over the ranks, and how many reductions each had.
"""
from __future__ import annotations

import json
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from small_net import batches, setup
from gloo_process import leave
from torch import nn


def micro_step(model, optimizer, x, y, ends: bool):
    loss = F.cross_entropy(model(x).flatten(0, 1).float(), y.flatten())
    (loss / 2).backward()
    if ends:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return loss.detach()


def main(rank: int, ranks: int, param: str, sync: str, calls: int, store: str) -> None:
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    model, _ = setup()
    policy = MixedPrecisionPolicy(getattr(torch, param), torch.float32) if param else MixedPrecisionPolicy()
    for block in model.blocks:
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    counts, losses = [], []
    for name in ("reduce_scatter_single", "reduce_scatter_tensor"):
        if (original := getattr(dist, name, None)) is not None:
            setattr(dist, name, lambda *args, original=original, **kwargs: counts.append(counts.pop() + 1)
                    or original(*args, **kwargs))
    for number, (x, y) in enumerate(batches(calls)):
        counts.append(0)
        model.set_requires_gradient_sync(sync == "each" or number % 2 == 1)
        loss = micro_step(model, optimizer, x.chunk(ranks)[rank], y.chunk(ranks)[rank], number % 2 == 1)
        dist.all_reduce(loss)
        losses.append(loss.item() / ranks)
    if rank == 0:
        print(json.dumps({"losses": losses, "reductions": counts}))
    leave()


if __name__ == "__main__":
    number, param, sync, count, file = sys.argv[1:]
    torch.multiprocessing.spawn(main, (int(number), param, sync, int(count), file), nprocs=int(number))
