"""Steps that compute row numbers: row_numbers.py TARGET [OPTION...]. Prints losses, and the error of a bad number."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

import spmd


class Rows(nn.Module):
    """Words by a computed number, labels one of which is ignored, rows counted from the end."""

    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(7, 4), nn.Linear(4, 5)
        self.rows = nn.Parameter(torch.randn(9, 4))

    def forward(self, ids):
        scores = self.head(self.table(ids - 1) + self.rows[ids - 8])
        return F.cross_entropy(scores, torch.where(ids > 4, -100, ids - 1))


def step(model, optimizer, ids):
    loss = model(ids)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


torch.manual_seed(3)
model = Rows()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train = spmd.compile(step, ranks=2, target=sys.argv[1], options=sys.argv[2:])
ids = torch.tensor([5, 1, 3, 2, 4, 7])
for _ in range(4):
    print("loss", float(train(model, optimizer, ids)))
ids[4] = 8
try:
    print("loss", float(train(model, optimizer, ids)))
except spmd.RunError as error:
    print("error", str(error).replace("\n", " "))
