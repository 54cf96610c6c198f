"""Forward-mode differentiation in a step trains like eager PyTorch."""
from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import spmd

pytestmark = pytest.mark.filterwarnings("ignore::spmd.CompilerWarning")

TERMS = {
    "jvp": lambda model, x: torch.func.jvp(model, (x,), (x.cos(),))[1].square().mean(),
    "jacfwd": lambda model, x: torch.func.vmap(torch.func.jacfwd(model))(x).square().mean(),
    "hessian": lambda model, x: torch.func.hessian(lambda row: model(row).sum())(x[0]).square().mean(),
}


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("term", TERMS.values(), ids=TERMS)
def test_it_trains_like_eager(term, ranks: int) -> None:
    def step(model, optimizer, x, y):
        loss = F.mse_loss(model(x), y) + 0.1 * term(model, x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    losses = []
    for call in (step, spmd.compile(step, ranks=ranks)):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(6, 4), torch.randn(6, 2)
        losses.append([call(model, optimizer, x, y).item() for _ in range(4)])
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


FIRST = """
import torch
import spmd

def step(model, optimizer, x):
    loss = torch.func.jvp(model, (x,), (x.cos(),))[1].square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2, bias=False))
spmd.capture(step, model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(6, 4))
"""


def test_a_process_may_begin_with_it() -> None:
    """PyTorch compiles what forward-mode needs with TorchScript when a process first uses it, here within a trace."""
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
