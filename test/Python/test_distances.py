"""PyTorch has another op for Euclidean distances of more than 25 rows, which it multiplies."""
from __future__ import annotations

import torch
from step_check import compute


def test_euclidean_distances_of_many_rows(tmp_path) -> None:
    torch.manual_seed(0)
    x, y = torch.randn(27, 3), torch.randn(5, 3)
    got, = compute(lambda x, y: (torch.cdist(x, y),), [x, y], tmp_path)
    expected = (x.double()[:, None] - y.double()).norm(dim=-1)  # the product rounds more than this
    assert torch.allclose(got.double(), expected, rtol=16 * torch.finfo(torch.float32).eps, atol=0)
