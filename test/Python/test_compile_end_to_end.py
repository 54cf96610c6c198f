"""spmd.compile with the real compiler and runtime, next to eager PyTorch."""
from __future__ import annotations

import copy
import subprocess

import gpt2
import mlp
import pytest
import torch
from safetensors.torch import load_file
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

import spmd
from spmd.tools import find_tool


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a.double() - b.double()).norm() / b.double().norm().clamp_min(1e-12))


def assert_same_parameters(model, expected, without=(), tolerance=1e-5) -> None:
    for name, value in expected.state_dict().items():
        if name not in without:
            assert relative(model.state_dict()[name], value) < tolerance, name


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_mlp_trains_like_eager(ranks: int) -> None:
    example = mlp.setup()
    model, optimizer = example["model"], example["optimizer"]
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    train_step = spmd.compile(mlp.train_step, ranks=ranks, threads=2)
    for x, y in example["reference"]:
        loss = train_step(model, optimizer, x, y)
        expected = mlp.train_step(twin, twin_optimizer, x, y)
        assert loss.shape == () and abs(loss.item() - expected.item()) < 1e-5
    train_step.sync()
    assert_same_parameters(model, twin)
    for p, q in zip(model.parameters(), twin.parameters()):
        assert relative(optimizer.state[p]["momentum_buffer"], twin_optimizer.state[q]["momentum_buffer"]) < 1e-5


def test_gpt_with_policy_schedule_and_a_stay_in_eager() -> None:
    example = gpt2.setup("tiny", steps=8)
    model, optimizer = example["model"], example["optimizer"]
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    schedulers = [torch.optim.lr_scheduler.ExponentialLR(o, 0.8) for o in (optimizer, twin_optimizer)]
    train_step = spmd.compile(gpt2.train_step, ranks=4, policy=ModuleWrapPolicy({gpt2.Block}), threads=2)
    for number, (x, y) in enumerate(example["reference"]):
        if number == 3:  # one step in eager, on the state brought back, then on from there
            train_step.sync()
            loss = gpt2.train_step(model, optimizer, x, y)
            train_step.reset()
        else:
            loss = train_step(model, optimizer, x, y)
        expected = gpt2.train_step(twin, twin_optimizer, x, y)
        assert abs(loss.item() - expected.item()) < 1e-4 * expected.item()
        for scheduler in schedulers:
            scheduler.step()
    assert train_step.trainer.ranks == 4
    assert {c.unit for c in train_step.trainer.collectives if c.op == "reduce_scatter"} >= {"unit0", "unit1"}
    train_step.sync()
    assert_same_parameters(model, twin, example["zero_gradient"], 1e-3)
    assert model.lm_head.weight is model.wte.weight


def test_ahead_of_time(tmp_path) -> None:
    """capture, spmd-compile, spmd.load: the same without the decorator."""
    example = mlp.setup()
    package = spmd.capture(mlp.train_step, example["model"], example["optimizer"], *example["args"],
                           reference=example["reference"])
    package.save(tmp_path / "mlp.step")
    subprocess.run([find_tool("spmd-compile"), tmp_path / "mlp.step", "-o", tmp_path / "mlp.spmd", "--ranks=2"],
                   check=True, capture_output=True)
    with spmd.load(tmp_path / "mlp.spmd", threads=2) as trainer:
        losses = [trainer.step(x, y).item() for x, y in example["reference"]]
        trainer.save_parameters(tmp_path / "final.safetensors")
    torch.testing.assert_close(torch.tensor(losses, dtype=torch.float64), package.reference["loss"], rtol=1e-5, atol=0)
    for name, value in load_file(tmp_path / "final.safetensors").items():
        assert relative(value, package.reference[f"final/{name}"]) < 1e-5


def test_a_token_that_is_no_row_is_refused() -> None:
    example = gpt2.setup("tiny", steps=1)
    train_step = spmd.compile(gpt2.train_step, ranks=2, threads=2)
    x, y = example["args"]
    train_step(example["model"], example["optimizer"], x, y)
    with pytest.raises(spmd.RunError, match="65"):
        train_step(example["model"], example["optimizer"], torch.full_like(x, 65), y)


def test_the_compilers_error_reaches_the_user() -> None:
    example = mlp.setup()
    train_step = spmd.compile(mlp.train_step, ranks=2, policy="class:Missing")
    with pytest.raises(spmd.CompileError, match="no module has class 'Missing'"):
        train_step(example["model"], example["optimizer"], *example["args"])
