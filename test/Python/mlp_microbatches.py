"""Steps of several microbatches that have their iterations once, for tests of the importer.

    python test/Python/mlp_microbatches.py test/Inputs/mlp-microbatches.step 6 losses
    python test/Python/mlp_microbatches.py test/Inputs/mlp-accumulate.step 8
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


def accumulate(model, optimizer, xs, ys):
    total = 0
    for x, y in zip(xs, ys):
        loss = F.cross_entropy(model(x), y) / len(xs)
        loss.backward()
        total = total + loss.detach()
    optimizer.step()
    optimizer.zero_grad()
    return total


def all_losses(model, optimizer, xs, ys):
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
    path, count = Path(sys.argv[1]), int(sys.argv[2])
    calls = [([torch.randn(4, 12) for _ in range(count)], [torch.randint(6, (4,)) for _ in range(count)])
             for _ in range(2)]
    step = all_losses if sys.argv[3:] == ["losses"] else accumulate
    package = spmd.capture(step, model, optimizer, *calls[0], reference=calls, name=path.stem)
    rolled = roll(unroll(json.loads(package.text())))
    dataclasses.replace(package, step=rolled).save(path)


if __name__ == "__main__":
    main()
