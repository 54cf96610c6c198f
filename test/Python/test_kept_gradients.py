"""Gradients that stay narrow from their reduction to the optimizer: FSDP1's keep_low_precision_grads, and grad= in text."""
from __future__ import annotations

import json
import os
import re
import subprocess
import warnings
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from fsdp1_training import CALLS, CASES, OPTIMIZERS, ByHand, Case, Seen, call_step, policy, types_of_numbers
from fsdp2_training import stored, types
from python_processes import PYTHON
from small_net import batches, setup, train_step
from step_check import StepCheck, run, tool
from torch import nn
from torch.distributed.fsdp import MixedPrecision

import spmd
from spmd.capture.optimizer.kept_gradients import kept_gradients
from spmd.precision import Precision

KEEP = MixedPrecision(param_dtype=torch.bfloat16, keep_low_precision_grads=True)
NAMES = {"f32": "float32", "bf16": "bfloat16"}


# -- Beside FSDP1 ------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def theirs(tmp_path_factory) -> dict[int, dict[str, Seen]]:
    seen = {}
    for processes in (2, 4):
        command = [PYTHON, "-W", "ignore", Path(__file__).with_name("fsdp1_training.py"), str(processes),
                   tmp_path_factory.mktemp("gloo") / "store"]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"GLOO_SOCKET_IFNAME": "lo"})
        assert done.returncode == 0, done.stderr
        seen[processes] = {name: Seen(**entry) for name, entry in json.loads(done.stdout.splitlines()[-1]).items()}
    return seen


def train(case: Case, ranks: int, view: str) -> Seen:
    model, _ = setup()
    optimizer = OPTIMIZERS[case.optimizer](model.parameters())
    step = spmd.compile(call_step, ranks=ranks, policy="class:Block", view=view, precision=policy(case))
    losses, norms, gradients, reduced = [], [], [], set()
    for number, (x, y) in enumerate(batches(CALLS)):
        loss, norm = step(model, optimizer, x, y, not case.adds or number % 2 == 1)
        losses.append(loss.item())
        if norm is not None:
            norms.append(norm)
        plan = json.loads(next(Path(step.artifact).glob("*.plan.json")).read_text())
        reduced |= {NAMES[c["dtype"]] for c in plan["commands"] if c["op"] == "reduce_scatter"}
        gradients += [p.grad for p in model.parameters() if p.grad is not None][:1]
    return Seen(losses, [norm.item() for norm in norms], stored(model, optimizer) | {
        "reduced": sorted(reduced), "gradients": types(*gradients), "norm": types_of_numbers(norms)})


@pytest.mark.parametrize("name, ranks, view", [
    *((name, 2, "local") for name in CASES), ("SGD", 2, "global"), ("SGD", 4, "local"), ("adds", 4, "local")])
@pytest.mark.sample(2)
def test_trains_as_fsdp1(theirs, tmp_path, monkeypatch, name: str, ranks: int, view: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spmd.Remark)
        ours = train(CASES[name], ranks, view)
    expected = theirs[ranks][name]
    torch.testing.assert_close(ours.losses, expected.losses, rtol=2.0**-9, atol=0)
    torch.testing.assert_close(ours.norms, expected.norms, rtol=2.0**-6, atol=0)
    assert ours.types == expected.types
    assert ours.types["norm"] == ["bfloat16" if CASES[name].keep else "float32"]


# -- What is rounded, and what is not ----------------------------------------------------------------------------------

LIMIT = 0.58  # by which a coefficient in f32 and one in bf16 are rounded to different numbers


def returns_gradients(model, optimizer, x, y):
    loss = F.cross_entropy(model(x).flatten(0, 1).float(), y.flatten())
    loss.backward()
    before = [p.grad.clone() for p in model.parameters()]
    norm = nn.utils.clip_grad_norm_(model.parameters(), LIMIT)
    after = [p.grad.clone() for p in model.parameters()]
    optimizer.step()
    optimizer.zero_grad()
    return norm, before, after


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("optimizer", ["by hand", "SGD"])
def test_arithmetic(ranks: int, optimizer: str) -> None:
    """Norms and coefficient are of f32, multiplications are rounded to bf16, and the optimizer reads what is there."""
    model, _ = setup()
    old = [p.detach().clone() for p in model.parameters()]
    step = spmd.compile(returns_gradients, ranks=ranks, policy="class:Block", precision=KEEP)
    norm, before, after = step(model, OPTIMIZERS[optimizer](model.parameters()), *batches(1)[0])
    assert {t.dtype for t in (norm, *before, *after)} == {torch.bfloat16} and {p.dtype for p in model.parameters()} == {torch.float32}
    exact = torch.stack([g.double().norm() for g in before]).norm()
    assert exact > LIMIT and norm == exact.bfloat16()
    coefficient = (LIMIT / (exact + 1e-6)).bfloat16()
    assert coefficient != (LIMIT / (norm + 1e-6)).bfloat16()  # which torch.nn.utils gives bf16 gradients
    for p, o, b, a in zip(model.parameters(), old, before, after, strict=True):
        assert torch.equal(a, b * coefficient)
        torch.testing.assert_close(p.detach(), o - 0.05 * a.float(), rtol=2.0**-23, atol=1e-9)


def test_scaled_terms_are_widened_first(tmp_path) -> None:
    """`p.add_(g, alpha=number)` computes in the type of the sum, of a number that is a tensor, too."""
    def step(model, optimizer, x):
        loss = model(x).float().sum()
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p.addcmul_(p.grad, torch.ones((), dtype=torch.bfloat16), value=-optimizer.param_groups[0]["lr"])
        optimizer.zero_grad()
        return loss.detach()

    for optimized in (False, True):
        model = nn.Linear(3, 2, bias=False)
        nn.init.zeros_(model.weight)
        x = torch.full((1, 3), 1.0078125)
        function = train_lines if optimized else step
        spmd.compile(function, precision=KEEP)(model, torch.optim.SGD(model.parameters(), lr=0.3), x)
        expected = torch.full((2, 3), -0.3) * 1.0078125
        torch.testing.assert_close(model.weight.detach(), expected, rtol=2.0**-22, atol=0)  # in bf16 2^-9


def train_lines(model, optimizer, x):
    loss = model(x).float().sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


def with_sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.05)


@pytest.mark.parametrize("precision", ["param=bf16,grad=bf16", "param=bf16,reduce=f32,grad=bf16", "grad=bf16", "param=f16,grad=f16"])
def test_interpreter(tmp_path, precision: str) -> None:
    model, _ = setup()
    check = StepCheck(spmd.capture(train_step, model, with_sgd(model), *batches(1)[0], precision=precision), tmp_path)
    for ranks, policy_of_units, *options in ((1, "none"), (2, "class:Block"), (3, "none"), (4, "none", "--mode=replicate"),
                                             (4, "class:Block", "--mesh=replicate:2,shard:2")):
        check.interpret(ranks, policy_of_units, *options)


@pytest.mark.parametrize("accumulate", ["sharded", "unsharded"])
def test_host_ranks(tmp_path, accumulate: str) -> None:
    """The reference has gradients in bf16, too: eager's with grad_dtype."""
    model, _ = setup()
    package = spmd.capture(train_step, model, with_sgd(model), *batches(1)[0], precision=KEEP, reference=batches(6))
    check = StepCheck(package, tmp_path)
    for ranks in (1, 2, 4):
        assert "passed" in check.train(ranks, "class:Block", f"--accumulate={accumulate}", rtol=0.02)


def test_ranks_with_rows_of_their_own(tmp_path) -> None:
    """The reference averages gradients in bf16 over replicas, which run at once."""
    model, _ = setup()
    package = spmd.capture(train_step, model, with_sgd(model), *(t[:4] for t in batches(1)[0]), precision=KEEP,
                           reference=batches(4), reference_ranks=3)
    assert "passed" in StepCheck(package, tmp_path).train(3, "class:Block", "--view=local", rtol=0.02)
    assert nn.utils.clip_grad._get_total_norm.__module__ == nn.utils.clip_grad.__name__


# -- What a plan has ---------------------------------------------------------------------------------------------------

def leaves(model, optimizer, x, y):
    loss = F.cross_entropy(model(x).flatten(0, 1).float(), y.flatten())
    loss.backward()
    return loss.detach()


def test_kept_gradients_take_half(tmp_path) -> None:
    bytes_of = []
    for precision in ("param=bf16", KEEP):
        model, _ = setup()
        spmd.capture(leaves, model, with_sgd(model), *batches(1)[0], precision=precision).save(tmp_path / "s.step")
        said = run(tool("spmd-compile"), tmp_path / "s.step", "--ranks=4", "--policy=class:Block", "-o", tmp_path / "a.spmd")
        bytes_of.append(int(re.search(r"gradients +([\d,]+)", said)[1].replace(",", "")))
    elements = bytes_of[0] // 4
    assert bytes_of == [4 * elements, 2 * elements]


def test_gradients_of_units(tmp_path) -> None:
    """As annotations say: a unit keeps its gradients in bf16, the rest theirs in f32; so does a batch norm, which is exempt."""
    model, _ = setup()
    with spmd.enable_wrap():
        for block, keep in zip(model.blocks, (True, False)):
            spmd.wrap(block, mixed_precision=MixedPrecision(torch.bfloat16, keep_low_precision_grads=keep, cast_forward_inputs=True))
    step = spmd.compile(leaves, ranks=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step(Widened(model), with_sgd(model), *batches(1)[0])
    assert {name for name, p in model.named_parameters() if p.grad.dtype == torch.bfloat16} == \
        {name for name, _ in model.named_parameters() if name.startswith("blocks.0.")}
    mixed = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2))
    assert len(kept_gradients(mixed, Precision.of(KEEP, ""))) == 2


class Widened(nn.Module):
    """Casts what units give, as FSDP1's output_dtype would."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        for block in model.blocks:
            block.register_forward_hook(lambda module, args, result: result.float())

    def forward(self, x):
        return self.model(x)


def test_goes_on_in_the_middle_of_an_accumulation(tmp_path) -> None:
    """Gradients are read, written, saved and loaded in their type."""
    def start():
        model, _ = setup()
        return model, with_sgd(model), spmd.compile(call_step, ranks=2, policy="class:Block", precision=KEEP)

    model, optimizer, step = start()
    data = batches(2)
    step(model, optimizer, *data[0], False)
    gradients = [p.grad.clone() for p in model.parameters()]
    assert types(*gradients) == ["bfloat16"]
    step.save_checkpoint(tmp_path / "c")
    step(model, optimizer, *data[1], True)
    again, other, resumed = start()
    resumed.load_checkpoint(tmp_path / "c")
    resumed(again, other, *data[1], True)
    for p, q in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(p, q)


def test_an_eager_gradient_is_rounded_and_added_to() -> None:
    model, _ = setup()
    (x, y), other = batches(2)
    leaves(model, None, *other)
    expected = [p.grad.bfloat16() for p in model.parameters()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spmd.Remark)
        fresh = setup()[0]
        spmd.compile(leaves, ranks=2, precision=KEEP)(fresh, with_sgd(fresh), x, y)
        spmd.compile(leaves, ranks=2, precision=KEEP)(model, with_sgd(model), x, y)
    for p, before, added in zip(model.parameters(), expected, fresh.parameters(), strict=True):
        assert torch.equal(p.grad, before + added.grad)


# -- Mistakes ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("make, name", [
    (lambda p: torch.optim.AdamW(p), "AdamW"), (lambda p: torch.optim.AdamW(p, fused=True), "AdamW with fused=True"),
    (lambda p: torch.optim.AdamW(p, foreach=True), "AdamW"), (lambda p: torch.optim.SGD(p, lr=0.1, fused=True), "SGD with fused=True")])
def test_optimizers_that_do_not_take_them(make, name: str) -> None:
    model, _ = setup()
    with pytest.raises(spmd.CaptureError) as error:
        spmd.compile(train_step, precision=KEEP)(model, make(model.parameters()), *batches(1)[0])
    said = str(error.value)
    assert said.startswith(f"{name} does not take gradients in bf16 of parameters in f32") and "small_net.py" in said and \
        "optimizer.step()" in said and "hint: leave grad= (keep_low_precision_grads) out of the precision" in said
    assert all(p.grad_dtype == torch.float32 for p in model.parameters())


@pytest.mark.parametrize("precision", ["param=bf16,grad=bf16", "param=f16,grad=f16"])
def test_a_scaler_unscales_them_unless_they_are_f16(precision: str) -> None:
    def scaled(model, optimizer, scaler, x, y):
        loss = F.cross_entropy(model(x).flatten(0, 1).float(), y.flatten())
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        return norm

    def norm_of(scale: float):
        model, _ = setup()
        scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        return spmd.compile(scaled, ranks=2, precision=precision)(model, with_sgd(model), scaler, *batches(1)[0])

    if "f16,grad=f16" in precision and "bf16" not in precision:
        with pytest.raises(spmd.CaptureError, match="(?s)unscales gradients in f16.*unscale_.*without grad=f16"):
            norm_of(8.0)
    else:
        assert norm_of(8.0) == norm_of(1.0)


@pytest.mark.parametrize("options, message", [
    ({"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32},
     'in reduce_dtype (f32) by PyTorch\'s documentation, and in param_dtype (bf16) by its code\n  hint: choose one: '
     'precision="param=bf16,reduce=f32,grad=f32" or "param=bf16,reduce=f32,grad=bf16"'),
    ({"reduce_dtype": torch.bfloat16}, 'or "reduce=bf16,grad=f32"'),
    ({}, "keep_low_precision_grads=True without a type that gradients could keep")])
def test_policies_that_say_two_things(options, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        spmd.compile(train_step, precision=MixedPrecision(**options, keep_low_precision_grads=True))


def test_steps_of_another_type_are_refused(tmp_path) -> None:
    def compiled(precision, *options):
        model, _ = setup()
        spmd.capture(train_step, model, with_sgd(model), *batches(1)[0], precision=precision).save(tmp_path / "s.step")
        done = subprocess.run([tool("spmd-compile"), tmp_path / "s.step", *options, "--ranks=2", "--quiet", "-o", tmp_path / "a.spmd"],
                              capture_output=True, text=True)
        return done.returncode, done.stderr

    plan = tmp_path / "plan.json"
    rules = {"format": "spmd-shard-units", "version": 1}
    code, said = compiled("param=bf16", "--precision=grad=bf16")
    assert code == 2 and "'grad' is chosen when a step is captured, with precision= of spmd.capture and spmd.compile, and " \
        "this one was captured without" in said
    assert compiled(KEEP, "--precision=grad=bf16") == (0, "")
    plan.write_text(json.dumps(rules | {"rules": [{"class": "Block", "options": {"precision": {"param": "bf16"}}}]}))
    code, said = compiled(KEEP, f"--policy-file={plan}")
    assert code == 2 and "shard unit 'blocks.0'" in said and "this one was captured with grad=bf16" in said
    plan.write_text(json.dumps(rules | {"rules": [{"class": "Block", "options": {"precision": {"param": "bf16", "grad": "bf16"}}}]}))
    assert compiled(KEEP, f"--policy-file={plan}") == (0, "")
