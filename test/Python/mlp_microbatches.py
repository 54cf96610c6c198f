"""A step of six microbatches that has its iterations once, for tests of the importer.

    python test/Python/mlp_microbatches.py test/Inputs/mlp-microbatches.step
"""
from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT / "python-bindings"), str(ROOT / "examples"), str(Path(__file__).parent)]


def train_step(model, optimizer, xs, ys):
    losses, total = [], 0
    for x, y in zip(xs, ys):
        loss = F.cross_entropy(model(x), y) / len(xs)
        loss.backward()
        losses.append(loss.detach())
        total = total + losses[-1]
    optimizer.step()
    optimizer.zero_grad()
    return {"loss": total, "losses": losses}


def main() -> None:
    import mlp
    from iterations import roll, unroll

    import spmd
    torch.manual_seed(0)
    model = mlp.MLP(12, 20, 6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    calls = [([torch.randn(4, 12) for _ in range(6)], [torch.randint(6, (4,)) for _ in range(6)]) for _ in range(2)]
    path = Path(sys.argv[1])
    package = spmd.capture(train_step, model, optimizer, *calls[0], reference=calls, name=path.stem)
    rolled = roll(unroll(json.loads(package.text())))
    dataclasses.replace(package, step=rolled).save(path)


if __name__ == "__main__":
    main()
