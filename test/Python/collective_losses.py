"""A contrastive step among ranks, for test_collectives.py. By itself, eager PyTorch in gloo processes: python
collective_losses.py RANKS prints the mean over the ranks of the losses of each step, and parameters after the last."""
from __future__ import annotations

import json
import sys

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.nn.functional as F
from torch import nn

STEPS, ROWS = 4, 3


class Towers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.left, self.right = nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 6)), nn.Linear(4, 6)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x, y):
        return F.normalize(self.left(x), dim=-1), F.normalize(self.right(y), dim=-1)


def train_step(model, optimizer, x, y):
    """Each rank's rows against those of all ranks, as CLIP is trained."""
    left, right = model(x, y)
    group = dist.group.WORLD
    everyone = funcol.all_gather_tensor_autograd(torch.cat([left, right], 1), 0, group)
    ours = funcol.reduce_scatter_tensor(everyone.detach(), "sum", 0, group) / group.size()  # our own rows again
    logits = model.scale * left @ everyone[:, 6:].T
    mine = (logits - torch.logsumexp(logits, 1, keepdim=True)) * (ours @ everyone.T.detach() > 1.999)
    loss = -mine.sum() / left.shape[0]
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    mean = funcol.all_reduce(loss.detach(), "sum", group) / group.size()
    return {"loss": loss, "mean": mean, "largest": funcol.all_reduce(logits.detach().amax(), "max", group),
            "first": funcol.broadcast(left.detach(), 0, group)}


def setup():
    model = Towers()
    return model, torch.optim.AdamW(model.parameters(), lr=0.02)


def batches(ranks: int):
    torch.manual_seed(1)
    return [(torch.randn(ROWS * ranks, 5), torch.randn(ROWS * ranks, 4)) for _ in range(STEPS)]


def main(ranks: int) -> None:
    from gloo_process import leave
    dist.init_process_group("gloo")
    model, optimizer = setup()
    # Gradients are averaged where they are there, as DDP does.
    for parameter in model.parameters():
        def average(p):
            dist.all_reduce(p.grad)
            p.grad /= ranks
        parameter.register_post_accumulate_grad_hook(average)
    found = []
    for x, y in batches(ranks):
        rank = dist.get_rank()
        result = train_step(model, optimizer, x.chunk(ranks)[rank], y.chunk(ranks)[rank])
        found.append({name: value.tolist() for name, value in result.items() if name != "loss"})
    if dist.get_rank() == 0:
        print(json.dumps({"results": found, "state": {n: p.tolist() for n, p in model.state_dict().items()}}))
    leave()


if __name__ == "__main__":
    main(int(sys.argv[1]))
