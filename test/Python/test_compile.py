"""spmd.compile without a compiler: a stand-in for spmd-compile copies the step, a stand-in for the runtime interprets
it.

What is tested is everything around them: capture at the first call, the cache, learning rates, results, sync, calls of
another shape. test_compile_end_to_end.py runs the real ones.
"""
from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import functools
import os
import re
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import gpt2
import mlp
import pytest
import torch
import torch.nn.functional as F
from stand_ins import compiler  # noqa: F401
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

import spmd
from spmd.compiler import cache_folder
from spmd.tools import find_runtime, find_tool


def eager_twin(example: dict):
    return copy.deepcopy((example["model"], example["optimizer"]))


def assert_same(model, optimizer, other_model, other_optimizer, tolerance) -> None:
    torch.testing.assert_close(model.state_dict(), other_model.state_dict(), rtol=0, atol=tolerance)
    torch.testing.assert_close(optimizer.state_dict()["state"], other_optimizer.state_dict()["state"], rtol=0,
                               atol=tolerance)


@pytest.mark.filterwarnings("error")
def test_trains_like_eager_with_a_scheduler(compiler) -> None:
    example = gpt2.setup("tiny", steps=5)
    model, optimizer = example["model"], example["optimizer"]
    twin, twin_optimizer = eager_twin(example)
    train_step = spmd.compile(ranks=4, policy=ModuleWrapPolicy({gpt2.Block}))(gpt2.train_step)
    schedulers = [torch.optim.lr_scheduler.ExponentialLR(o, 0.5) for o in (optimizer, twin_optimizer)]
    for x, y in example["reference"]:
        loss = train_step(model, optimizer, x, y)
        expected = gpt2.train_step(twin, twin_optimizer, x, y)
        assert isinstance(loss, torch.Tensor) and abs(loss.item() - expected.item()) < 1e-5
        for scheduler in schedulers:
            scheduler.step()
    for name, value in twin.state_dict().items():
        if name not in example["zero_gradient"]:
            torch.testing.assert_close(model.state_dict()[name], value, rtol=0, atol=2e-7)
    for parameter, expected in zip(model.parameters(), twin.parameters()):
        torch.testing.assert_close(optimizer.state[parameter]["exp_avg"], twin_optimizer.state[expected]["exp_avg"],
                                   rtol=0, atol=1e-7)
        assert optimizer.state[parameter]["step"] == 5
    gpt2.train_step(model, optimizer, *example["args"])  # eager goes on from there
    assert re.match(r"--ranks=4 --target=host --cpu=x86-64-v\d --policy-file=", compiler.read_text())


def test_another_shape_carries_the_state_over(compiler) -> None:
    example = mlp.setup(steps=6)
    twin, twin_optimizer = eager_twin(example)
    train_step = spmd.compile(mlp.train_step, ranks=2)
    for number, (x, y) in enumerate(example["reference"]):
        rows = 8 if number % 3 else 5
        loss = train_step(example["model"], example["optimizer"], x[:rows], y[:rows])
        assert abs(loss.item() - mlp.train_step(twin, twin_optimizer, x[:rows], y[:rows]).item()) < 1e-6
    train_step.sync()
    assert_same(example["model"], example["optimizer"], twin, twin_optimizer, 1e-6)


def test_an_optimizer_with_other_options_is_another_program(compiler) -> None:
    example = mlp.setup(steps=6)
    twin, twin_optimizer = eager_twin(example)
    train_step = spmd.compile(mlp.train_step, ranks=2)
    for number, (x, y) in enumerate(example["reference"]):
        if number == 3:
            for optimizer in (example["optimizer"], twin_optimizer):
                optimizer.param_groups[0]["momentum"] = 0.5
                optimizer.param_groups[0]["weight_decay"] = 0.1
        train_step(example["model"], example["optimizer"], x, y)
        mlp.train_step(twin, twin_optimizer, x, y)
    train_step.sync()
    assert_same(example["model"], example["optimizer"], twin, twin_optimizer, 1e-6)
    assert len(compiler.read_text().splitlines()) == 2


def test_one_tensor_for_two_inputs_is_still_two_inputs(compiler) -> None:
    def train_step(model, optimizer, x, target):
        loss = F.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    compiled = spmd.compile(train_step, ranks=2)
    x, target = torch.randn(2, 6, 4)
    for first, second in ((x, x), (x, target)):
        expected = train_step(twin, twin_optimizer, first, second).item()
        assert compiled(model, optimizer, first, second).item() == pytest.approx(expected)
    assert len(compiler.read_text().splitlines()) == 1


def test_a_compiled_step_can_be_captured(compiler) -> None:
    example = mlp.setup()
    train_step = spmd.compile(mlp.train_step, ranks=2, batch_dims={"x": None})
    package = spmd.capture(train_step, example["model"], example["optimizer"], *example["args"],
                           reference=example["reference"])
    plain = spmd.capture(mlp.train_step, example["model"], example["optimizer"], *example["args"],
                         reference=example["reference"], batch_dims={"x": None})
    assert package.text() == plain.text() and compiler.read_text() == ""
    torch.testing.assert_close(package.reference, plain.reference, rtol=0, atol=0)


def test_results_of_any_structure_and_python_arguments(compiler) -> None:
    @spmd.compile(ranks=2)
    def train_step(model, optimizer, batch, *, scale):
        """Documented."""
        loss = F.cross_entropy(model(batch["x"]), batch["y"]) * scale
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return {"loss": loss.item(), "more": (loss.detach(), [None, "text", scale])}

    assert train_step.__name__ == "train_step" and train_step.__doc__ == "Documented."
    example = mlp.setup()
    x, y = example["args"]
    first = train_step(example["model"], example["optimizer"], {"x": x, "y": y}, scale=1.0)
    assert type(first["loss"]) is float and first["more"][1] == [None, "text", 1.0]
    assert first["more"][0].item() == first["loss"]
    other = mlp.setup()
    train_step.reset()
    second = train_step(other["model"], other["optimizer"], {"x": x, "y": y}, scale=2.0)
    assert second["loss"] == pytest.approx(2 * first["loss"])
    assert len(compiler.read_text().splitlines()) == 2


@dataclasses.dataclass(frozen=True)
class Result:
    loss: torch.Tensor
    inner: Any
    name: str = "result"


Pair = collections.namedtuple("Pair", "loss logits")


class Kind(enum.Enum):
    LOSS = 1


class Plain:
    def __init__(self, loss):
        self.loss = loss


class Slots:
    __slots__ = ("loss",)


class Attributes(dict):
    __getattr__ = dict.__getitem__


def in_slots(loss):
    made = Slots()
    made.loss = loss
    return made


def yielding(loss):
    yield loss


def returning(make):
    def train_step(model, optimizer, x, y):
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return make(loss, logits)
    return train_step


@pytest.mark.parametrize("make", [
    lambda loss, logits: None, lambda loss, logits: loss.item(),
    lambda loss, logits: (loss, (logits.argmax(-1) == 0).sum().item()),
    lambda loss, logits: {"loss": loss, "logits": logits}, lambda loss, logits: [loss, None, 3, "text"],
    lambda loss, logits: Result(loss, {"logits": (logits,)}),
    lambda loss, logits: [Result(loss, Result(logits, None, "inner"))],
    lambda loss, logits: Pair(loss, logits),
    lambda loss, logits: collections.OrderedDict(loss=loss, logits=logits),
    lambda loss, logits: {"shape": logits.shape, Kind.LOSS: loss, (1, 2): [loss.shape]}])
def test_a_result_is_what_eager_returns(compiler, make) -> None:
    example = mlp.setup()
    model, optimizer = eager_twin(example)
    ours = spmd.compile(returning(make), ranks=2)(example["model"], example["optimizer"], *example["args"])
    theirs = returning(make)(model, optimizer, *example["args"])
    assert type(ours) is type(theirs)

    def plain(value):
        if dataclasses.is_dataclass(value):
            return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        if isinstance(value, torch.Size):
            return "size", *value
        if isinstance(value, (list, tuple)):
            return [plain(v) for v in value]
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items()}
        return value.detach() if isinstance(value, torch.Tensor) else value

    def assert_same_parts(a, b):
        assert type(a) is type(b)
        if isinstance(a, (list, dict)):
            assert len(a) == len(b)
            for key in a if isinstance(a, dict) else range(len(a)):
                assert_same_parts(a[key], b[key])
        elif isinstance(a, torch.Tensor):
            torch.testing.assert_close(a, b)
        else:
            assert a == pytest.approx(b) if isinstance(a, float) else a == b

    assert_same_parts(plain(ours), plain(theirs))


@pytest.mark.parametrize("make, message", [
    (Plain, "returns a Plain with a tensor in its attribute 'loss'"),
    (in_slots, "returns a Slots with a tensor in its attribute 'loss'"),
    (lambda loss: Attributes(loss=loss), "returns a Attributes with a tensor in its entry 'loss'"),
    (lambda loss: lambda: loss, "returns a function with a tensor in its variable 'loss'"),
    (lambda loss: functools.partial(torch.add, loss), "returns a partial with a tensor in its argument 0"),
    (lambda loss: {"loss": loss}.values(), "returns a dict_values with a tensor in its entry 0"),
    (yielding, "returns a generator, which would compute after the step has ended"),
    (lambda loss: map(torch.neg, [loss]), "returns a map, which would compute after the step has ended")])
def test_a_result_that_hides_tensors_is_refused(compiler, make, message: str) -> None:
    example = mlp.setup()
    with pytest.raises(spmd.CaptureError, match=message):
        spmd.compile(returning(lambda loss, logits: make(loss)), ranks=2)(example["model"], example["optimizer"],
                                                                          *example["args"])


def test_a_step_that_yields_is_refused(compiler) -> None:
    def train_step(model, optimizer, x, y):
        yield F.cross_entropy(model(x), y)

    example = mlp.setup()
    with pytest.raises(spmd.CaptureError, match="returns a generator, which would compute"):
        spmd.compile(train_step, ranks=2)(example["model"], example["optimizer"], *example["args"])


def test_every_way_to_compile(compiler) -> None:
    """Without parentheses, with, as a function; keyword arguments, dict batches, None."""
    @spmd.compile
    def bare(model, optimizer, batch, weight=None):
        loss = F.cross_entropy(model(batch["x"]), batch["y"], weight)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    assert isinstance(bare, spmd.CompiledStep) and "1 rank in each process, not called yet" in repr(bare)
    for step in (bare, spmd.compile()(bare.train_step), spmd.compile(bare.train_step),
                 spmd.compile(bare.train_step, ranks=2)):
        example = mlp.setup()
        twin, twin_optimizer = eager_twin(example)
        x, y = example["args"]
        for weight in (None, torch.linspace(1, 2, 6)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", spmd.Remark)
                loss = step(batch={"y": y, "x": x}, weight=weight, optimizer=example["optimizer"],
                            model=example["model"])
            expected = bare.train_step(twin, twin_optimizer, {"x": x, "y": y}, weight)
            torch.testing.assert_close(loss, expected.detach())
        assert step.compiles == 2
    assert [line.split()[0] for line in compiler.read_text().splitlines()] == ["--ranks=1"] * 2 + ["--ranks=2"] * 2


def test_python_arguments_are_part_of_the_key(compiler) -> None:
    @spmd.compile(ranks=2)
    def train_step(model, optimizer, x, y, smoothing, flags):
        loss = F.cross_entropy(model(x), y, label_smoothing=smoothing) * (2 if flags["double"] else 1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    example = mlp.setup()
    model, optimizer = eager_twin(example)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", spmd.Remark)
        for smoothing, double in ((0.0, False), (0.1, False), (0.1, True), (0.0, False)):
            arguments = (*example["args"], smoothing, {"double": double})
            loss = train_step(example["model"], example["optimizer"], *arguments)
            torch.testing.assert_close(loss, train_step.train_step(model, optimizer, *arguments).detach())
        assert train_step.compiles == 3
        example["model"].eval(), example["model"].train()
        train_step(example["model"], example["optimizer"], *arguments)
        assert train_step.compiles == 3
        example["model"].eval()
        train_step(example["model"], example["optimizer"], *arguments)
        example["model"].fc1.weight.requires_grad_(False)
        before = example["model"].fc1.weight.clone()
        train_step(example["model"], example["optimizer"], *arguments)
        assert train_step.compiles == 5 and torch.equal(example["model"].fc1.weight, before)


def test_cache(compiler, tmp_path) -> None:
    def run(**options):
        example = mlp.setup()
        step = spmd.compile(mlp.train_step, **options)
        step(example["model"], example["optimizer"], *example["args"])
        return step.artifact

    first = run(ranks=2)
    assert first == run(ranks=2) and first.parent.parent == cache_folder() == tmp_path / "cache/spmd"
    assert not (first / "weights.safetensors").exists()
    assert run(ranks=4) != first
    by_object = run(ranks=2, policy=ModuleWrapPolicy({torch.nn.Linear}))
    assert by_object != first and by_object == run(ranks=2, policy=ModuleWrapPolicy({torch.nn.Linear}))
    assert len(compiler.read_text().splitlines()) == 3
    assert sorted(p.name for p in cache_folder().iterdir() if p.name.startswith(".")) == []


def test_the_cache_knows_compilers_by_what_they_are(compiler, tmp_path, monkeypatch) -> None:
    """Another build of the same size and date is another compiler; the same one in another place is not."""
    def runs() -> int:
        example = mlp.setup()
        spmd.compile(mlp.train_step, ranks=2)(example["model"], example["optimizer"], *example["args"])
        return len(compiler.read_text().splitlines())

    script = tmp_path / "spmd-compile"
    assert runs() == 1
    times, text = script.stat(), script.read_text()
    script.write_text(text.replace("shutil.copytree(step, out)", "shutil.copytree(step,out) "))
    os.utime(script, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert runs() == 2
    moved = tmp_path / "elsewhere"
    shutil.copy(script, moved)
    monkeypatch.setenv("SPMD_COMPILE", str(moved))
    assert runs() == 2
    runtime = tmp_path / "libspmd_runtime.so"
    build = find_runtime().read_bytes()  # what follows a library's content is not looked at
    runtime.write_bytes(build + b"one build")
    monkeypatch.setenv("SPMD_RUNTIME", str(runtime))
    assert runs() == 3
    runtime.unlink()  # it is loaded
    runtime.write_bytes(build + b"two build")
    assert runs() == 4


def test_compiler_errors(compiler, monkeypatch, tmp_path) -> None:
    example = mlp.setup()
    step = spmd.compile(mlp.train_step, ranks=2, policy="class:Missing")
    with pytest.raises(spmd.CompileError) as error:
        step(example["model"], example["optimizer"], *example["args"])
    assert str(error.value).startswith("spmd-compile: error: no module has class 'Missing'\n  a note\n")
    assert str(error.value).endswith(f"exit code 2 of: {' '.join(error.value.command)}"), "the command comes last"
    assert error.value.exit_code == 2 and "warning: one" in error.value.said
    assert [(d.severity, d.message.splitlines()[0]) for d in error.value.diagnostics] == [
        ("warning", "one"), ("error", "no module has class 'Missing'")]
    assert list(cache_folder().iterdir()) == []
    monkeypatch.setenv("SPMD_COMPILE", str(tmp_path / "nothing"))
    with pytest.raises(spmd.ToolError, match="SPMD_COMPILE is .*nothing"):
        find_tool("spmd-compile")
    monkeypatch.delenv("SPMD_NO_SUCH_TOOL", raising=False)
    with pytest.raises(spmd.ToolError, match="set SPMD_NO_SUCH_TOOL"):
        find_tool("spmd-no-such-tool")


@pytest.mark.parametrize("how, message", [
    ("os.kill(os.getpid(), 11)", "^spmd-compile was ended by SIGSEGV: a mistake of the compiler, not of the step\n"),
    ("os.kill(os.getpid(), 9)", "^spmd-compile was ended by SIGKILL, .*memory"),
    ("""say(dict(severity="error", message="…", rendered="x.py:3: error: the disk is full\\n")); sys.exit(3)""",
     "^spmd-compile ended with exit code 3: a failure that is none of the step's\nx.py:3: error: the disk is full\n"),
    ("""os.write(descriptor, b'{"severity": "er'); os.abort()""",
     "^spmd-compile was ended by SIGABRT: a mistake of the compiler, not of the step\n  to report it")])
def test_a_compiler_that_dies_leaves_what_a_report_needs(compiler, tmp_path, how: str, message: str) -> None:
    script = tmp_path / "spmd-compile"
    script.write_text(f"#!{sys.executable}\nimport json, os, sys\nprint('half of it', flush=True)\n"
                      "descriptor = int(sys.argv[-1].partition('=')[2])\n"
                      "def say(record): os.write(descriptor, json.dumps(record).encode() + b'\\n')\n"
                      f"{how}\n")
    example = mlp.setup()
    for run in (lambda: spmd.compile(mlp.train_step, ranks=2, policy=ModuleWrapPolicy({torch.nn.Linear}))(
            example["model"], example["optimizer"], *example["args"]),
                lambda: spmd.capture(mlp.train_step, example["model"], example["optimizer"],
                                     *example["args"]).plan(ranks=2)):
        with pytest.raises(spmd.CompileError, match=message) as error:
            run()
        report = Path(re.search("send the folder (.*): it has", str(error.value))[1])
        assert sorted(p.name for p in (report / "train_step.step").iterdir()) == ["step.json"]
        assert "--ranks=2" in (report / "command.txt").read_text()
        assert (report / "output.txt").read_text().startswith("half of it\n")
    assert (cache_folder() / "reports").is_dir()


def test_a_loss_that_is_not_finite_is_named_with_its_step(compiler) -> None:
    example = mlp.setup()
    x, y = example["args"]
    step = spmd.compile(mlp.train_step, ranks=2, check_finite=True)
    for _ in range(2):
        step(example["model"], example["optimizer"], x, y)
    with pytest.raises(spmd.NonFiniteError, match="the loss of step 2 of train_step is nan.*\n  hint: "):
        step(example["model"], example["optimizer"], x * float("nan"), y)
    assert step.steps == 3
    plain = mlp.setup()
    assert spmd.compile(mlp.train_step)(plain["model"], plain["optimizer"], x * float("nan"), y).isnan()



def test_another_model_is_refused(compiler) -> None:
    step = spmd.compile(mlp.train_step, ranks=2)
    first, second = mlp.setup(), mlp.setup()
    step(first["model"], first["optimizer"], *first["args"])
    with pytest.raises(ValueError, match="another model or optimizer"):
        step(second["model"], second["optimizer"], *second["args"])
    step.reset()
    step(second["model"], second["optimizer"], *second["args"])


@pytest.mark.parametrize("policy, words", [
    (None, ""), ("size:1000", " --policy=size:1000"), (ModuleWrapPolicy({gpt2.Block}), None),
    (lambda module, recurse, nonwrapped_numel: True, None)])
def test_policies_for_the_compiler(compiler, policy, words) -> None:
    example = gpt2.setup("tiny")
    step = spmd.compile(gpt2.train_step, ranks=2, policy=policy, ignored_states=[example["model"].wpe.weight])
    step(example["model"], example["optimizer"], *example["args"])
    said = re.sub(r" *--cpu=\S+", "", compiler.read_text().replace("--ranks=2 --target=host", "", 1)).strip()
    if words is None:
        assert said.startswith("--policy-file=") and said.endswith("plan.json")
    else:
        assert said == (words + " --ignored-parameter=wpe.weight").strip()


def test_unknown_policy(compiler) -> None:
    example = mlp.setup()
    with pytest.raises(TypeError, match="policy is 3; expected one of torch.distributed.fsdp.wrap's"):
        spmd.compile(mlp.train_step, ranks=2, policy=3)(example["model"], example["optimizer"], *example["args"])
