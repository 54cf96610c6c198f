"""FSDP2 of stock PyTorch with torch.distributed.checkpoint, under torchrun, for test_distributed_checkpoint.py:
fsdp2_checkpoint.py save|resume FOLDER. Trains 4 steps and saves, or loads; then trains 4 more, whose losses it writes."""
from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from gloo_process import leave
from torch import nn

AT, STEPS, ROWS = 4, 8, 12


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm = nn.Embedding(16, 8), nn.LayerNorm(8)
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))
        self.out = nn.Linear(8, 16, bias=False)
        self.out.weight = self.embed.weight
        self.register_buffer("scale", torch.tensor([1.5]))

    def forward(self, x):
        x = self.norm(self.embed(x)) * self.scale
        for layer in self.layers:
            x = x + F.gelu(layer(x))
        return self.out(x)


def make_model(seed: int) -> Net:
    torch.manual_seed(seed)
    return Net()


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    wide, narrow = ([p for p in model.parameters() if (p.dim() > 1) == is_wide] for is_wide in (True, False))
    return torch.optim.AdamW([{"params": wide}, {"params": narrow, "weight_decay": 0.0}], lr=0.02, betas=(0.8, 0.99))


def batch(number: int):
    x = torch.randint(0, 16, (ROWS,), generator=torch.Generator().manual_seed(number))
    return x, (5 * x + 3) % 16


def train_step(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def main(what: str, folder: Path) -> None:
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch.distributed.fsdp import fully_shard
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    model = make_model(0 if what == "save" else 7)
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    optimizer = make_optimizer(model)

    def train(first: int, last: int) -> list[float]:
        losses = []
        for number in range(first, last):
            loss = train_step(model, optimizer, *(part.chunk(world)[rank] for part in batch(number))).detach()
            dist.all_reduce(loss, op=dist.ReduceOp.SUM)
            losses.append(loss.item() / world)
        return losses

    if what == "save":
        train(0, AT)
    weights, state = get_state_dict(model, optimizer)
    if what == "save":
        dcp.save({"model": weights, "optimizer": state}, checkpoint_id=folder / "dcp")
    else:
        dcp.load({"model": weights, "optimizer": state}, checkpoint_id=folder / "dcp")
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=state)
    losses = train(AT, STEPS)
    if rank == 0:
        (folder / f"{what}.json").write_text(json.dumps(losses))
    leave()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1], Path(sys.argv[2]))
