"""Steps that compute row numbers: row_numbers.py TARGET [local] [good] [OPTION...]. Prints losses; unless good, the
error of a bad number and whether the state is what it was before it; and the loss of the next step."""
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
bad = "good" not in sys.argv
view = "local" if "local" in sys.argv else "global"
train = spmd.compile(step, ranks=2, target=sys.argv[1], view=view, options=[o for o in sys.argv[2:] if o not in ("local", "good")])
ids = torch.tensor([5, 1, 3, 2, 4, 7])
for _ in range(4):
    print("loss", float(train(model, optimizer, ids)))
before = {name: value.clone() for name, value in model.state_dict().items()}
good = ids.clone()
ids[4] = 8
try:
    print("loss", float(train(model, optimizer, ids if bad else good)))
except spmd.RunError as error:
    print("error", error.code, str(error).replace("\n", " "))
    if error.code == 2:  # the ranks have been as far as ever, and go on
        print("kept" if all(torch.equal(value, before[name]) for name, value in model.state_dict().items()) else "changed")
        print("loss", float(train(model, optimizer, good)))
