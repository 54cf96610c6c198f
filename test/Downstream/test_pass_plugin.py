"""Passes of a plug-in (Mypasses.cpp), which knows no header of this project, behind a phase: by command line and Python."""
import os
import subprocess
from pathlib import Path

import pytest
import torch

import spmd

BIN = Path(os.environ["SPMD_BIN"])
PLUGIN = f"--load-pass-plugin={BIN.parent / 'lib' / 'libSpmdTestPasses.so'}"
HALF = "mylib-scale-gradients{factor=0.5}"
BATCH = torch.linspace(-1, 1, 30).reshape(6, 5), torch.linspace(1, -1, 18).reshape(6, 3)


def train_step(model, optimizer, x, y):
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def make(lr: float):
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3))
    return model, torch.optim.SGD(model.parameters(), lr=lr)


@pytest.fixture(scope="module")
def step(tmp_path_factory):
    """With the losses of half the learning rate, which is what half the gradients make of plain SGD."""
    batches = [BATCH] * 4
    package = spmd.capture(train_step, *make(0.4), *BATCH, reference=batches)
    half = spmd.capture(train_step, *make(0.2), *BATCH, reference=batches).reference
    package.reference |= {name: value for name, value in half.items() if not name.startswith("hyper")}
    return package.save(tmp_path_factory.mktemp("step") / "mlp.step")


def compile_step(step, *words):
    return subprocess.run([BIN / "spmd-compile", step, "--ranks=2", "--quiet", *map(str, words)], capture_output=True, text=True)


@pytest.mark.parametrize("phase", ["import", "units", "partition"])
def test_behind_a_phase(step, tmp_path, phase):
    """Before the partition and behind it the same is computed; the passes are in what --dump-ir shows of the phase."""
    done = compile_step(step, "-o", tmp_path / "a.spmd", PLUGIN, f"--pipeline-after={phase}:{HALF}", f"--dump-ir={tmp_path}")
    assert done.returncode == 0, done.stderr
    assert "aten.mul.Scalar" in next(tmp_path.glob(f"*-{phase}.mlir")).read_text()
    check = [BIN / "spmd-run", tmp_path / "a.spmd", "--check", "--quiet"]
    done = subprocess.run(check, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert compile_step(step, "-o", tmp_path / "a.spmd").returncode == 0
    assert subprocess.run(check, capture_output=True, text=True).returncode == 1, "without the pass it is another training"


def test_several_in_order(step, tmp_path):
    passes = ["--pipeline-after=partition:mylib-scale-gradients{factor=4.0},cse", f"--pipeline-after=partition:{HALF}",
              "--pipeline-after=decompose:cse", "--pipeline-after=collectives:canonicalize,cse",
              "--pipeline-after=partition:mylib-scale-gradients{factor=0.25}", "--pipeline-after=plan:cse"]
    done = compile_step(step, "-o", tmp_path / "a.spmd", PLUGIN, *passes)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([BIN / "spmd-run", tmp_path / "a.spmd", "--check", "--quiet"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("words, message", [
    (["--pipeline-after=partitoin:cse"], "--pipeline-after=partitoin: expected import, units, partition, decompose, "
                                         "collectives, kernels, plan, artifact"),
    (["--pipeline-after=artifact:cse"], "the last phase that passes can follow is plan"),
    (["--pipeline-after=partition:nonsense"], "'nonsense' does not refer to a registered pass"),
    (["--pipeline-after=partition:"], "expected passes behind the phase"),
    (["--pipeline-after=partition:mylib-scale-gradients{facter=1}", PLUGIN], "no such option facter"),
    (["--pipeline-after=plan:cse", "--compile-to=partition"], "--compile-to=partition ends before"),
    (["--load-pass-plugin=nowhere.so"], "nowhere.so"),
    (["--pipeline-after=decompose:mylib-scale-gradients", PLUGIN], "has no update of SGD whose gradients could be scaled"),
    (["--pipeline-after=partition:mylib-mistake-units", PLUGIN, "--policy=class:Linear"],
     "the passes of --pipeline-after=partition run in this phase"),
])
def test_mistakes(step, tmp_path, words, message):
    done = compile_step(step, "-o", tmp_path / "a.spmd", *words)
    assert done.returncode == 2 and message in done.stderr, done.stderr
    assert not (tmp_path / "a.spmd").exists()


@pytest.mark.parametrize("options", [
    {"options": [PLUGIN, f"--pipeline-after=partition:{HALF}"]},
    {"options": [PLUGIN], "passes": [HALF]},
    {"options": [PLUGIN, "--pipeline-after=import:mylib-scale-gradients{factor=0.25}", "--pipeline-after=kernels:cse"],
     "passes": [lambda program: None, "mylib-scale-gradients{factor=2.0},cse"]},
], ids=["option", "name", "both"])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_from_python(ranks, options):
    model, optimizer = make(0.4)
    twin, twin_optimizer = make(0.2)
    call = spmd.compile(train_step, ranks=ranks, **options)
    for _ in range(3):
        assert call(model, optimizer, *BATCH).item() == pytest.approx(
            train_step(twin, twin_optimizer, *BATCH).item(), rel=1e-6)
    torch.testing.assert_close(model.state_dict(), twin.state_dict(), rtol=1e-6, atol=1e-6)


def test_mistakes_from_python():
    model, optimizer = make(0.4)
    with pytest.raises(spmd.PassError, match="pass 'nonsense'.*\n.*does not refer to a registered pass"):
        spmd.compile(train_step, passes=["nonsense"])(model, optimizer, *BATCH)
    with pytest.raises(spmd.PassError, match="pass 'mylib-mistake-units' gave a program that spmd-verify-partition refuses"):
        spmd.compile(train_step, passes=["mylib-mistake-units"], options=[PLUGIN],
                     policy="class:Linear", ranks=2)(model, optimizer, *BATCH)
