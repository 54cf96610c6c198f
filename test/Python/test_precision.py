"""Mixed precision: FSDP's policies on f32 masters, and casts that stand where they should."""
from __future__ import annotations

import json
import queue
import re
import subprocess
import warnings
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from small_net import Block, Net, batches, setup, train_step
from step_check import StepCheck, run, tool
from torch import nn
from torch.distributed.fsdp import MixedPrecision, MixedPrecisionPolicy
from torch.utils.checkpoint import checkpoint

import spmd
from spmd.precision import Precision

BF16 = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)


def collectives(step: Path, *options: str) -> list[tuple[str, str]]:
    """(name, type) of each gather and reduction of parameters and gradients, in order."""
    text = run(tool("spmd-compile"), step, "--compile-to=decompose", "-o", "-", "--quiet", *options)
    found = re.findall(r"spmd\.(all_gather|reduce_scatter|all_reduce)[^\n]*unit[^\n]*: \(?tensor<\d+x(\w+)", text)
    return [(name, dtype) for name, dtype in found]


# -- Where the casts are -----------------------------------------------------------------------------------------------

def capture(model: nn.Module, precision, function=train_step, batch=None, **options):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    return spmd.capture(function, model, optimizer, *(batch or batches(1)[0]), precision=precision, **options)


@pytest.mark.parametrize("precision, gathered, reduced", [
    (BF16, "bf16", "f32"), ("param=bf16", "bf16", "bf16"), ("reduce=bf16", "f32", "bf16"),
    ({"param": torch.bfloat16, "reduce": "f32"}, "bf16", "f32"),
    (MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32), "bf16", "f32")])
def test_types_on_the_wire(tmp_path, precision, gathered: str, reduced: str) -> None:
    capture(setup()[0], precision).save(tmp_path / "s.step")
    moved = collectives(tmp_path / "s.step", "--ranks=2", "--policy=class:Block")
    assert sorted(moved) == [("all_gather", gathered)] * 6 + [("reduce_scatter", reduced)] * 3
    whole = collectives(tmp_path / "s.step", "--ranks=2", "--mode=replicate")
    assert whole == [("all_reduce", reduced)]


def test_gradients_are_reduced_while_backward_goes_on(tmp_path) -> None:
    """The casts of gradients do not wait for the last one."""
    capture(setup()[0], BF16).save(tmp_path / "s.step")
    moved = [name for name, _ in collectives(tmp_path / "s.step", "--ranks=2", "--policy=class:Block")]
    assert moved == ["all_gather"] * 5 + ["reduce_scatter", "all_gather", "reduce_scatter", "reduce_scatter"]


@pytest.mark.parametrize("precision", [BF16, "param=bf16", "param=bf16,output=f32"])
@pytest.mark.parametrize("ranks, policy", [(1, "none"), (2, "class:Block"), (3, "none")])
@pytest.mark.sample(2)
def test_interpreter(tmp_path, precision, ranks: int, policy: str) -> None:
    StepCheck(capture(setup()[0], precision), tmp_path).interpret(ranks, policy)


def test_annotations_have_their_own(tmp_path) -> None:
    """As in FSDP2: what a unit's policy says holds for its own parameters, and its inputs are cast."""
    model, _ = setup()
    spmd.fully_shard(model.blocks[0], mp_policy=BF16)
    spmd.fully_shard(model.blocks[1])
    spmd.fully_shard(model)
    with pytest.raises(spmd.CaptureError, match="multiplies torch.float32 by torch.bfloat16"):  # block 1 gets bf16, as under FSDP2
        capture(model, None)
    model, _ = setup()
    spmd.fully_shard(model.blocks[0], mp_policy=MixedPrecisionPolicy(torch.bfloat16, output_dtype=torch.float32))
    spmd.fully_shard(model.blocks[1])
    capture(model, None).save(tmp_path / "s.step")
    moved = collectives(tmp_path / "s.step", "--ranks=2")
    assert sorted(set(moved)) == [("all_gather", "bf16"), ("all_gather", "f32"), ("reduce_scatter", "bf16"),
                                  ("reduce_scatter", "f32")]
    assert moved.count(("all_gather", "bf16")) == 2 and moved.count(("reduce_scatter", "bf16")) == 1


def test_a_tied_parameter_is_cast_once() -> None:
    package = capture(setup()[0], BF16)
    number = next(i["id"] for i in package.step["inputs"] if i.get("name") == "embed.weight")
    casts = [n for n in package.step["nodes"] if n["op"] == "aten._to_copy.default"
             and dict(n["args"])["self"] == {"value": number}]
    assert len(casts) == 1


class Checkpointed(Net):
    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(self.norm(x))


def test_checkpointing_changes_nothing() -> None:
    plain, twin = setup()[0], Checkpointed()
    twin.load_state_dict(plain.state_dict())
    references = [capture(model, BF16, reference=batches(3)).reference for model in (plain, twin)]
    torch.testing.assert_close(references[0], references[1], rtol=0, atol=0)


# -- Beside FSDP2's own modules ----------------------------------------------------------------------------------------

SEEN = queue.SimpleQueue()  # not a list: what a step appends to one is of the step


class Spy(nn.Module):
    """Notes the types of its arguments, parameters and buffer, and its result; casts what it multiplies."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)
        self.register_buffer("scale", torch.full((4,), 2.0))

    def forward(self, x, mask):
        y = self.norm(self.linear(x.to(self.linear.weight.dtype)).to(self.norm.weight.dtype))
        SEEN.put([str(t.dtype) for t in (x, mask, self.linear.weight, self.norm.weight, self.scale, y)])
        return y * self.scale


@pytest.mark.parametrize("options", [
    {}, {"param_dtype": torch.bfloat16}, {"param_dtype": torch.float16, "reduce_dtype": torch.float32},
    {"param_dtype": torch.bfloat16, "output_dtype": torch.float32}, {"output_dtype": torch.float64},
    {"param_dtype": torch.bfloat16, "cast_forward_inputs": False},
    {"param_dtype": torch.bfloat16, "output_dtype": torch.float16, "cast_forward_inputs": False}])
def test_types_of_a_module_are_those_under_fsdp2(options) -> None:
    def step(model, optimizer, x, mask):
        y = model(x, mask)
        SEEN.put(str(y.dtype))
        y.float().square().sum().backward()
        optimizer.step()

    def run(function, fsdp2: bool):
        model = Spy()
        if fsdp2:
            torch.distributed.fsdp.fully_shard(model, mp_policy=policy)
        function(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(2, 4), torch.ones(2, dtype=torch.int64))
        return [SEEN.get() for _ in range(SEEN.qsize())][:2]

    policy = MixedPrecisionPolicy(**options)
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    ours = run(lambda *arguments: spmd.capture(step, *arguments, precision=policy), False)
    assert ours == run(step, True)


@pytest.mark.parametrize("policy, expected", [
    (MixedPrecision(param_dtype=torch.bfloat16), "bf16 bf16 f32"),  # of FSDP1, the root of which casts
    (MixedPrecision(param_dtype=torch.bfloat16, cast_root_forward_inputs=False), "f32 bf16 f32"),
    (MixedPrecision(param_dtype=torch.bfloat16, _module_classes_to_ignore=[nn.LayerNorm]), "bf16 f32 f32"),
    (MixedPrecision(param_dtype=torch.bfloat16, buffer_dtype=torch.float16), "bf16 bf16 f16")])
def test_types_of_a_module_by_the_policies_of_fsdp1(policy, expected: str) -> None:
    """Of its argument, the norm's weight and a buffer."""
    def step(model, optimizer, x, mask):
        model(x, mask).float().square().sum().backward()
        optimizer.step()

    model = Spy()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    spmd.capture(step, model, optimizer, torch.randn(2, 4), torch.ones(2, dtype=torch.int64), precision=policy)
    names = {"torch.float32": "f32", "torch.bfloat16": "bf16", "torch.float16": "f16"}
    seen = [SEEN.get() for _ in range(SEEN.qsize())][0]
    assert " ".join(names[seen[i]] for i in (0, 3, 4)) == expected


# -- Modules of many kinds ---------------------------------------------------------------------------------------------

def regress(model, optimizer, x, y):
    loss = F.mse_loss(model(x).float(), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.out = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 4)

    def forward(self, x):
        return self.out(torch.relu(self.norm(self.conv(x))).mean((2, 3)))


class ByHand(Convolutions):
    """What `param=bf16` makes of it: the batch norm keeps f32."""

    def forward(self, x):
        conv, out = ({n: p.bfloat16() for n, p in m.named_parameters()} for m in (self.conv, self.out))
        x = torch.func.functional_call(self.conv, conv, (x.bfloat16(),))
        x = torch.relu(self.norm(x.float()).bfloat16()).mean((2, 3))
        return torch.func.functional_call(self.out, out, (x,))


@pytest.mark.parametrize("ranks", [1, 2])
def test_batch_norm_is_exempt(ranks: int) -> None:
    torch.manual_seed(0)
    model = Convolutions()
    twin = ByHand()
    twin.load_state_dict(model.state_dict())
    step = spmd.compile(regress, ranks=ranks, precision="param=bf16,reduce=f32")
    for m, function in ((model, step), (twin, regress)):
        optimizer = torch.optim.SGD(m.parameters(), lr=0.05)
        torch.manual_seed(1)
        m.losses = [function(m, optimizer, torch.randn(6, 3, 6, 6), torch.randn(6, 4)).item() for _ in range(4)]
    torch.testing.assert_close(model.losses, twin.losses, rtol=2e-3, atol=0)
    torch.testing.assert_close(model.norm.running_mean, twin.norm.running_mean, rtol=0, atol=2e-3)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(5, 6, batch_first=True), nn.Linear(6, 4)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1])


def test_a_recurrent_module_computes_in_it() -> None:
    torch.manual_seed(0)
    model = Recurrent()
    package = capture(model, BF16, regress, (torch.randn(4, 3, 5), torch.randn(4, 4)))
    products = [n for n in package.step["nodes"] if n["op"].split(".")[1] in ("mm", "addmm", "bmm")]
    assert products and {r["dtype"] for n in products for r in n["results"]} == {"bf16"}
    assert all(isinstance(p, nn.Parameter) and p is getattr(model.lstm, n)
               for n, p in zip(model.lstm._flat_weights_names, model.lstm._flat_weights))


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 4)
        self.register_buffer("mean", torch.full((4,), 1.001))

    def forward(self, x):
        self.mean.mul_(1.001)
        return self.out(x) * self.mean


def test_buffers_have_the_type_they_were_given() -> None:
    """FSDP1's buffer_dtype: what the module computes with, and writes, is rounded to it."""
    model = Counted()
    policy = MixedPrecision(param_dtype=torch.bfloat16, buffer_dtype=torch.bfloat16)
    step = spmd.compile(regress, precision=policy)
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    step(model, torch.optim.SGD(model.parameters(), lr=0.1), x, y)
    assert torch.equal(model.mean, (torch.full((4,), 1.001).bfloat16() * 1.001).float())


# -- Mistakes ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("precision, message", [
    ("bf16", "precision: 'bf16' is no precision; expected text like 'param=bf16,reduce=f32'"),
    ("param=int8", "precision: 'int8' is no type of mixed precision; allowed: f32, f64, f16, bf16"),
    ("weights=bf16", "precision: 'weights' is no part of a precision; allowed: param, reduce, grad, buffer, output, master"),
    (torch.bfloat16, "precision: mixed precision is torch.bfloat16; expected MixedPrecisionPolicy")])
def test_errors(precision, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Precision.of(precision, "precision")
    with pytest.raises(ValueError, match=re.escape(message)):
        spmd.compile(train_step, precision=precision)


def test_a_step_of_another_precision_is_refused(tmp_path) -> None:
    capture(setup()[0], None).save(tmp_path / "s.step")
    plan = {"format": "spmd-shard-units", "version": 1, "rules": [{"class": "Block", "options": {"precision": {"param": "bf16"}}}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    command = [tool("spmd-compile"), tmp_path / "s.step", f"--policy-file={tmp_path / 'plan.json'}", "-o", tmp_path / "a.spmd"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "'blocks.0' (@unit1) has mixed precision (param = 'bf16'), and the step was captured " \
        "in 'f32'" in done.stderr and "capture it with precision=" in done.stderr
    plan["rules"][0]["options"]["precision"] = {"reduce": "bf16"}  # which can be chosen afterwards
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    moved = collectives(tmp_path / "s.step", f"--policy-file={tmp_path / 'plan.json'}", "--ranks=2")
    assert sorted(m for m in moved if m[0] == "reduce_scatter") == [("reduce_scatter", "bf16")] * 2 + [("reduce_scatter", "f32")]


def test_a_parameter_read_as_it_is_is_told(tmp_path) -> None:
    def decayed(model, optimizer, x, y):
        loss = F.cross_entropy(model(x).flatten(0, 1).float(), y.flatten()) + model.blocks[0].up.weight.square().sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        capture(setup()[0], BF16, decayed).save(tmp_path / "s.step")
    done = subprocess.run([tool("spmd-compile"), tmp_path / "s.step", "--ranks=2", "--policy=class:Block", "-o",
                           tmp_path / "a.spmd"], capture_output=True, text=True)
    assert done.returncode == 0 and "'blocks.0.up.weight' is read in 'f32' here, so shard unit 'blocks.0' is gathered in " \
        "'f32', not in 'bf16'" in done.stderr, done.stderr
