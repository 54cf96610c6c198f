"""A two-layer MLP with momentum SGD: the smallest complete training step.

    python examples/mlp.py --save mlp-sgd.step
    python examples/mlp.py --save mlp-sgd-foreach.step --foreach
    python examples/mlp.py --save mlp-uneven.step --batch 7 --sizes 11,19,5
"""
from __future__ import annotations

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn


class MLP(nn.Module):
    def __init__(self, features: int, hidden: int, classes: int):
        super().__init__()
        self.fc1 = nn.Linear(features, hidden)
        self.fc2 = nn.Linear(hidden, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(F.relu(self.fc1(x)))


def train_step(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def setup(foreach: bool | None = None, batch: int = 8, sizes: tuple[int, int, int] = (12, 20, 6), steps: int = 5,
          seed: int = 0) -> dict:
    """Everything spmd.capture needs: step, model, optimizer, one batch, reference batches."""
    torch.manual_seed(seed)
    features, _, classes = sizes
    model = MLP(*sizes)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=foreach)
    batches = [(torch.randn(batch, features), torch.randint(classes, (batch,))) for _ in range(steps)]
    return dict(train_step=train_step, model=model, optimizer=optimizer, args=batches[0], reference=batches)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", default="mlp-sgd.step", help="step package to write")
    parser.add_argument("--foreach", action="store_true", help="the foreach form of the optimizer")
    parser.add_argument("--batch", type=int, default=8, help="rows of the global batch")
    parser.add_argument("--sizes", default="12,20,6", help="features,hidden,classes")
    options = parser.parse_args()
    import spmd
    sizes = tuple(map(int, options.sizes.split(",")))
    example = setup(foreach=options.foreach or None, batch=options.batch, sizes=sizes)
    package = spmd.capture(example["train_step"], example["model"], example["optimizer"], *example["args"],
                           reference=example["reference"], name=Path(options.save).stem)
    package.save(options.save)


if __name__ == "__main__":
    main()
