"""Models that fit no machine: on the meta device or of fake tensors, captured without computing or allocating."""
from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch._subclasses import FakeTensorMode

import spmd
from spmd.capture.__main__ import main

WIDTH = 1_000_000  # a weight of 4 TB


def train_step(model, optimizer, x):
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def example():
    """For the command line."""
    model = nn.Linear(WIDTH, WIDTH, device="meta")
    return dict(train_step=train_step, model=model, optimizer=torch.optim.AdamW(model.parameters()),
                args=(torch.empty(8, WIDTH, device="meta"),))


def capture_linear(make_optimizer):
    model = nn.Linear(WIDTH, WIDTH, device="meta")
    return spmd.capture(train_step, model, make_optimizer(model.parameters()), torch.empty(8, WIDTH, device="meta"))


@pytest.mark.parametrize("make_optimizer", [
    torch.optim.SGD, lambda p: torch.optim.SGD(p, momentum=0.9), torch.optim.Adam, torch.optim.AdamW,
    lambda p: torch.optim.AdamW(p, fused=True, amsgrad=True), lambda p: torch.optim.Adagrad(p, fused=True),
    lambda p: torch.optim.AdamW(p, foreach=True), lambda p: torch.optim.AdamW(p, foreach=False, fused=False)])
def test_optimizers_compute_nothing(make_optimizer) -> None:
    package = capture_linear(make_optimizer)
    assert package.step["parameters"][0]["shape"] == [WIDTH, WIDTH]
    initial = {i["init"] for i in package.step["inputs"] if i["kind"] == "state"}
    assert initial <= {0.0, None}  # Adagrad makes its state when it is constructed


def test_fake_model_is_the_meta_model(tmp_path: Path) -> None:
    on_meta = capture_linear(torch.optim.AdamW)
    with FakeTensorMode():
        model, x = nn.Linear(WIDTH, WIDTH), torch.empty(8, WIDTH)
        optimizer = torch.optim.AdamW(model.parameters())
    fake = spmd.capture(train_step, model, optimizer, x)
    assert fake.text() == on_meta.text()
    with pytest.raises(ValueError, match="save with weights=False"):
        fake.save(tmp_path / "a.step")
    fake.save(tmp_path / "a.step", weights=False)
    assert [f.name for f in (tmp_path / "a.step").iterdir()] == ["step.json"]


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    target = f"{__file__}:example"
    assert main([target, "-o", str(tmp_path / "a.step")]) == 2
    assert "save with weights=False (--no-weights)" in capsys.readouterr().err
    assert not (tmp_path / "a.step").exists()
    assert main([target, "-o", str(tmp_path / "a.step"), "--no-weights"]) == 0
    assert "1,000,001,000,000 numbers" in capsys.readouterr().out
