"""What a first-time user runs into is one sentence with a hint."""
from __future__ import annotations

import subprocess
import warnings

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from step_check import tool
from torch import nn
from torch.distributed.fsdp import CPUOffload, CPUOffloadPolicy, OffloadPolicy

import spmd


def train_step(model, optimizer, x, y):
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def batch():
    return torch.randn(4, 4), torch.randn(4, 4)


@pytest.fixture
def group(tmp_path, monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("version", [1, 2])
def test_a_model_wrapped_by_fsdp(group, version: int) -> None:
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
    model = nn.Sequential(nn.Linear(4, 4))
    if version == 1:
        model[0] = FullyShardedDataParallel(model[0], device_id=torch.device("cpu"))
    else:
        fully_shard(model[0])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wrapper = "FullyShardedDataParallel" if version == 1 else "PyTorch's fully_shard"
    for call in (spmd.compile(train_step), lambda *args: spmd.capture(train_step, *args)):
        with pytest.raises(spmd.CaptureError, match=f"module '0' is wrapped by {wrapper}: .*\n  hint: pass the unwrapped model"):
            call(model, optimizer, *batch())


@pytest.mark.parametrize("name, value", [("use_orig_params", True), ("device_id", 0), ("limit_all_gathers", True),
                                         ("forward_prefetch", True), ("sync_module_states", True)])
def test_keywords_without_meaning_are_told(name: str, value) -> None:
    with pytest.warns(spmd.Remark, match=f"enable_wrap: {name} has no effect here: "):
        with spmd.enable_wrap(**{name: value}):
            spmd.wrap(nn.Linear(4, 4))


    with pytest.warns(spmd.Remark, match=f"spmd.compile: {name} has no effect here: "):
        spmd.compile(train_step, **{name: value})


@pytest.mark.parametrize("name, message", [
    ("auto_wrap_policy", "spmd.compile: auto_wrap_policy is policy= here"),
    ("mixed_precision", "spmd.compile: mixed_precision is precision= here"),
    ("sharding_strategy", "spmd.compile: sharding_strategy is mode=, and the options"),
    ("use_original_params", "spmd.compile got an unexpected keyword argument 'use_original_params'")])
def test_keywords_that_have_another_name(name: str, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        spmd.compile(train_step, **{name: None})


def test_keywords_that_ask_for_nothing_are_taken() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with spmd.enable_wrap(cpu_offload=None, process_group=None, param_init_fn=None):
            spmd.wrap(nn.Linear(4, 4))
        spmd.compile(train_step, cpu_offload=None, process_group=None)
        spmd.fully_shard(nn.Linear(4, 4), offload_policy=OffloadPolicy(), shard_placement_fn=None)


def test_offloading_is_refused() -> None:
    for refused in (True, CPUOffload(True)):
        with pytest.raises(ValueError, match=r"spmd.compile: cpu_offload=.*True\)? is not supported; leave it out"):
            spmd.compile(train_step, cpu_offload=refused)
    with pytest.raises(ValueError, match=r"fully_shard: offload_policy=CPUOffloadPolicy\(.* is not supported; leave it out"):
        spmd.fully_shard(nn.Linear(4, 4), offload_policy=CPUOffloadPolicy())
    with pytest.raises(ValueError, match="fully_shard: shard_placement_fn is not supported: each rank has a part of the unit's"):
        spmd.fully_shard(nn.Linear(4, 4), shard_placement_fn=lambda p: None)
    with pytest.raises(ValueError, match=r"cpu_offload=CPUOffload\(offload_params=True\) is not supported; leave it out"):
        with spmd.enable_wrap(cpu_offload=CPUOffload(True)):
            pass


def error_of(*command) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 2, done
    return done.stderr


def test_files_of_another_kind(tmp_path) -> None:
    model = nn.Linear(4, 4)
    torch.export.save(torch.export.export(model, batch()[:1]), tmp_path / "m.pt2")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    spmd.capture(train_step, model, optimizer, *batch()).save(tmp_path / "s.step")
    subprocess.run([tool("spmd-compile"), tmp_path / "s.step", "--quiet", "-o", tmp_path / "s.spmd"], check=True)
    assert f"m.pt2' is a model of torch.export, which has neither loss nor optimizer; python -m spmd.capture {tmp_path}/m.pt2 " \
        "--loss=logits:cross_entropy" in error_of(tool("spmd-compile"), tmp_path / "m.pt2", "-o", tmp_path / "a.spmd")
    torch.save(model.state_dict(), tmp_path / "m.pt")
    assert "m.pt' is a file of torch.save or torch.export, and no captured step; spmd.capture(" in error_of(
        tool("spmd-compile"), tmp_path / "m.pt", "-o", tmp_path / "a.spmd")
    assert "s.spmd' is an artifact, which spmd-run trains" in error_of(tool("spmd-compile"), tmp_path / "s.spmd", "-o",
                                                                       tmp_path / "a.spmd")
    assert "s.step' is a captured step, no artifact yet: spmd-compile '" in error_of(tool("spmd-run"), tmp_path / "s.step")
    assert "m.pt2' is a file, and no artifact" in error_of(tool("spmd-run"), tmp_path / "m.pt2")
