"""transformers' Adafactor, which counts its steps in Python and may have no learning rate: as eager, cold and warm, and its own
code goes on from what a compiled step leaves."""
from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F

transformers = pytest.importorskip("transformers", minversion="5.23.0")

import spmd  # noqa: E402

OPTIONS = {
    "as it comes": {},
    "warm-up": {"warmup_init": True, "beta1": 0.9},
    "a rate": {"lr": 1e-3, "relative_step": False, "scale_parameter": False, "weight_decay": 0.01},
}


def train_step(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("warm", [False, True])
def test_trains_as_eager(name, warm, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("SPMD_CACHE", str(tmp_path))
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
    batches = [(torch.randn(6, 8), torch.randint(0, 4, (6,))) for _ in range(5)]
    optimizer = transformers.optimization.Adafactor(model.parameters(), **OPTIONS[name])
    if warm:
        train_step(model, optimizer, *batches[0])
    twin, twins = copy.deepcopy((model, optimizer))
    compiled = spmd.compile(train_step, ranks=2)
    for number, batch in enumerate(batches):
        step = train_step if number == 4 else compiled
        torch.testing.assert_close(step(model, optimizer, *batch), train_step(twin, twins, *batch))
    for own, other in zip(model.parameters(), twin.parameters()):
        torch.testing.assert_close(own, other)
        for key, value in twins.state[other].items():
            torch.testing.assert_close(torch.as_tensor(optimizer.state[own][key], dtype=torch.float32),
                                       torch.as_tensor(value, dtype=torch.float32))
    assert compiled.compiles == 1
