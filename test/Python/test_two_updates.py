"""A step that updates its parameters more than once: each pass reads those of its own time."""
from __future__ import annotations

import copy

import pytest
import torch

import spmd


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = torch.nn.Linear(12, 12), torch.nn.Linear(12, 12), torch.nn.Linear(12, 4)

    def forward(self, x):
        return self.head(torch.tanh(self.second(torch.abs(self.first(x)))).amax(1))


@pytest.mark.parametrize("ranks, options", [(1, {}), (2, {}), (2, {"mode": "replicate"}),
                                            (2, {"options": ["--reshard-after-forward=false"]})], ids=str)
def test_what_is_recomputed_reads_the_parameters_of_its_pass(ranks: int, options: dict) -> None:
    """The bias of a recomputed activation is small beside it: it was read from the first pass."""
    torch.manual_seed(35)
    model = Net()
    twin = copy.deepcopy(model)
    x, y = torch.randn(6, 9, 12), torch.randint(0, 4, (6,))

    def train_step(model, optimizer, x, y):
        for _ in range(2):
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        return loss
    ours, theirs = (torch.optim.Adam(m.parameters(), lr=0.01) for m in (model, twin))
    step = spmd.compile(train_step, ranks=ranks, **options)
    torch.testing.assert_close(step(model, ours, x, y), train_step(twin, theirs, x, y))
    for name, expected in twin.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], expected, msg=lambda m: f"{name}: {m}")
