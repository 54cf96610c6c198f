"""Triangular systems train as eager, on ranks, in all of their forms."""
from __future__ import annotations

import copy
import itertools

import pytest
import torch

import spmd
from spmd.capture.ops.triangular import solve_triangular


@pytest.mark.parametrize("size", [1, 2, 3, 8, 13, 64])
@pytest.mark.sample(2)
def test_solutions(size: int) -> None:
    torch.manual_seed(size)
    for upper, left, unit in itertools.product((False, True), repeat=3):
        matrix = torch.randn(2, 3, size, size, dtype=torch.float64) / size ** 0.5
        if not unit:  # else the diagonal is whatever it is
            matrix += 2 * torch.eye(size, dtype=torch.float64)
        right = torch.randn(3, *((size, 4) if left else (4, size)), dtype=torch.float64)  # is broadcast
        options = {"upper": upper, "left": left, "unitriangular": unit}
        torch.testing.assert_close(solve_triangular(matrix, right, **options),
                                   torch.linalg.solve_triangular(matrix, right, **options), rtol=1e-9, atol=1e-9)


class Mixer(torch.nn.Module):
    """As gated delta rules solve for each chunk of a sequence."""

    def __init__(self, options: dict) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.key, self.value, self.options = torch.nn.Linear(6, 5), torch.nn.Linear(6, 4), options

    def forward(self, x):
        key = torch.nn.functional.normalize(self.key(x), dim=-1)
        products = key @ key.mT + torch.eye(x.shape[1])
        value = self.value(x) if self.options.get("left", True) else self.value(x).mT
        return torch.linalg.solve_triangular(products, value, **self.options)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("options", [{"upper": False}, {"upper": False, "unitriangular": True}, {"upper": True, "left": False}], ids=str)
@pytest.mark.sample(2)
def test_trains_as_eager(options: dict, ranks: int, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SPMD_CACHE", str(tmp_path))

    def step(model, optimizer, x):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    model = Mixer(options)
    twin = copy.deepcopy(model)
    optimizers = [torch.optim.AdamW(m.parameters(), lr=0.01) for m in (model, twin)]
    compiled = spmd.compile(step, ranks=ranks)
    torch.manual_seed(1)
    for _ in range(3):
        x = torch.randn(5, 7, 6)
        torch.testing.assert_close(compiled(model, optimizers[0], x), step(twin, optimizers[1], x), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(model.state_dict(), twin.state_dict(), rtol=1e-4, atol=1e-5)
