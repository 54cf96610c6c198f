"""accumulate=scattered, and parts of a batch that have fewer rows than there are ranks."""
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import spmd

pytestmark = pytest.mark.filterwarnings("ignore")


def train_step(model, optimizer, x, y, ends: bool):
    for a, b in zip(x.tensor_split(2), y.tensor_split(2)):
        F.mse_loss(model(a), b, reduction="sum").backward()
    if ends:
        optimizer.step()
        optimizer.zero_grad()


def call(rows: int) -> None:
    model = torch.nn.Linear(7, 3)
    step = spmd.compile(train_step, mesh="replicate:2,shard:2", accumulate="scattered")
    step(model, torch.optim.SGD(model.parameters(), lr=0.01), torch.randn(rows, 7), torch.randn(rows, 3), False)


def test_the_rows_are_named() -> None:
    """3 of 7 rows on 4 ranks; 4 and 4 are cut."""
    call(8)
    with pytest.raises(spmd.CompileError) as error:
        call(7)
    said, line = str(error.value), train_step.__code__.co_firstlineno + 2
    assert f"test_scattered_microbatches.py:{line}: error: accumulate=scattered: here the gradients of unit @unit0" in said
    assert "compute equally from tensor<3x7xf32>, " \
        "rows of the batch that are not cut over the ranks (a part of it needs a row for each rank)" in said
    assert "penalty" not in said and "use accumulate=sharded" in said
