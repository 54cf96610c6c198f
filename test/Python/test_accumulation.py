"""Gradient accumulation over calls of a compiled step: each way to write it, against eager, on 1, 2 and 3 ranks."""
from __future__ import annotations

import contextlib
import copy
import json
import re
import subprocess
import warnings
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from stand_ins import compiler  # noqa: F401
from step_check import StepCheck, run, tool
from torch import nn

import spmd
from spmd.meshes import count_ranks


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))


def batches(count: int):
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(6, 8, generator=generator), torch.randint(0, 4, (6,), generator=generator))
            for _ in range(count)]


def clear_after(model, optimizer, x, y, number: int, every: int):
    """As most scripts have it."""
    loss = F.cross_entropy(model(x), y)
    (loss / every).backward()
    if (number + 1) % every == 0:
        nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        optimizer.step()
        optimizer.zero_grad()
    return loss


def clear_first(model, optimizer, x, y, number: int, every: int):
    if number % every == 0:
        optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    (loss / every).backward()
    if (number + 1) % every == 0:
        optimizer.step()
    return loss


def to_zero(model, optimizer, x, y, number: int, every: int):
    loss = F.cross_entropy(model(x), y)
    (loss / every).backward()
    if (number + 1) % every == 0:
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    return loss


def update_apart(model, optimizer, x, y, number: int, every: int):
    """A call that only updates."""
    if number % every == every - 1:
        nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        optimizer.step()
        optimizer.zero_grad()
        return None
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    return loss


STEPS = {f.__name__: f for f in (clear_after, clear_first, to_zero, update_apart)}


def branches(function, every: int = 3):
    """The step as a loop calls it: what it does depends on the number alone, through booleans."""
    def step(model, optimizer, x, y, begins: bool, ends: bool):
        number = 0 if begins else every - 1 if ends else 1
        return function(model, optimizer, x, y, number, every)
    return lambda number: (number % every == 0, number % every == every - 1), step


def gradients(model):
    return [None if p.grad is None else p.grad.detach().clone() for p in model.parameters()]


def train(step, flags, model, optimizer, count, reads=True):
    losses, seen = [], []
    for number, (x, y) in enumerate(batches(count)):
        if number == count - 3 and isinstance(step, spmd.training.compiled.CompiledStep):
            for program in step.training_state.programs:
                getattr(program.trainer, "log", []).clear()
        loss = step(model, optimizer, x, y, *flags(number))
        losses.append(None if loss is None else loss.detach())
        if reads:
            seen.append(gradients(model))
    return losses, seen


def compare(function, make, compile_options, reads=True, count=9):
    flags, step = branches(function)
    model = network()
    optimizer = make(model.parameters())
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    compiled = spmd.compile(step, **compile_options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spmd.Remark)
        losses, seen = train(compiled, flags, model, optimizer, count, reads)
    expected, grads = train(step, flags, twin, twin_optimizer, count, reads)
    torch.testing.assert_close(losses, expected, rtol=1e-5, atol=1e-6)
    for number, (ours, theirs) in enumerate(zip(seen, grads)):
        for one, other in zip(ours, theirs):
            assert (one is None) == (other is None), number
            if one is not None:
                torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(model.state_dict(), twin.state_dict(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(optimizer.state_dict()["state"], twin_optimizer.state_dict()["state"], rtol=1e-5, atol=1e-6)
    return compiled


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=0.01)


@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.sample(3)
def test_programs_share_one_state(compiler, name: str, reads: bool) -> None:
    compiled = compare(STEPS[name], adamw, {"ranks": 2}, reads)
    assert len({id(p.home) for p in compiled.training_state.programs}) == 1
    assert compiled.compiles == len(compiled.training_state.programs) <= 3
    if not reads:  # nothing moves, until the test reads everything
        moved = [line for p in compiled.training_state.programs for line in p.trainer.log if "grad " in line or line.startswith("write")]
        assert not moved


@pytest.fixture
def cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("name, ranks, mode", [
    ("clear_after", 1, "fully_shard"), ("clear_after", 3, "replicate"), ("clear_after", 3, "fully_shard"),
    ("clear_first", 2, "fully_shard"), ("to_zero", 2, "replicate"), ("update_apart", 3, "fully_shard")])
@pytest.mark.sample(2)
def test_on_ranks(cache, name: str, ranks: int, mode: str) -> None:
    compiled = compare(STEPS[name], adamw, {"ranks": ranks, "mode": mode, "policy": "class:Linear"}, count=6)
    assert len({id(p.home) for p in compiled.training_state.programs}) == 1


def reductions_of(program) -> int:
    return sum(c.op != "all_gather" and bool(c.unit) for c in program.trainer.collectives)


@pytest.mark.parametrize("name, ranks, mode", [
    ("clear_after", 1, "fully_shard"), ("clear_after", 3, "fully_shard"), ("clear_first", 2, "replicate"),
    ("to_zero", 3, "shard_optimizer"), ("update_apart", 2, "fully_shard")])
@pytest.mark.parametrize("view", ["global", "local"])
@pytest.mark.sample(3)
def test_unsharded_on_ranks(cache, name: str, ranks: int, mode: str, view: str) -> None:
    """Each rank adds up its own summands: calls that only add to gradients reduce none of them."""
    compiled = compare(STEPS[name], adamw, {"ranks": ranks, "mode": mode, "policy": "class:Linear",
                                            "accumulate": "unsharded", "view": view}, count=6)
    assert len({id(p.home) for p in compiled.training_state.programs}) == 1
    if ranks > 1:
        assert sorted(reductions_of(p) for p in compiled.training_state.programs)[-2:] == [0, 2]


def test_written_gradients_of_which_ranks_have_summands(cache) -> None:
    """What a loop writes into p.grad between calls is the gradient, whatever the ranks had of it."""
    flags, step = branches(clear_after)
    model, twin = network(), network()
    optimizer, twin_optimizer = adamw(model.parameters()), adamw(twin.parameters())
    compiled = spmd.compile(step, ranks=3, accumulate="unsharded")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spmd.Remark)
        for number, (x, y) in enumerate(batches(6)):
            for run, its_model, its_optimizer in ((compiled, model, optimizer), (step, twin, twin_optimizer)):
                run(its_model, its_optimizer, x, y, *flags(number))
                if number in (1, 3):
                    its_model[0].weight.grad.mul_(0.5).add_(0.01)
    torch.testing.assert_close(model.state_dict(), twin.state_dict(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["clear_after", "clear_first"])
@pytest.mark.parametrize("factor", [None, 1.0, 5.0])
@pytest.mark.sample(3)
def test_unsharded_sums_are_divided_as_sharded_ones(cache, name: str, factor: float | None) -> None:
    """Seen as one rank's program, with a parameter whose gradient no row is in, and which all ranks have alike."""
    flags, _ = branches(STEPS[name])

    class Penalized(nn.Sequential):
        def __init__(self):
            super().__init__(*network())
            self.free, self.alone = nn.Parameter(torch.ones(3)), nn.Parameter(torch.full((2,), 3.0))

    def with_penalty(model, optimizer, x, y, begins: bool, ends: bool):
        if begins and name == "clear_first":
            optimizer.zero_grad()
        loss = F.cross_entropy(model(x) + model.free.square().sum() * torch.arange(4.0), y) + model.alone.square().sum()
        (loss / 3).backward()
        if ends:
            optimizer.step()
            if name == "clear_after":
                optimizer.zero_grad()
        return loss

    found = []
    for accumulate in ("sharded", "unsharded"):
        model = Penalized()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        compiled = spmd.compile(with_penalty, ranks=3, view="local", gradient_divide_factor=factor, accumulate=accumulate)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", spmd.Remark)
            _, seen = train(compiled, flags, model, optimizer, 6)
        found.append((model.state_dict(), seen))
    torch.testing.assert_close(found[0], found[1], rtol=1e-5, atol=1e-6)
    expected = torch.full((2,), 3.0)
    for _ in range(2):
        expected -= 0.1 * 2 * expected * 3 / (factor or 3)
    torch.testing.assert_close(found[0][0]["alone"], expected, rtol=1e-5, atol=1e-6)


def test_other_accumulators_are_refused() -> None:
    with pytest.raises(ValueError, match="accumulate is 'whole'; allowed: sharded, scattered, unsharded"):
        spmd.compile(clear_after, accumulate="whole")


def test_on_a_mesh(cache) -> None:
    """On 2 x 2 host ranks with the gradients kept as state of both axes' ranks, beside eager."""
    for accumulate in ("sharded", "unsharded"):
        compare(clear_after, adamw, {"mesh": (2, 2), "policy": "class:Linear", "accumulate": accumulate}, count=6)


def across_of(program) -> int:
    """All-reduces of gradients."""
    return sum(c.op == "all_reduce" and bool(c.unit) for c in program.trainer.collectives)


@pytest.mark.parametrize("name, mesh, view", [
    ("clear_after", (2, 2), "global"), ("clear_after", (2, 3), "local"), ("clear_first", (3, 2), "local"),
    ("to_zero", (3, 2), "global"), ("update_apart", (2, 2), "global")])
@pytest.mark.sample(2)
def test_scattered_on_meshes(cache, name: str, mesh: tuple, view: str) -> None:
    """Calls that only add to gradients reduce them within a shard group; the one that updates adds them up across."""
    compiled = compare(STEPS[name], adamw, {"mesh": mesh, "policy": "class:Linear", "accumulate": "scattered",
                                            "view": view}, count=6)
    assert len({id(p.home) for p in compiled.training_state.programs}) == 1
    scattered = [reductions_of(p) - across_of(p) for p in compiled.training_state.programs]
    assert [across_of(p) for p in compiled.training_state.programs] == [0, 0, 2]
    assert scattered == ([2, 2, 0] if name == "update_apart" else [2, 2, 2])


@pytest.mark.parametrize("clips", [False, True])
@pytest.mark.parametrize("reduce, tolerance", [("bf16", 2.0**-7), ("f32", 2.0**-7), ("f64", 1e-5)])
@pytest.mark.sample(3)
def test_scattered_in_another_type(cache, reduce: str, tolerance: float, clips: bool) -> None:
    """Across, too, gradients are reduced in that type; what a call leaves to a later one keeps its own."""
    def step(model, optimizer, x, y, ends: bool):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if ends:
            if clips:
                torch.nn.utils.clip_grad_value_(model.parameters(), 0.01)
            optimizer.step()
            optimizer.zero_grad()
        return loss

    model = network()
    twin, precision = copy.deepcopy(model), f"reduce={reduce}" + ",param=bf16" * (reduce == "f32")
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, twin)]
    compiled = spmd.compile(step, mesh=(2, 2), policy="class:Linear", accumulate="scattered", precision=precision)
    before = copy.deepcopy(model.state_dict())
    for number, (x, y) in enumerate(batches(6)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", spmd.Remark)
            compiled(model, optimizers[0], x, y, number % 3 == 2)
        step(twin, optimizers[1], x, y, number % 3 == 2)
    assert [across_of(p) for p in compiled.training_state.programs] == [0, 2]
    for name, value in twin.state_dict().items():
        moved, expected = model.state_dict()[name] - before[name], value - before[name]
        assert (moved - expected).norm() < 3 * tolerance * expected.norm(), name


def packages_over_calls():
    """Of the programs that `update_apart` becomes over three calls: a first microbatch, one that adds to its gradients, and
    the update."""
    flags, step = branches(update_apart)
    model = network()
    optimizer = adamw(model.parameters())
    compiled = spmd.compile(step, ranks=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spmd.Remark)
        for number, (x, y) in enumerate(batches(3)):
            compiled(model, optimizer, x, y, *flags(number))
    return [program.package for program in compiled.training_state.programs]


@pytest.mark.parametrize("number, accumulate, edit, message", [
    (0, "scattered", lambda entry: entry.pop("sum"), "rule 7: the gradients of unit0 are never reduced along 'replicate'"),
    (1, "scattered", lambda entry: entry.pop("sum"), "rule 7: command "),
    (1, "sharded", lambda entry: entry.update(sum=True), "rule 10: ")])
def test_certificate_knows_sums_across(cache, tmp_path, number: int, accumulate: str, edit, message: str) -> None:
    """What ranks across have of a gradient is a sum in the manifest, or it is refused that nothing has added it up; and
    nothing is updated from what is one."""
    package = packages_over_calls()[number and 2].save(tmp_path / "s.step", weights=False)
    artifact = tmp_path / "s.spmd"
    run(tool("spmd-compile"), package, "--mesh=replicate:2,shard:2", "--policy=class:Linear", "--quiet",
        f"--accumulate={accumulate}", "-o", artifact)
    file = artifact / "manifest.json"
    manifest = json.loads(file.read_text())
    for entry in manifest["state"]:
        if entry["state"] == "grad":
            edit(entry)
    file.write_text(json.dumps(manifest))
    done = subprocess.run([tool("spmd-report"), artifact], capture_output=True, text=True)
    assert done.returncode == 2 and f"certificate {message}" in done.stderr, done.stderr


def test_scattered_where_it_can_not_be(cache) -> None:
    flags, step = branches(clear_after)

    def refusal(step, **options) -> str:
        model = network()
        compiled = spmd.compile(step, policy="class:Linear", accumulate="scattered", **options)
        with pytest.raises(spmd.CompileError) as error:
            train(compiled, flags, model, torch.optim.SGD(model.parameters(), lr=0.1), 3)
        return str(error.value)

    assert "accumulate=scattered: all ranks share a unit on this mesh" in refusal(step, ranks=2)
    assert "is not cut along one of two axes of the mesh" in refusal(step, mesh=(2, 2), mode="replicate")

    def looks_at_both(model, optimizer, x, y, begins: bool, ends: bool):
        before = sum(p.grad.square().sum() for p in model.parameters() if p.grad is not None)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if ends:
            optimizer.step()
            optimizer.zero_grad()
        return loss + before

    said = refusal(looks_at_both, mesh=(2, 2))
    assert "are read here, and elsewhere before all is added to them" in said and "use accumulate=sharded" in said


@pytest.mark.parametrize("in_all", [True, False])
def test_scattered_with_penalties(cache, in_all: bool) -> None:
    """The gradient of a penalty is no summand of each rank's: that is said, whichever call has one."""
    def penalized(model, optimizer, x, y, number: int, every: int):
        ends = (number + 1) % every == 0
        for part, targets in zip(x.repeat(4, 1).chunk(2), y.repeat(4).chunk(2)):  # 12 rows for 4 ranks
            loss = F.cross_entropy(model(part), targets)
            if ends or in_all:
                loss = loss + 0.01 * sum(p.square().sum() for p in model.parameters())
            (loss / every).backward()
        if ends:
            optimizer.step()
            optimizer.zero_grad()
        return loss

    options = {"mesh": (2, 2), "policy": "class:Linear"}
    compare(penalized, adamw, {"accumulate": "sharded", **options}, count=6)
    with pytest.raises(spmd.CompileError) as error:
        compare(penalized, adamw, {"accumulate": "scattered", **options}, count=6)
    said, line = str(error.value), penalized.__code__.co_firstlineno + 6  # the backward
    assert f"test_accumulation.py:{line}: error: accumulate=scattered: here the gradients of unit @unit" in said
    assert "get a term that is equal on all ranks along the first axis, such as a penalty on parameters, " + (
        "but a gradient that is left to a later call must be a sum" if in_all else "apart from what is left of earlier calls") in said
    assert "use accumulate=sharded" in said


def types_of(step) -> set[tuple[str, str]]:
    """Kinds and types of the reductions of gradients in the program of the last call."""
    plan = json.loads(next(Path(step.artifact).glob("*.plan.json")).read_text())
    return {(c["op"], c["dtype"]) for c in plan["commands"] if c.get("unit") and c["op"] in ("reduce_scatter", "all_reduce")}


@pytest.mark.parametrize("precision, dtype, reduced, view", [
    ("reduce=bf16", torch.float32, "bf16", "global"), ("param=bf16,reduce=f32", torch.float32, "f32", "local"),
    ("reduce=f32,master=f32", torch.bfloat16, "f32", "local"), ("master=f32", torch.bfloat16, "bf16", "global")])
@pytest.mark.sample(2)
def test_scattered_with_other_types(cache, precision: str, dtype: torch.dtype, reduced: str, view: str) -> None:
    """Within a group and across, sums are taken in the type of the unit; what is added over calls has the parameters'."""
    flags, step = branches(clear_after)
    found = []
    for accumulate in ("sharded", "scattered"):
        model = network().to(dtype)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        compiled = spmd.compile(step, mesh=(2, 2), view=view, policy="class:Linear", accumulate=accumulate,
                                precision=precision)
        losses = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", spmd.Remark)
            for number, (x, y) in enumerate(batches(6)):
                rows = (x.to(dtype).repeat(2, 1), y.repeat(2))
                losses.append(compiled(model, optimizer, *rows, *flags(number)).float().detach())
                if number == 1:
                    assert {p.grad.dtype for p in model.parameters()} == {dtype}
                    kinds = {"reduce_scatter"} if accumulate == "scattered" else {"reduce_scatter", "all_reduce"}
                    assert types_of(compiled) == {(kind, reduced) for kind in kinds}
        assert types_of(compiled) == {("reduce_scatter", reduced), ("all_reduce", reduced)}
        found.append((torch.stack(losses), [p.detach().float() for p in model.parameters()]))
    torch.testing.assert_close(*found, rtol=2.0**-6, atol=2.0**-8)
    assert not torch.equal(found[0][0][:3], found[0][0][3:])


def test_written_gradients_that_are_sums_across(cache) -> None:
    """What a loop writes into p.grad between calls is the gradient, whatever the ranks had of it."""
    flags, step = branches(clear_after)
    model, twin = network(), network()
    optimizer, twin_optimizer = adamw(model.parameters()), adamw(twin.parameters())
    compiled = spmd.compile(step, mesh=(2, 2), accumulate="scattered")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spmd.Remark)
        for number, (x, y) in enumerate(batches(6)):
            for run, its_model, its_optimizer in ((compiled, model, optimizer), (step, twin, twin_optimizer)):
                run(its_model, its_optimizer, x, y, *flags(number))
                if number in (1, 3):
                    its_model[0].weight.grad.mul_(0.5).add_(0.01)
    torch.testing.assert_close(model.state_dict(), twin.state_dict(), rtol=1e-5, atol=1e-6)


def test_interpreter_on_meshes(cache, tmp_path) -> None:
    """Every program of an accumulation over calls, on meshes: its gradients, parameters and optimizer state agree to
    1e-12 with those of one rank after two steps."""
    programs = packages_over_calls()
    assert len(programs) == 3
    for number, package in enumerate(programs):
        folder = tmp_path / str(number)
        folder.mkdir()
        check = StepCheck(package, folder, weights=False)
        for mesh, mode in (("replicate:2,shard:2", "fully_shard"), ("replicate:2,shard:3", "fully_shard"),
                           ("replicate:2,shard:3", "shard_optimizer"), ("replicate:2,shard:2", "replicate")):
            for accumulate in ("sharded", "unsharded", *(["scattered"] if mode != "replicate" else [])):
                check.interpret(count_ranks(mesh), "class:Linear", f"--mesh={mesh}", f"--mode={mode}",
                                f"--accumulate={accumulate}")


# -- What else a training has ------------------------------------------------------------------------------------------

class Branching(nn.Module):
    """`side` has gradients in some calls only."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.main, self.side = nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x, with_side: bool):
        return self.main(x) + self.side(x) if with_side else self.main(x)


def test_a_parameter_without_a_gradient_is_left_alone(compiler) -> None:
    """AdamW moves a parameter whose gradient is zero, and not one that has none."""
    def step(model, optimizer, x, y, with_side: bool, ends: bool):
        loss = F.cross_entropy(model(x, with_side), y)
        loss.backward()
        if ends:
            optimizer.step()
            optimizer.zero_grad()
        return loss

    model = Branching()
    optimizer = adamw(model.parameters())
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    compiled = spmd.compile(step, ranks=2)
    calls = [(False, False), (True, False), (False, True), (False, False), (False, True), (True, True), (False, True)]
    for _ in range(2):
        for (x, y), flags in zip(batches(len(calls)), calls):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", spmd.Remark)
                compiled(model, optimizer, x, y, *flags)
            step(twin, twin_optimizer, x, y, *flags)
            torch.testing.assert_close(gradients(model), gradients(twin), rtol=1e-5, atol=1e-7)
            torch.testing.assert_close(model.state_dict(), twin.state_dict(), rtol=1e-5, atol=1e-6)


def test_a_later_program_leaves_more_gradients(compiler) -> None:
    """The first one has a gradient of one parameter only, which no optimizer clears; its unit has places for all."""
    def step(model, optimizer, x, ends: bool):
        loss = model(x, True).square().mean()
        loss.backward()
        if ends:
            optimizer.step()
            with torch.no_grad():
                model.side.weight.mul_(0.99)
            optimizer.zero_grad()
        return loss

    model = Branching()
    optimizer = torch.optim.SGD(model.main.parameters(), lr=0.1, momentum=0.9)
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    compiled = spmd.compile(step, ranks=2)
    for (x, _), ends in zip(batches(6), (True, False, True) * 2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", spmd.Remark)
            compiled(model, optimizer, x, ends)
        step(twin, twin_optimizer, x, ends)
        torch.testing.assert_close(gradients(model), gradients(twin), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(model.state_dict(), twin.state_dict(), rtol=1e-5, atol=1e-6)


def test_gradients_that_were_not_kept_cannot_be_added_to(compiler) -> None:
    def step(model, optimizer, x, y, clears: bool):
        if clears:
            optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    model = network()
    optimizer = adamw(model.parameters())
    compiled, (x, y) = spmd.compile(step, ranks=2), batches(1)[0]
    compiled(model, optimizer, x, y, True)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"leaves in parameter '0.weight' is not kept[^\0]*hint: set spmd.compile\(keep"):
            compiled(model, optimizer, x, y, False)
    compiled(model, optimizer, x, y, True)


def test_an_evaluation_leaves_gradients_alone(compiler) -> None:
    flags, step = branches(clear_after)

    def with_evaluation(model, optimizer, x, y, begins: bool, ends: bool, trains: bool):
        return step(model, optimizer, x, y, begins, ends) if trains else F.cross_entropy(model(x), y)

    model = network()
    optimizer = adamw(model.parameters())
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    compiled = spmd.compile(with_evaluation, ranks=2)
    for number, (x, y) in enumerate(batches(6)):
        for trains in (False, True, False):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", spmd.Remark)
                loss = compiled(model, optimizer, x, y, *flags(number), trains)
            expected = with_evaluation(twin, twin_optimizer, x, y, *flags(number), trains)
            torch.testing.assert_close(loss, expected.detach(), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(gradients(model), gradients(twin), rtol=1e-5, atol=1e-7)


def test_a_tensor_kept_over_its_clearing(compiler) -> None:
    flags, step = branches(clear_after, 2)
    model = network()
    optimizer = adamw(model.parameters())
    compiled = spmd.compile(step, ranks=2)
    data = batches(4)
    compiled(model, optimizer, *data[0], *flags(0))
    kept = model[0].weight.grad
    compiled(model, optimizer, *data[1], *flags(1))
    assert model[0].weight.grad is None
    with pytest.raises(RuntimeError, match="the gradient of parameter '0.weight' is gone: a later call of the step cleared it"):
        kept.norm()
    compiled(model, optimizer, *data[2], *flags(2))
    shared = model[0].weight.grad.detach()
    with pytest.raises(ValueError, match="shares memory with the gradient of '0.weight' is kept over a call that clears"):
        compiled(model, optimizer, *data[3], *flags(3))
    del shared
    compiled(model, optimizer, *data[3], *flags(3))


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("function", [clear_after, clear_first])
def test_a_first_step_of_its_own_behind_accumulated_gradients(cache, function, ranks: int) -> None:
    """SGD with dampening takes the first gradient whole, and it updates in the third call."""
    compare(function, lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, dampening=0.5), dict(ranks=ranks))


@pytest.mark.parametrize("ranks, first", [(1, False), (2, False), (2, True)])
def test_a_first_step_of_its_own_beside_gradients_that_no_optimizer_has(cache, ranks: int, first: bool) -> None:
    """Those of the first layer grow from call to call as in eager; the head's first update is its own. `first`: gradients
    are cleared before they are computed, so that those that the optimizer has used are there afterwards."""
    def step(model, optimizer, x, y):
        if first:
            optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if not first:
            optimizer.zero_grad()
        return loss

    def head_of(model):
        return torch.optim.SGD(model[2].parameters(), lr=0.1, momentum=0.9, dampening=0.5)

    model, expected = network(), network()
    optimizer, eager = head_of(model), head_of(expected)
    compiled = spmd.compile(step, ranks=ranks)
    for x, y in batches(3):
        loss, wanted = compiled(model, optimizer, x, y), step(expected, eager, x, y)
        assert abs(loss.item() - wanted.item()) < 1e-6
        assert torch.allclose(model[0].weight.grad, expected[0].weight.grad, rtol=1e-5, atol=1e-7)
    assert torch.allclose(model[2].weight, expected[2].weight, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("accumulate, saving", [
    ("sharded", {}), ("scattered", {}), ("scattered", {"kind": "sharded"}), ("unsharded", {}), ("unsharded", {"kind": "sharded"}), ("unsharded", {"kind": "sharded", "mode": "beside"})])
@pytest.mark.sample(3)
def test_goes_on_from_the_middle(cache, tmp_path, accumulate: str, saving: dict) -> None:
    """A checkpoint between micro-steps has the gradients; what has none begins with zeros."""
    flags, step = branches(clear_after)

    def made():
        model = network()
        ranks = {"mesh": (2, 2)} if accumulate == "scattered" else {"ranks": 2}
        return model, adamw(model.parameters()), spmd.compile(step, accumulate=accumulate, **ranks)

    model, optimizer, compiled = made()
    data = batches(8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spmd.Remark)
        for number in range(8):
            compiled(model, optimizer, *data[number], *flags(number))
            if number in (2, 4):
                compiled.save_checkpoint(tmp_path / f"at-{number}", **saving)
        compiled.finish_checkpoint()
        expected = copy.deepcopy(model.state_dict())
        for begin in (3, 5):
            other, its_optimizer, resumed = made()
            resumed.load_checkpoint(tmp_path / f"at-{begin - 1}")
            for number in range(begin, 8):
                resumed(other, its_optimizer, *data[number], *flags(number))
                if number == 4:  # what ranks have of a sum is the first one's from here on
                    resumed.save_checkpoint(tmp_path / f"again-{begin}", **saving)
            torch.testing.assert_close(other.state_dict(), expected, rtol=0, atol=0)


def test_with_dropout_and_a_scaler(cache) -> None:
    """The draws of a call are those of its number, whichever program it is."""
    def step(model, optimizer, scaler, x, y, ends: bool):
        loss = F.cross_entropy(model(x), y)
        scaler.scale(loss / 2).backward()
        if ends:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        return loss

    results = []
    for ranks in (1, 2, 3):
        model = network()
        model.insert(1, nn.Dropout(0.3))
        optimizer, scaler = adamw(model.parameters()), torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=1)
        compiled = spmd.compile(step, ranks=ranks)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", spmd.Remark)
            losses = [compiled(model, optimizer, scaler, x, y, number % 2 == 1) for number, (x, y) in enumerate(batches(6))]
        assert len({id(p.home) for p in compiled.training_state.programs}) == 1 and scaler.get_scale() == 2048.0
        results.append((losses, model.state_dict()))
        assert compiled.rng["step"] == 6
    for other in results[1:]:
        torch.testing.assert_close(other, results[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("around", [False, True])
def test_no_sync_is_told(compiler, around: bool) -> None:
    def step(model, optimizer, x, y, ends: bool):
        with contextlib.nullcontext() if ends or around else model.no_sync():
            loss = F.cross_entropy(model(x), y)
            loss.backward()
        if ends:
            optimizer.step()
            optimizer.zero_grad()
        return loss

    if not dist.is_initialized():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    model = nn.parallel.DistributedDataParallel(network())
    twin = network()
    optimizer, twin_optimizer = adamw(model.parameters()), adamw(twin.parameters())
    compiled = spmd.compile(step, ranks=2)
    for number, (x, y) in enumerate(batches(4)):
        ends = number % 2 == 1
        outside = model.no_sync() if around and not ends else contextlib.nullcontext()
        with warnings.catch_warnings(record=True) as said, outside:
            warnings.simplefilter("always")
            compiled(model, optimizer, x, y, ends)
        found = [w for w in said if "no_sync() does not postpone" in str(w.message)]
        assert bool(found) == (number == 0) and all(w.filename == __file__ for w in found)
        F.cross_entropy(twin(x), y).backward()
        if ends:
            twin_optimizer.step()
            twin_optimizer.zero_grad()
    torch.testing.assert_close(model.module.state_dict(), twin.state_dict(), rtol=1e-5, atol=1e-6)


def test_a_gradient_that_is_added_to_and_then_begun_anew(monkeypatch, tmp_path) -> None:
    """Adversarial training: the first backward leaves gradients in parameters, too, on top of those of the last call."""
    monkeypatch.setenv("SPMD_CACHE", str(tmp_path))

    def step(model, optimizer, x, y):
        x.requires_grad_(True)
        F.cross_entropy(model(x), y).backward()
        attacked = (x + 0.1 * x.grad.sign()).detach()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(attacked), y)
        loss.backward()
        optimizer.step()
        return loss

    found = []
    for run in (spmd.compile(step, ranks=2), step):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        losses = [run(model, optimizer, x, y).detach() for x, y in batches(4)]
        found.append((losses, model.state_dict(), [p.grad for p in model.parameters()]))
    torch.testing.assert_close(*found)
