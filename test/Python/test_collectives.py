"""Functional collectives of torch.distributed in a step with view="local" give what they give among processes."""
from __future__ import annotations

import contextlib
import copy
import functools
import json
import os
import subprocess
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.nn.functional as F
from python_processes import torchrun
from torch.testing._internal.distributed.fake_pg import FakeStore

import spmd
from collective_losses import batches, setup, train_step
from spmd.tools import find_tool

HERE = Path(__file__).parent


@contextlib.contextmanager
def group_of(ranks: int):
    """A process group of as many, of which this process is one: nobody communicates."""
    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
    try:
        yield
    finally:
        dist.destroy_process_group()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SPMD_CACHE", str(tmp_path / "cache"))


def run(tool: str, *arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run([find_tool(tool), *map(str, arguments)], capture_output=True, text=True)


def eager(ranks: int) -> dict:
    """What gloo processes say."""
    done = subprocess.run([*torchrun(f"--nproc-per-node={ranks}"), str(HERE / "collective_losses.py"), str(ranks)], capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def of_processes():
    return functools.cache(eager)


@pytest.mark.parametrize("ranks, options", [
    (1, {}), (2, {}), (4, {}), (2, {"mode": "replicate"}), (4, {"mode": "shard_grad_op", "policy": "class:Linear"}),
    (4, {"mesh": "replicate:2,shard:2"})], ids=str)
@pytest.mark.sample(2)
def test_trains_as_processes(of_processes, ranks: int, options: dict) -> None:
    expected = of_processes(ranks)
    with group_of(ranks):
        step = spmd.compile(train_step, **{"ranks": ranks, **options} if "mesh" not in options else options, view="local",
                            launcher="none")
        model, optimizer = setup()
        for (x, y), values in zip(batches(ranks), expected["results"], strict=True):
            result = step(model, optimizer, x, y)
            for name, value in values.items():
                torch.testing.assert_close(result[name], torch.tensor(value), rtol=1e-4, atol=1e-6)
            torch.testing.assert_close(result["loss"], result["mean"], rtol=1e-5, atol=1e-6)
    for name, value in expected["state"].items():
        torch.testing.assert_close(model.state_dict()[name], torch.tensor(value), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("ranks", [2, 3])
def test_ahead_of_time(ranks: int, tmp_path) -> None:
    """The reference is eager in this process, rank by rank; so are the interpreter's values after each phase."""
    whole = batches(ranks)
    with group_of(ranks):
        model, optimizer = setup()
        own = [t.chunk(ranks)[0] for t in whole[0]]
        package = spmd.capture(train_step, model, optimizer, *own, reference=whole, reference_ranks=ranks)
    step, program, artifact = package.save(tmp_path / "s.step"), tmp_path / "s.mlir", tmp_path / "s.spmd"
    options = [f"--ranks={ranks}", "--view=local", "--quiet"]
    for phase in ("partition", "decompose", "collectives", "kernels"):
        done = run("spmd-compile", step, f"--compile-to={phase}", "-o", program, *options)
        assert done.returncode == 0, done.stderr
        done = run("spmd-interpret", program, f"--weights={step}", "--reference")
        assert done.returncode == 0, phase + done.stdout + done.stderr
    for target in ("host", "emulate:sm_90"):
        done = run("spmd-compile", step, "-o", artifact, f"--target={target}", *options)
        assert done.returncode == 0, done.stderr
        done = run("spmd-run", artifact, "--check", "--quiet")
        assert done.returncode == 0, done.stdout + done.stderr


def test_gradients_that_a_step_averages_itself(tmp_path) -> None:
    """As DDP by hand: what is the same on all ranks is not reduced again."""
    def step(model, optimizer, x, y):
        loss = F.mse_loss(model(x), y)
        loss.backward()
        for p in model.parameters():
            p.grad = funcol.all_reduce(p.grad, "avg", dist.group.WORLD)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    torch.manual_seed(0)
    whole = [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]
    model, twin = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
    twin.load_state_dict(model.state_dict())
    optimizer, twin_optimizer = (torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (model, twin))
    with group_of(2):
        compiled = spmd.compile(step, ranks=2, view="local", launcher="none")
        for x, y in whole:
            loss = compiled(model, optimizer, x, y)
            expected = F.mse_loss(twin(x), y)  # halves of one size: the mean of means is the mean
            expected.backward()
            twin_optimizer.step()
            twin_optimizer.zero_grad()
            torch.testing.assert_close(loss.detach(), expected.detach())
    torch.testing.assert_close(model.state_dict(), twin.state_dict())


def test_those_that_write_in_place(tmp_path) -> None:
    """As scripts for DistributedDataParallel have them; the reference is eager, rank by rank."""
    def step(model, optimizer, x, y):
        out = model(x)
        loss = F.mse_loss(out, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        numbers = torch.stack([loss.detach(), out.detach().amax()])
        work = dist.all_reduce(numbers, async_op=True)
        work.wait()
        most = numbers[1].clone()
        dist.all_reduce(most, op=dist.ReduceOp.MAX)
        every, parts = out.new_zeros(2 * out.shape[0], 3), [torch.zeros_like(out) for _ in range(2)]
        dist.all_gather_into_tensor(every, out.detach())
        dist.all_gather(parts, out.detach())
        mine = out.new_zeros(out.shape)
        dist.reduce_scatter_tensor(mine, every)
        first = out.detach().clone()
        dist.broadcast(first, 1)
        dist.barrier()
        return {"loss": loss, "numbers": numbers, "most": most, "every": every, "parts": parts, "mine": mine, "second": first}

    torch.manual_seed(0)
    whole = [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]
    model = torch.nn.Linear(4, 3)
    optimizer, before = torch.optim.SGD(model.parameters(), lr=0.1), copy.deepcopy(model)
    with group_of(2):
        package = spmd.capture(step, model, optimizer, *(t[:3] for t in whole[0]), reference=whole, reference_ranks=2)
        package.save(tmp_path / "s.step")
        compiled = spmd.compile(step, ranks=2, view="local", launcher="none")
        result = compiled(model, optimizer, *whole[0])
    out = before(whole[0][0]).detach()
    losses = [F.mse_loss(o, y) for o, y in zip(out.chunk(2), whole[0][1].chunk(2))]
    for name, value in {"numbers": torch.stack([sum(losses), out[:3].amax() + out[3:].amax()]), "mine": 2 * out[:3],
                        "most": out[:3].amax() + out[3:].amax(), "every": out, "second": out[3:]}.items():
        torch.testing.assert_close(result[name], value)
    torch.testing.assert_close(torch.cat(result["parts"]), out)
    done = run("spmd-compile", tmp_path / "s.step", "-o", tmp_path / "s.spmd", "--ranks=2", "--view=local", "--quiet")
    assert done.returncode == 0, done.stderr
    done = run("spmd-run", tmp_path / "s.spmd", "--check", "--quiet")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("value, expected", [
    (lambda x, p: funcol.all_reduce(p, "sum", dist.group.WORLD), lambda p: 3 * p),
    (lambda x, p: funcol.all_reduce(p, "avg", dist.group.WORLD), lambda p: p),
    (lambda x, p: funcol.all_reduce(p, "min", dist.group.WORLD), lambda p: p),
    (lambda x, p: funcol.all_gather_tensor(p, 0, dist.group.WORLD), lambda p: p.repeat(3, 1)),
    (lambda x, p: funcol.all_gather_tensor(p, 1, dist.group.WORLD), lambda p: p.repeat(1, 3)),
    (lambda x, p: funcol.broadcast(p, 2, dist.group.WORLD), lambda p: p),
    (lambda x, p: funcol.all_reduce((x.sum() * 0 + 2).long(), "max", dist.group.WORLD), lambda p: torch.tensor(2))])
@pytest.mark.sample(2)
def test_of_what_all_ranks_have(value, expected) -> None:
    """Parameters are the same on all, and so is what comes of them."""
    def step(model, optimizer, x):
        loss = model(x).square().mean()
        loss.backward()
        result = value(x, model.weight.detach() * 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return {"loss": loss, "value": result}

    torch.manual_seed(0)
    model = torch.nn.Linear(4, 6)
    before = model.weight.detach().clone()
    with group_of(3):
        compiled = spmd.compile(step, ranks=3, view="local", launcher="none")
        result = compiled(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(6, 4))
    torch.testing.assert_close(result["value"], expected(before))


def normed(norm, size: int = 8):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, size), norm(size), torch.nn.Linear(size, 2)) if size == 8 else \
        torch.nn.Sequential(torch.nn.Conv2d(3, size, 3), norm(size), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16 * size, 2))


def regress(model, optimizer, x, y):
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("size, options", [
    (8, {}), (8, {"affine": False}), (8, {"track_running_stats": False}), (8, {"momentum": None}), (5, {"momentum": 0.3})], ids=str)
@pytest.mark.sample(2)
def test_synchronized_batch_norm(ranks: int, size: int, options: dict, tmp_path) -> None:
    """It has the statistics of the whole batch, as BatchNorm has on one device; ranks have as many rows each."""
    plain = torch.nn.BatchNorm1d if size == 8 else torch.nn.BatchNorm2d
    twin, model = normed(lambda n: plain(n, **options), size), normed(lambda n: torch.nn.SyncBatchNorm(n, **options), size)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (twin, model)]
    torch.manual_seed(1)
    whole = [(torch.randn(6, *((4,) if size == 8 else (3, 6, 6))) + 1, torch.randn(6, 2)) for _ in range(3)]
    with group_of(ranks):
        with pytest.raises(spmd.CaptureError, match=f"among {ranks} ranks, and the reference is for 1"):
            spmd.capture(regress, model, optimizers[1], *(t.chunk(ranks)[0] for t in whole[0]), reference=whole)
        package = spmd.capture(regress, model, optimizers[1], *(t.chunk(ranks)[0] for t in whole[0]), reference=whole,
                               reference_ranks=ranks)
        package.save(tmp_path / "s.step")
        step = spmd.compile(regress, ranks=ranks, view="local", launcher="none")
        for x, y in whole:
            torch.testing.assert_close(step(model, optimizers[1], x, y).detach(), regress(twin, optimizers[0], x, y).detach())
    torch.testing.assert_close(dict(model.named_parameters()), dict(twin.named_parameters()), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(dict(model.named_buffers()), dict(twin.named_buffers()), rtol=1e-4, atol=1e-5)
    done = run("spmd-compile", tmp_path / "s.step", "-o", tmp_path / "s.spmd", f"--ranks={ranks}", "--view=local", "--quiet")
    assert done.returncode == 0, done.stderr
    done = run("spmd-run", tmp_path / "s.spmd", "--check", "--quiet")
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_is_synchronized_on_one_device() -> None:
    """With view=global, whatever processes there are; and where it does not train."""
    x, y = torch.randn(6, 4), torch.randn(6, 2)
    twin, model = normed(torch.nn.BatchNorm1d), normed(torch.nn.SyncBatchNorm)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (twin, model)]
    with group_of(2):
        step = spmd.compile(regress, ranks=2, launcher="none")
        torch.testing.assert_close(step(model, optimizers[1], x, y).detach(), regress(twin, optimizers[0], x, y).detach())
        assert not [c for c in step.trainer.collectives if c.op == "all_gather" and not c.unit]
        local = spmd.compile(regress, ranks=2, view="local", launcher="none")
        model = normed(torch.nn.SyncBatchNorm).eval()
        assert local(model, torch.optim.SGD(model.parameters(), lr=0.1), x, y).isfinite()


def loss_of(model, x):
    return funcol.all_reduce(model(x).square().mean(), "avg", dist.group.WORLD)


@pytest.mark.parametrize("function, options, error", [
    (loss_of, {"view": "global"}, r"combines values of ranks, but with view=global"),
    (loss_of, {"view": "local", "ranks": 3}, r"is among 2 ranks, and the step is compiled for 3"),
    (lambda model, x: funcol.all_reduce(model(x).mean(), "product", dist.group.WORLD), {}, "combines by 'product'"),
    (lambda model, x: funcol.all_to_all_single(model(x), None, None, dist.group.WORLD).mean(), {}, "use all_reduce, all_gather"),
    (lambda model, x: dist.all_to_all_single(torch.zeros(4, 4), x[:4]) or model(x).mean(), {}, "use all_reduce, all_gather"),
    (lambda model, x: funcol.all_reduce(model(x).mean(), "sum", dist.new_group([0])), {}, "is among 1 of 2 ranks")])
def test_what_cannot_be_is_refused(function, options, error) -> None:
    def step(model, optimizer, x):
        loss = function(model, x)
        optimizer.zero_grad()
        return loss

    model = torch.nn.Linear(4, 4)
    with group_of(2):
        compiled = spmd.compile(step, **{"ranks": 2, "view": "local", "launcher": "none", **options})
        with pytest.raises((spmd.CaptureError, spmd.CompileError), match=rf'(?s)test_collectives.py(:|", line )\d+.*{error}|{error}.*test_collectives.py(:|", line )\d+'):
            compiled(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(6, 4))
