"""bf16 and f16 parameters with f32 masters: beside loops of eager PyTorch that keep masters by hand, on ranks and in all
modes."""
from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from small_net import Net, batches, train_step
from step_check import StepCheck, run, tool
from torch import nn

import spmd
from spmd import CaptureError
from spmd.precision import Precision

MASTERS = "master=f32"


def setup(dtype=torch.bfloat16, lr: float = 1e-2):
    torch.manual_seed(0)
    model = Net().to(dtype)
    with torch.no_grad():
        model.embed.weight.mul_(0.1)
    return model, torch.optim.AdamW(model.parameters(), lr=lr)


def unclipped(model, optimizer, x, y):
    loss = F.cross_entropy(model(x).flatten(0, 1).float(), y.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


class ByHand:
    """An optimizer of masters, as Apex's O2 has it: it gets the gradients in f32, and the parameters are rounded."""

    def __init__(self, model: nn.Module, make):
        self.pairs = [(p, p.detach().float().clone().requires_grad_()) for p in model.parameters()]
        self.inner = make([master for _, master in self.pairs])

    def step(self) -> None:
        for p, master in self.pairs:
            master.grad = None if p.grad is None else p.grad.float()
        self.inner.step()
        with torch.no_grad():
            for p, master in self.pairs:
                p.copy_(master)

    def zero_grad(self) -> None:
        for p, _ in self.pairs:
            p.grad = None


# -- What is computed --------------------------------------------------------------------------------------------------

class Weights(nn.Module):
    """Gradients that any order of additions gives exactly."""

    def __init__(self, dtype: torch.dtype):
        super().__init__()
        self.matrix = nn.Parameter(torch.linspace(-1, 1, 24 * 10).reshape(24, 10).to(dtype))
        self.vector = nn.Parameter(torch.linspace(1, 2, 7).to(dtype))
        self.frozen = nn.Parameter(torch.ones(5, dtype=dtype), requires_grad=False)

    def forward(self, x, y):
        return (x @ self.matrix).sum() + (y * self.vector).sum() + self.frozen.sum()


def linear_step(model, optimizer, x, y):
    loss = model(x, y).float()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


def rows(step: int, dtype: torch.dtype):
    x = torch.zeros(12, 24, dtype=dtype)
    x[torch.arange(12), torch.arange(12) * 2] = 2.0 ** (step % 3 - 1)
    return x, torch.ones(12, 7, dtype=dtype) * 0.25


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=3e-4, momentum=0.5, weight_decay=2.0**-6, fused=True),
    "dampening": lambda p: torch.optim.SGD(p, lr=3e-4, momentum=0.5, dampening=0.5),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-4, fused=True),
    "foreach": lambda p: torch.optim.AdamW(p, lr=1e-4, foreach=True),
    "one by one": lambda p: torch.optim.Adam(p, lr=1e-4, foreach=False, fused=False),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-4),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=1e-4)}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name, ranks, mode", [
    *((name, 2, "fully_shard") for name in OPTIMIZERS), ("adamw", 1, "fully_shard"), ("adamw", 3, "replicate"),
    ("adamw", 4, "shard_optimizer"), ("sgd", 8, "shard_grad_op")])
@pytest.mark.sample(3)
def test_updates_are_those_of_a_loop_by_hand(name: str, ranks: int, mode: str, dtype: torch.dtype) -> None:
    """Steps so small that no parameter in bf16 would move."""
    model, twin = Weights(dtype), Weights(dtype)
    optimizer, hand = OPTIMIZERS[name]([model.matrix, model.vector]), ByHand(twin, OPTIMIZERS[name])
    step = spmd.compile(linear_step, ranks=ranks, precision=MASTERS, mode=mode)
    for number in range(6):
        step(model, optimizer, *rows(number, dtype))
        linear_step(twin, hand, *rows(number, dtype))
    for (p, master), mine in zip(hand.pairs, (model.matrix, model.vector)):
        ours = optimizer.state[mine]["master"]
        assert ours.dtype == torch.float32 and not torch.equal(master, p.float())
        exact = name in ("dampening", "adamw")
        torch.testing.assert_close(ours, master.detach(), rtol=0 if exact else 4e-6, atol=0 if exact else 1e-7)
        assert torch.equal(mine, ours.to(dtype))
        for state, value in hand.inner.state[master].items():
            if isinstance(value, torch.Tensor):
                assert optimizer.state[mine][state].dtype == value.dtype
                torch.testing.assert_close(optimizer.state[mine][state], value, rtol=4e-6, atol=1e-12)
    assert torch.equal(model.frozen, twin.frozen)


@pytest.mark.parametrize("ranks, precision", [(1, MASTERS), (3, MASTERS), (2, "reduce=f32,master=f32")])
def test_trains_as_a_loop_by_hand(ranks: int, precision: str) -> None:
    model, optimizer = setup(lr=1e-3)
    twin, _ = setup()
    hand = ByHand(twin, lambda p: torch.optim.AdamW(p, lr=1e-3))
    step = spmd.compile(train_step, ranks=ranks, policy="class:Block", precision=precision)
    ours = [step(model, optimizer, x, y).item() for x, y in batches(20)]
    theirs = [train_step(twin, hand, x, y).item() for x, y in batches(20)]
    torch.testing.assert_close(ours, theirs, rtol=2.0**-7, atol=0)
    moved = [(optimizer.state[p]["master"] - master.detach()).norm() / (master.detach() - q).norm()
             for p, q, (_, master) in zip(model.parameters(), setup()[0].parameters(), hand.pairs)]
    assert max(moved) < 0.2, moved
    plain, other = setup(lr=1e-3)
    for x, y in batches(20):
        train_step(plain, other, x, y)
    stuck = [(p.float() - master.detach()).norm() / (master.detach() - q).norm()
             for p, q, (_, master) in zip(plain.parameters(), setup()[0].parameters(), hand.pairs)]
    assert sum(stuck) > 4 * sum(moved)  # what masters are for


MODES = [(1, "--ranks=1"), (2, "--ranks=2"), (3, "--ranks=3 --mode=replicate"), (4, "--ranks=4 --mode=shard_optimizer"),
         (8, "--ranks=8 --mode=shard_grad_op"), (4, "--mesh=replicate:2,shard:2 --mode=hybrid"),
         (4, "--ranks=4 --reshard-after-forward=2")]


@pytest.fixture(scope="module")
def check(tmp_path_factory):
    found = {}

    def capture(function, precision: str) -> StepCheck:
        if (function, precision) not in found:
            model, optimizer = setup()
            package = spmd.capture(function, model, optimizer, *batches(1)[0], precision=precision, reference=batches(3))
            found[function, precision] = StepCheck(package, tmp_path_factory.mktemp("step"))
        return found[function, precision]
    return capture


@pytest.mark.parametrize("function", [train_step, unclipped])
@pytest.mark.parametrize("precision", [MASTERS, "reduce=f32,master=f32"])
@pytest.mark.parametrize("ranks, options", MODES, ids=str)
@pytest.mark.sample(3)
def test_interpreter(check, function, precision: str, ranks: int, options: str) -> None:
    """In doubles; masters are among what is compared."""
    said = check(function, precision).interpret(ranks, "class:Block", *options.split())
    assert "optimizer/master/" in said


def test_interpreter_on_cut_parameters(check) -> None:
    placed = "blocks.*.up.*=shard(0),blocks.*.down.weight=shard(1)"
    check(train_step, MASTERS).interpret(4, "class:Block", "--mesh=shard:2,tensor:2", f"--override-placements={placed}")


@pytest.mark.parametrize("target", ["host", "emulate:sm_90"])
def test_runs_as_eager(check, target: str) -> None:
    """The reference is eager's, with masters."""
    check(unclipped, MASTERS).train(2, "class:Block", f"--target={target}", rtol=2.0**-6)


# -- Types, collectives, bytes ----------------------------------------------------------------------------------------

def moved(step: Path, *options: str) -> list[tuple[str, str]]:
    text = run(tool("spmd-compile"), step, "--compile-to=decompose", "-o", "-", "--quiet", *options)
    return re.findall(r"spmd\.(all_gather|reduce_scatter|all_reduce)[^\n]*unit[^\n]*: \(?tensor<\d+x(\w+)", text)


@pytest.mark.parametrize("function", [train_step, unclipped])
@pytest.mark.parametrize("precision, reduced", [(MASTERS, "bf16"), ("reduce=f32,master=f32", "f32")])
def test_types_on_the_wire(check, function, precision: str, reduced: str) -> None:
    """Parameters travel in their own type, and each unit's gradients are reduced once."""
    step = check(function, precision).step
    assert sorted(moved(step, "--ranks=2", "--policy=class:Block")) == \
        [("all_gather", "bf16")] * 6 + [("reduce_scatter", reduced)] * 3
    assert sorted(moved(step, "--ranks=2", "--mode=shard_optimizer")) == [("all_gather", "bf16"), ("reduce_scatter", reduced)]
    assert moved(step, "--ranks=2", "--mode=replicate") == [("all_reduce", reduced)]


def test_a_sum_in_f32_is_not_rounded_on_its_way(check) -> None:
    """Of a gradient that is reduced in f32 the optimizer gets the sum itself, and parameters are rounded once."""
    for precision, casts in ((MASTERS, ["f32", "bf16"]), ("reduce=f32,master=f32", ["bf16"])):
        text = run(tool("spmd-compile"), check(unclipped, precision).step, "--ranks=2", "--compile-to=decompose", "-o", "-",
                   "--quiet")
        of_chunks = re.findall(r"aten\._to_copy %\S+ \{dtype = (\w+), spmd.segment = 2[^\n]*owned", text)
        assert of_chunks == casts


def test_a_rank_keeps_its_part_of_masters_and_state(check, tmp_path) -> None:
    run(tool("spmd-compile"), check(unclipped, MASTERS).step, "--ranks=4", "--quiet", "-o", tmp_path / "s.spmd")
    manifest = json.loads((tmp_path / "s.spmd" / "manifest.json").read_text())
    chunks = {e["state"]: (e["dtype"], e["numel"]) for e in manifest["state"] if e["kind"] == "shard"}
    numel = chunks["param"][1]
    assert chunks == {"param": ("bf16", numel), **{n: ("f32", numel) for n in ("exp_avg", "exp_avg_sq", "master")}}
    assert manifest["units"][0]["chunk"] == numel
    said = run(tool("spmd-report"), "units", check(unclipped, MASTERS).step, "--ranks=4")
    assert "master=f32" in said
    assert "master" in run(tool("spmd-report"), tmp_path / "s.spmd")


# -- State: files, checkpoints, what users read and write --------------------------------------------------------------

def states(model, optimizer) -> dict[str, torch.Tensor]:
    found = {name: p.detach().clone() for name, p in model.named_parameters()}
    for name, p in model.named_parameters():
        found |= {f"{name} {state}": value.clone() for state, value in optimizer.state[p].items()}
    return found


def trained(steps: int, ranks: int = 2, **options):
    model, optimizer = setup(lr=1e-3)
    step = spmd.compile(train_step, ranks=ranks, policy="class:Block", precision=MASTERS, **options)
    for x, y in batches(steps):
        step(model, optimizer, x, y)
    return step, model, optimizer


@pytest.mark.parametrize("kind", ["full", "sharded"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_checkpoints_go_on_with_the_same_bits(tmp_path, kind: str, when: str) -> None:
    step, model, optimizer = trained(3)
    step.save_checkpoint(tmp_path, kind=kind)
    masters = {f"optimizer/master/{n}" for n, _ in model.named_parameters()}
    assert masters <= set(spmd.checkpoint.Checkpoint(tmp_path).tensors)
    expected = [step(model, optimizer, x, y).item() for x, y in batches(2)]
    other, model2, optimizer2 = trained(0 if when == "before" else 1)
    other.load_checkpoint(tmp_path)
    assert [other(model2, optimizer2, x, y).item() for x, y in batches(2)] == expected
    one, two = states(model, optimizer), states(model2, optimizer2)
    assert one.keys() == two.keys() and all(torch.equal(one[key], two[key]) for key in one)
    plain, state = setup()
    spmd.checkpoint.load(tmp_path, plain, state)
    assert all(state.state[p]["master"].dtype == torch.float32 for p in plain.parameters())


@pytest.mark.parametrize("when", ["before", "after"])
def test_weights_alone_begin_masters(tmp_path, when: str) -> None:
    """Those of a training in f32, which has no masters, are not rounded on their way into them."""
    torch.manual_seed(3)
    wide = Net()
    step = spmd.compile(train_step)
    step(wide, torch.optim.AdamW(wide.parameters(), lr=1e-3), *batches(1)[0])
    step.save_checkpoint(tmp_path / "wide")
    narrow = {name: p.detach().bfloat16() for name, p in wide.state_dict().items()}
    torch.save(narrow, tmp_path / "a.pt")
    for file in ("wide", "a.pt"):
        other, model, optimizer = trained(0 if when == "before" else 2)
        other.load_checkpoint(tmp_path / file, strict=file == "wide" or when == "before")
        given = {name: (p.detach() if file == "wide" else narrow[name]).float() for name, p in wide.named_parameters()}
        if when == "after" and file == "wide":
            assert all(torch.equal(optimizer.state[p]["master"], given[name]) for name, p in model.named_parameters())
        other(model, optimizer, *batches(1)[0])
        for name, p in model.named_parameters():
            master = optimizer.state[p]["master"]
            assert torch.equal(p, master.bfloat16()) and (master - given[name]).abs().max() < 5e-3


def test_state_dicts_are_not_rounded() -> None:
    step, model, optimizer = trained(3)
    saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    saved = {key: torch.utils._pytree.tree_map(lambda t: t.clone() if isinstance(t, torch.Tensor) else t, value)
             for key, value in saved.items()}
    expected = [step(model, optimizer, x, y).item() for x, y in batches(2)]
    other, model2, optimizer2 = trained(1)
    model2.load_state_dict(saved["model"])
    optimizer2.load_state_dict(saved["optimizer"])
    assert [other(model2, optimizer2, x, y).item() for x, y in batches(2)] == expected
    assert other.compiles == 1
    one, two = states(model, optimizer), states(model2, optimizer2)
    assert all(torch.equal(one[key], two[key]) for key in one)


def test_masters_that_pytorch_has_rounded_are_refused() -> None:
    _, _, optimizer = trained(2)
    model, rounded = setup()
    rounded.load_state_dict(optimizer.state_dict())
    with pytest.raises(CaptureError, match=r"the optimizer has masters in bf16: load_state_dict\(\) of PyTorch's(.|\n)*"
                       r"hint: load it with spmd.checkpoint.load"):
        spmd.compile(train_step, precision=MASTERS)(model, rounded, *batches(1)[0])


@pytest.mark.parametrize("ranks", [1, 3])
def test_who_writes_a_parameter_writes_its_master(ranks: int) -> None:
    step, model, optimizer = trained(2, ranks)
    bias = model.blocks[0].up.bias
    kept = optimizer.state[bias]["master"].clone()  # a reader, after which both are here
    with torch.no_grad():
        bias[3:5] = 7.0
    step(model, optimizer, *batches(1)[0])
    master = optimizer.state[bias]["master"]
    assert ((master[3:5] - 7).abs() < 2e-3).all() and (master[:3] - kept[:3]).abs().max() < 2e-3
    assert not torch.equal(kept[:3], kept[:3].bfloat16().float())


def test_state_in_bf16_goes_on_in_f32() -> None:
    """Of an optimizer that has taken steps without masters."""
    model, optimizer = setup()
    for x, y in batches(2):
        train_step(model, optimizer, x, y)
    before = optimizer.state[model.norm.weight]["exp_avg"].clone()
    assert before.dtype == torch.bfloat16
    step = spmd.compile(train_step, precision=MASTERS)
    twin, hand = setup()
    twin.load_state_dict(model.state_dict())
    for number, (x, y) in enumerate(batches(3)):
        step(model, optimizer, x, y)
    assert step.compiles == 1
    for p in model.parameters():
        state = optimizer.state[p]
        assert state["exp_avg"].dtype == state["master"].dtype == torch.float32 and state["step"].item() == 5
        assert torch.equal(p, state["master"].bfloat16())


def test_accumulation_and_no_sync() -> None:
    """Gradients that outlive a call are in the parameters' type."""
    def call(model, optimizer, x, y, steps):
        loss = F.cross_entropy(model(x).flatten(0, 1).float(), y.flatten()) / 2
        loss.backward()
        if steps:
            optimizer.step()
            optimizer.zero_grad()
        return loss.detach()

    model, optimizer = setup(lr=1e-3)
    twin, _ = setup()
    hand = ByHand(twin, lambda p: torch.optim.AdamW(p, lr=1e-3))
    step = spmd.compile(call, ranks=2, precision="reduce=f32,master=f32")
    for number, (x, y) in enumerate(batches(6)):
        ours, theirs = step(model, optimizer, x, y, number % 2 == 1), call(twin, hand, x, y, number % 2 == 1)
        torch.testing.assert_close(ours, theirs, rtol=2.0**-7, atol=0)
    master = optimizer.state[model.norm.weight]["master"]
    assert torch.equal(model.norm.weight, master.bfloat16()) and optimizer.state[model.norm.weight]["step"].item() == 3


def test_a_closure_gets_the_parameters() -> None:
    def step(model, optimizer, x, y):
        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x).flatten(0, 1).float(), y.flatten())
            loss.backward()
            return loss
        return optimizer.step(closure).detach()

    model, optimizer = setup()
    twin, other = setup()
    one, two = spmd.compile(step, precision=MASTERS), spmd.compile(unclipped, precision=MASTERS)
    for x, y in batches(3):
        assert one(model, optimizer, x, y) == two(twin, other, x, y)
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), twin.parameters()))


# -- Where it is said --------------------------------------------------------------------------------------------------

def masters_of(package: spmd.StepPackage) -> set[str]:
    return {i["of"] for i in package.step["inputs"] if i["kind"] == "state" and i["state"] == "master"}


def capture(model, optimizer, precision=None) -> spmd.StepPackage:
    return spmd.capture(train_step, model, optimizer, *batches(1)[0], precision=precision)


def test_annotations_have_their_own(tmp_path) -> None:
    model, optimizer = setup()
    spmd.fully_shard(model.blocks[0], mp_policy={"master": torch.float32, "reduce": "f32"})
    spmd.fully_shard(model.blocks[1])
    package = capture(model, optimizer)
    assert masters_of(package) == {f"blocks.0.{name}" for name, _ in model.blocks[0].named_parameters()}
    check = StepCheck(package, tmp_path)
    text = tmp_path / "scheduled.mlir"
    run(tool("spmd-compile"), check.step, "--ranks=2", "--compile-to=collectives", "--quiet", "-o", text)
    run(tool("spmd-interpret"), text, "--ranks=2", f"--compare={check.base}", "--steps=2")
    assert sorted(moved(check.step, "--ranks=2")) == [("all_gather", "bf16")] * 5 + \
        [("reduce_scatter", "bf16")] * 2 + [("reduce_scatter", "f32")]


def test_plan_files_and_the_command_line_are_checked(tmp_path) -> None:
    """Whether there are masters is chosen when a step is captured; what says so afterwards must be true."""
    plan = {"format": "spmd-shard-units", "version": 1,
            "rules": [{"class": "Block", "options": {"precision": {"reduce": "f32", "master": "f32"}}}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    said = {"'blocks.0.norm.weight'": [f"--policy-file={tmp_path / 'plan.json'}"],
            "'embed.weight'": ["--precision=master=f32", "--policy=class:Block"]}
    for precision in (None, MASTERS):
        capture(*setup(), precision).save(tmp_path / "s.step")
        for name, options in said.items():
            done = subprocess.run([tool("spmd-compile"), tmp_path / "s.step", *options, "--ranks=2", "-o",
                                   tmp_path / "a.spmd"], capture_output=True, text=True)
            assert done.returncode == (0 if precision else 2), done.stderr
            assert precision or "has masters (master = 'f32'), and the step was captured without one of " + name in \
                done.stderr and "capture it with precision=" in done.stderr, done.stderr
    found = moved(tmp_path / "s.step", "--ranks=2", f"--policy-file={tmp_path / 'plan.json'}")
    reduced = [m for m in found if m[0] != "all_gather"]
    assert sorted(reduced) == [("reduce_scatter", "bf16")] + [("reduce_scatter", "f32")] * 2


def test_parameters_in_f32_are_their_own_masters() -> None:
    model = Net()
    package = capture(model, torch.optim.AdamW(model.parameters()), "param=bf16,reduce=f32,master=f32")
    assert not masters_of(package) and package.step["precision"]["options"]["master"] == "f32"


# -- Mistakes ----------------------------------------------------------------------------------------------------------

def test_other_types_are_refused(tmp_path) -> None:
    with pytest.raises(ValueError, match="precision: masters in bf16 are not supported; allowed: master=f32"):
        Precision.of("master=bf16", "precision")
    capture(*setup()).save(tmp_path / "s.step")
    done = subprocess.run([tool("spmd-compile"), tmp_path / "s.step", "--precision=master=f64", "-o", tmp_path / "a.spmd"],
                          capture_output=True, text=True)
    assert done.returncode == 2 and "masters are f32, of parameters in f16 or bf16: master=f32" in done.stderr


def test_a_parameter_that_the_step_writes_is_refused() -> None:
    """The next step would begin from its master, and undo that."""
    def clamped(model, optimizer, x, y):
        loss = train_step(model, optimizer, x, y)
        with torch.no_grad():
            model.norm.weight.clamp_(max=1.0)
        return loss

    def through_data(model, optimizer, x, y):
        model.norm.weight.data[:2] = 0
        return train_step(model, optimizer, x, y)

    for function in (clamped, through_data):
        model, optimizer = setup()
        with pytest.raises(CaptureError, match="into 'norm.weight', which has a master in f32(.|\n)*test_masters.py"):
            spmd.capture(function, model, optimizer, *batches(1)[0], precision=MASTERS)
        spmd.capture(function, *setup(), *batches(1)[0])


class Own(torch.optim.SGD):
    def step(self, closure=None):
        super().step(closure)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].setdefault("master", torch.zeros_like(p))


def test_an_optimizer_with_masters_of_its_own_is_refused() -> None:
    model, _ = setup()
    with pytest.raises(CaptureError, match="Own has a state 'master' of its own"):
        capture(model, Own(model.parameters(), lr=0.1), MASTERS)
