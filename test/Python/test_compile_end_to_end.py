"""spmd.compile with the real compiler and runtime, next to eager PyTorch."""
from __future__ import annotations

import copy
import os
import subprocess
import warnings

import gpt2
import mlp
import pytest
import torch
from rounding import linear_chain, rounding
from safetensors.torch import load_file
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

import spmd
from spmd.tools import find_tool


MLP_CHAIN = linear_chain(8, 12, 20, 6)  # of a step of mlp.setup(); those of earlier steps are in the parameters
# Of a step of gpt2.setup("tiny"), 128 tokens in rows of 16, width 32, 4 heads, 65 tokens in the vocabulary: twice a
# block's norms, products and attention, a norm, the logits, the loss and its mean; and backward twice as many.
GPT_CHAIN = 3 * (2 * (2 * 64 + 32 + 8 + 16 + 16 + 32 + 32 + 128) + 64 + 32 + 65 + 128)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a.double() - b.double()).norm() / b.double().norm().clamp_min(1e-12))


def assert_same_parameters(model, expected, chain, without=()) -> None:
    for name, value in expected.state_dict().items():
        if name not in without:
            assert relative(model.state_dict()[name], value) < rounding(chain), name


def assert_same_momentum(model, optimizer, expected, expected_optimizer, chain) -> None:
    for p, q in zip(model.parameters(), expected.parameters()):
        buffers = (o.state[t]["momentum_buffer"] for o, t in ((optimizer, p), (expected_optimizer, q)))
        assert relative(*buffers) < rounding(chain)


def is_same_loss(loss, expected, chain) -> bool:
    return abs(loss.item() - expected.item()) < rounding(chain) * abs(expected.item())


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_mlp_trains_like_eager(ranks: int) -> None:
    example = mlp.setup()
    model, optimizer = example["model"], example["optimizer"]
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    train_step = spmd.compile(mlp.train_step, ranks=ranks, threads=2)
    for steps, (x, y) in enumerate(example["reference"], 1):
        loss = train_step(model, optimizer, x, y)
        expected = mlp.train_step(twin, twin_optimizer, x, y)
        assert loss.shape == () and is_same_loss(loss, expected, steps * MLP_CHAIN)
    train_step.sync()
    assert_same_parameters(model, twin, steps * MLP_CHAIN)
    assert_same_momentum(model, optimizer, twin, twin_optimizer, steps * MLP_CHAIN)


def test_an_emulated_gpu_trains_like_eager() -> None:
    example = mlp.setup()
    model, optimizer = example["model"], example["optimizer"]
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    train_step = spmd.compile(mlp.train_step, ranks=2, target="emulate:sm_90")
    for steps, (x, y) in enumerate(example["reference"], 1):
        loss = train_step(model, optimizer, x, y)
        assert is_same_loss(loss, mlp.train_step(twin, twin_optimizer, x, y), steps * MLP_CHAIN)
    train_step.sync()
    assert_same_parameters(model, twin, steps * MLP_CHAIN)


@pytest.mark.parametrize("target", ["gpu", "emulate", "sm_90"])
def test_a_target_that_there_is_not_is_refused_before_anything_else(target: str) -> None:
    with pytest.raises(ValueError, match=f"target is '{target}'; allowed: host, cuda .*, cuda:CHIP .*, and emulate:CHIP"):
        spmd.compile(ranks=2, target=target)
    with pytest.raises(ValueError, match="options has --target; say target= instead"):
        spmd.compile(mlp.train_step, options=[f"--target={target}"])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_gpus_of_this_machine_are_those_that_pytorch_finds() -> None:
    with pytest.raises(ValueError, match="target is 'cuda', and PyTorch finds no GPU here; name the kind"):
        spmd.compile(ranks=2, target="cuda")


def test_a_chip_that_there_is_not_is_refused_by_the_compiler() -> None:
    example = mlp.setup()
    train_step = spmd.compile(mlp.train_step, target="emulate:sm_42")
    with pytest.raises(spmd.CompileError, match="sm_42.*sm_80.*sm_90.*sm_100"):
        train_step(example["model"], example["optimizer"], *example["args"])


@pytest.mark.filterwarnings("ignore::spmd.remarks.Remark")
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_step_that_returns_the_whole_output_of_the_model(ranks: int) -> None:
    """The output is gathered after the last gradient is reduced, where the gradients were."""
    def step(model, optimizer, x, y):
        out = model(x)
        loss = torch.nn.functional.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss, out
    example = mlp.setup(steps=2)
    model, optimizer = example["model"], example["optimizer"]
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    train_step = spmd.compile(step, ranks=ranks, threads=2)
    for steps, (x, y) in enumerate(example["reference"], 1):
        loss, out = train_step(model, optimizer, x, y)
        expected_loss, expected = step(twin, twin_optimizer, x, y)
        assert is_same_loss(loss, expected_loss, steps * MLP_CHAIN)
        assert out.shape == expected.shape and relative(out, expected) < rounding(steps * MLP_CHAIN)


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
        assert is_same_loss(loss, expected, (number + 1) * GPT_CHAIN)
        for scheduler in schedulers:
            scheduler.step()
    assert train_step.trainer.ranks == 4
    assert {c.unit for c in train_step.trainer.collectives if c.op == "reduce_scatter"} >= {"unit0", "unit1"}
    train_step.sync()
    assert_same_parameters(model, twin, (number + 1) * GPT_CHAIN, example["zero_gradient"])
    assert model.lm_head.weight is model.wte.weight


@pytest.mark.filterwarnings("ignore::spmd.remarks.Remark")
def test_batches_of_several_shapes_and_another_option_share_one_state() -> None:
    """The second program needs a larger arena than the first; weight decay is part of the program."""
    example = mlp.setup(steps=6)
    model, optimizer = example["model"], example["optimizer"]
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    train_step = spmd.compile(mlp.train_step, ranks=2, threads=2)
    for number, rows in enumerate((5, 8, 5, 3, 8, 8)):
        if number == 5:
            for group in (*optimizer.param_groups, *twin_optimizer.param_groups):
                group["weight_decay"] = 0.1
        x, y = (tensor[:rows] for tensor in example["reference"][number])
        loss = train_step(model, optimizer, x, y)
        assert is_same_loss(loss, mlp.train_step(twin, twin_optimizer, x, y), (number + 1) * MLP_CHAIN)
    programs = train_step.training_state.programs
    assert len(programs) == 4 and len({p.trainer.arena_bytes for p in programs}) > 1
    assert {p.home for p in programs} == {programs[0].trainer}
    programs[1].trainer.close()  # the others go on
    assert_same_parameters(model, twin, 6 * MLP_CHAIN)
    assert_same_momentum(model, optimizer, twin, twin_optimizer, 6 * MLP_CHAIN)


def test_saved_with_the_state_of_now(tmp_path) -> None:
    example = gpt2.setup("tiny", steps=3)
    train_step = spmd.compile(gpt2.train_step, ranks=2, threads=2)
    with pytest.raises(RuntimeError, match="has not been called yet"):
        train_step.save(tmp_path / "gpt2.spmd")
    batches = example["reference"]
    for x, y in batches[:2]:
        train_step(example["model"], example["optimizer"], x, y)
    train_step.save(tmp_path / "gpt2.spmd")
    assert train_step.report().startswith("train_step: 2 ranks\nshard units:")
    assert "arena: " in train_step.report() 
    plan = train_step.plan
    assert plan.ranks == 2 and plan.arena_bytes == train_step.trainer.arena_bytes
    assert repr(plan) == train_step.report()
    assert plan == train_step.package.plan(ranks=2)  # what is planned ahead of time is what runs
    assert repr(train_step) == (f"<spmd.compile(train_step): 2 ranks, 1 program, 2 steps, "
                                f"{train_step.trainer.arena_bytes:,} bytes per rank>")
    loss = train_step(example["model"], example["optimizer"], *batches[2])
    with spmd.load(tmp_path / "gpt2.spmd", threads=2) as trainer:
        assert trainer.step(*batches[2]).item() == loss.item()
    (tmp_path / "other").mkdir()
    with pytest.raises(FileExistsError, match="is no artifact"):
        train_step.save(tmp_path / "other")


def test_the_compilers_warnings_and_wrong_hints() -> None:
    """Inputs without batch dim: the same numbers, computed on every rank alike, and the user is told."""
    example = mlp.setup()
    model, optimizer = example["model"], example["optimizer"]
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    for steps in (1, 2):  # compiled, and from the cache
        step = spmd.compile(mlp.train_step, ranks=2, threads=2, batch_dims={"x": None, "y": None})
        said = r"mlp.py:\d+: 100 % of .* run on every rank alike; .* bytes .*--batch-dim"
        with pytest.warns(spmd.CompilerWarning, match=said):
            loss = step(model, optimizer, *example["args"])
        assert is_same_loss(loss, mlp.train_step(twin, twin_optimizer, *example["args"]), steps * MLP_CHAIN)
    with pytest.warns(spmd.CompilerWarning, match="gathers an activation .* bytes, .*mlp.py:.*--batch-dim"):
        loss = spmd.compile(mlp.train_step, ranks=2, threads=2, batch_dims={"x": 1})(model, optimizer, *example["args"])
    assert is_same_loss(loss, mlp.train_step(twin, twin_optimizer, *example["args"]), 3 * MLP_CHAIN)
    assert_same_parameters(model, twin, 3 * MLP_CHAIN)


def test_an_activation_is_returned_whole() -> None:
    """It is gathered at the end, into bytes that the gradients had: a wait that is waited for orders the two."""
    def train_step(model, optimizer, x):
        y = model(x)
        loss = y.pow(2).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss, y

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    step = spmd.compile(train_step, ranks=2, threads=2)
    for steps, x in enumerate(torch.randn(3, 5, 6), 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", spmd.CompilerWarning)
            loss, y = step(model, optimizer, x)
        expected, whole = train_step(twin, twin_optimizer, x)
        chain = steps * linear_chain(5, 6, 8)
        assert is_same_loss(loss, expected, chain) and relative(y, whole) < rounding(chain)
    assert_same_parameters(model, twin, chain)


def test_what_has_no_elements_is_returned_as_eager_returns_it(tmp_path) -> None:
    """Such a tensor is known without a run, also where only an artifact is: its shape and dtype are all of it."""
    def train_step(model, optimizer, x, y):
        logits = model(x)
        loss = torch.nn.functional.cross_entropy(torch.cat([logits[:, :0], logits], 1), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        rows = [y[:0], torch.zeros(2, 0, 3, dtype=torch.bfloat16)]
        return {"none": logits.detach()[:, :0], "loss": loss, "rows": rows}

    example = mlp.setup()
    batch = example["args"]
    package = spmd.capture(train_step, example["model"], example["optimizer"], *batch)
    package.save(tmp_path / "s.step")
    subprocess.run([find_tool("spmd-compile"), tmp_path / "s.step", "-o", tmp_path / "s.spmd", "--ranks=2"], check=True,
                   capture_output=True)
    twin = train_step(*copy.deepcopy((example["model"], example["optimizer"])), *batch)
    step = spmd.compile(train_step, ranks=2, threads=2)
    results = step(example["model"], example["optimizer"], *batch)
    torch.testing.assert_close(results, twin, rtol=rounding(MLP_CHAIN), atol=0)
    with spmd.load(tmp_path / "s.spmd", threads=2) as trainer:
        torch.testing.assert_close(trainer.step(*batch), results, rtol=0, atol=0)
        of_numpy = trainer.step(*(t.numpy() for t in batch))
    assert of_numpy["none"].shape == (len(batch[0]), 0) and of_numpy["rows"][0].dtype == "int64"


def test_a_forked_child_reads_and_does_not_step() -> None:
    example = mlp.setup()
    model, batch = example["model"], example["args"]
    train_step = spmd.compile(mlp.train_step, ranks=2, threads=2)
    train_step(model, example["optimizer"], *batch)
    child = os.fork()
    if child == 0:
        known = model.fc1.weight.isfinite().all().item()
        try:
            train_step(model, example["optimizer"], *batch)
        except RuntimeError as error:
            os._exit(0 if known and "forked" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


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
    chain = len(losses) * MLP_CHAIN
    losses_of_eager = package.reference["loss"]
    torch.testing.assert_close(torch.tensor(losses, dtype=torch.float64), losses_of_eager, rtol=rounding(chain), atol=0)
    for name, value in load_file(tmp_path / "final.safetensors").items():
        assert relative(value, package.reference[f"final/{name}"]) < rounding(chain)
    # The decorator's is the same program: the same bits.
    step = spmd.compile(mlp.train_step, ranks=2, threads=2)
    assert losses == [step(example["model"], example["optimizer"], x, y).item() for x, y in example["reference"]]
    step.sync()
    for name, value in load_file(tmp_path / "final.safetensors").items():
        assert torch.equal(value, example["model"].state_dict()[name]), name


def test_a_token_that_is_no_row_is_refused() -> None:
    example = gpt2.setup("tiny", steps=1)
    train_step = spmd.compile(gpt2.train_step, ranks=2, threads=2)
    x, y = example["args"]
    train_step(example["model"], example["optimizer"], x, y)
    before = copy.deepcopy(example["model"].state_dict())
    with pytest.raises(spmd.RunError, match="65"):
        train_step(example["model"], example["optimizer"], torch.full_like(x, 65), y)
    torch.testing.assert_close(example["model"].state_dict(), before, rtol=0, atol=0)


def test_the_compilers_error_reaches_the_user() -> None:
    example = mlp.setup()
    train_step = spmd.compile(mlp.train_step, ranks=2, policy="class:Missing")
    with pytest.raises(spmd.CompileError, match="no module has class 'Missing'"):
        train_step(example["model"], example["optimizer"], *example["args"])


@pytest.mark.filterwarnings("ignore::spmd.remarks.Remark")
def test_state_of_a_type_of_its_own() -> None:
    """A unit has one buffer for each kind of state: parameters may have theirs in bf16, all of a unit."""
    example = mlp.setup()
    model, optimizer = example["model"], example["optimizer"]
    train_step = spmd.compile(mlp.train_step, ranks=2)
    train_step(model, optimizer, *example["args"])
    state = optimizer.state[model.fc1.weight]
    state["momentum_buffer"] = state["momentum_buffer"].bfloat16()
    with pytest.raises(spmd.CompileError, match=r"mlp.py:\d+: error: state 'momentum_buffer' of parameter 'fc1.weight' is "
                                                r"'bf16', that of 'fc1.bias' is 'f32', and both are of shard unit @unit0"):
        train_step(model, optimizer, *example["args"])
    train_step = spmd.compile(mlp.train_step, ranks=2, policy="class:Linear")
    for p in model.fc1.parameters():
        optimizer.state[p]["momentum_buffer"] = optimizer.state[p]["momentum_buffer"].bfloat16()
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    loss = train_step(model, optimizer, *example["args"])
    assert is_same_loss(loss, mlp.train_step(twin, twin_optimizer, *example["args"]), MLP_CHAIN)
    for p, q in zip(model.parameters(), twin.parameters()):
        assert relative(p, q) < 2**-9  # momentum is rounded to bf16, at other places
    assert optimizer.state[model.fc1.weight]["momentum_buffer"].dtype == torch.bfloat16
    state = optimizer.state[model.fc1.weight]
    state["momentum_buffer"] = state["momentum_buffer"].float()
    with pytest.raises(spmd.CompileError, match="which has one buffer for each kind of state"):
        train_step(model, optimizer, *example["args"])


@pytest.mark.parametrize("seed", [2**50 - 1, 2**53 + 2**51 + 7, 2**64 - 1])
def test_any_seed(seed: int) -> None:
    """That of a process that never called manual_seed has 64 bits."""
    x, y = mlp.setup()["args"]
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(12, 20), torch.nn.Dropout(0.5), torch.nn.Linear(20, 6))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    assert torch.isfinite(spmd.compile(mlp.train_step, ranks=2)(model, optimizer, x, y))


def test_a_learning_rate_comes_back_as_the_number_it_is() -> None:
    def step(model, optimizer, x, y):
        return {"loss": mlp.train_step(model, optimizer, x, y), "lr": optimizer.param_groups[0]["lr"]}

    example = mlp.setup()
    train_step = spmd.compile(step, ranks=2)
    for rate in (0.25, 0.125):
        example["optimizer"].param_groups[0]["lr"] = rate
        result = train_step(example["model"], example["optimizer"], *example["args"])
        assert type(result["lr"]) is float and result["lr"] == rate
    assert train_step.compiles == 1


@pytest.mark.filterwarnings("ignore::spmd.remarks.CompilerWarning")
def test_an_average_in_frozen_parameters() -> None:
    """A rank has other elements of the averages than of the parameters."""
    def step(model, optimizer, x, y):
        loss = mlp.train_step(model["net"], optimizer, x, y)
        with torch.no_grad():
            for average, parameter in zip(model["average"].parameters(), model["net"].parameters()):
                average.lerp_(parameter, 0.1)
        return loss

    example = mlp.setup()
    model = torch.nn.ModuleDict({"net": example["model"], "average": copy.deepcopy(example["model"]).requires_grad_(False)})
    twin, twin_optimizer = copy.deepcopy((model, example["optimizer"]))
    compiled = spmd.compile(step, ranks=2)
    for _ in range(2):
        loss = compiled(model, example["optimizer"], *example["args"])
        torch.testing.assert_close(loss, step(twin, twin_optimizer, *example["args"]), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(model.state_dict(), twin.state_dict(), rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore::spmd.remarks.Remark", "ignore::spmd.remarks.CompilerWarning",
                            "ignore:the step does not update")
def test_a_parameter_that_trains_later() -> None:
    """Its optimizer state starts then, that of the others goes on."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(12, 8), torch.nn.GELU(), torch.nn.Linear(8, 6))
    model[0].requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    train_step = spmd.compile(mlp.train_step, ranks=2)
    for step, (x, y) in enumerate(mlp.setup(steps=4)["reference"]):
        if step == 2:
            model[0].requires_grad_(True)
            twin[0].requires_grad_(True)
        loss, expected = train_step(model, optimizer, x, y), mlp.train_step(twin, twin_optimizer, x, y)
        chain = (step + 1) * linear_chain(8, 12, 8, 6)
        assert is_same_loss(loss, expected, chain)
    assert_same_parameters(model, twin, chain)
    for p, q in zip(model.parameters(), twin.parameters()):
        assert float(optimizer.state[p]["step"]) == float(twin_optimizer.state[q]["step"])
        squares = (o.state[t]["exp_avg_sq"] for o, t in ((optimizer, p), (twin_optimizer, q)))
        assert relative(*squares) < 2 * rounding(chain)  # a square is off by twice as much
