"""Training from the command line: data in any form, schedules as PyTorch's, checkpoints that a run goes on from."""
from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn
from torch.optim import lr_scheduler as lrs

sys.path.insert(0, str(Path(__file__).parents[2] / "Python"))
import spmd  # noqa: E402
from step_check import tool  # noqa: E402

TOKENS, LENGTH, ROWS = 64, 16, 6


class Net(nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.embed, self.fc, self.out = nn.Embedding(TOKENS, 24), nn.Linear(24, 48), nn.Linear(48, TOKENS)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.out(self.dropout(F.gelu(self.fc(self.embed(x)))))


def loss_of(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def train_step(model, optimizer, x, y):
    loss = loss_of(model, x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        return loss_of(model, x, y)


def setup(dropout: float = 0.1):
    torch.manual_seed(0)
    model = Net(dropout)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batch():
    return torch.zeros(ROWS, LENGTH, dtype=torch.int64), torch.zeros(ROWS, LENGTH, dtype=torch.int64)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Artifacts of one step for 1, 2 and 3 ranks, one that evaluates, one without dropout, and tokens."""
    place = tmp_path_factory.mktemp("training")
    for name, dropout, options in (("drop", 0.1, {"scheduled_options": ["betas.0"]}), ("plain", 0.0, {})):
        model, optimizer = setup(dropout)
        spmd.capture(train_step, model, optimizer, *batch(), **options).save(place / f"{name}.step")
    spmd.capture(evaluate, setup()[0], *batch()).save(place / "eval.step")
    for step, ranks in (("drop", 1), ("drop", 2), ("drop", 3), ("plain", 2), ("eval", 2)):
        subprocess.run([tool("spmd-compile"), place / f"{step}.step", f"--ranks={ranks}", "--quiet", "-o",
                        place / f"{step}{ranks}.spmd"], check=True)
    rng = np.random.default_rng(0)
    tokens = np.zeros(5000, np.uint16)
    for i in range(1, len(tokens)):
        tokens[i] = (7 * tokens[i - 1] + 3 + (rng.random() < 0.1) * rng.integers(TOKENS)) % TOKENS
    tokens.tofile(place / "train.bin")
    tokens[:1000].tofile(place / "val.bin")
    return place


def run(folder: Path, artifact: str, *options: str, code: int = 0) -> str:
    done = subprocess.run([tool("spmd-run"), folder / artifact, *map(str, options)], cwd=folder, capture_output=True,
                          text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def losses(text: str) -> dict[int, str]:
    return {int(step): loss for step, loss in re.findall(r"^ *(\d+) +(\d+\.\d+) ", text, re.M)}


# -- Data --------------------------------------------------------------------------------------------------------------

def eager_losses(batches) -> list[float]:
    model, optimizer = setup(0.0)
    return [train_step(model, optimizer, x, y).item() for x, y in batches]


def as_written(path: Path, array: np.ndarray, key: str) -> None:
    if path.suffix == ".npy":
        np.save(path, array)
    else:
        save_file({key: torch.from_numpy(array)}, path)


@pytest.mark.parametrize("suffix, dtype", [("npy", np.int64), ("npy", np.uint16), ("safetensors", np.int32)])
@pytest.mark.parametrize("form", ["batches", "samples"])
def test_arrays_in_order_train_as_eager(folder, tmp_path, suffix: str, dtype, form: str) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, TOKENS, (2, 5, ROWS, LENGTH))
    shape = x.shape if form == "batches" else (5 * ROWS, LENGTH)
    for name, array in (("x", x), ("y", y)):
        as_written(tmp_path / f"{name}.{suffix}", array.reshape(shape).astype(dtype), name)
    data = ",".join(f"{name}={tmp_path}/{name}.{suffix}" for name in ("x", "y"))
    order = [] if form == "batches" else ["--order=sequential"]
    text = run(folder, "plain2.spmd", f"--data={data}", *order)
    expected = eager_losses([(torch.from_numpy(a), torch.from_numpy(b)) for a, b in zip(x, y)])
    assert list(losses(text)) == [0, 1, 2, 3, 4]  # an epoch
    np.testing.assert_allclose([float(loss) for loss in losses(text).values()], expected, rtol=2e-5)


class Recorder(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))


def record(model, optimizer, x, y):
    """A step whose outputs are its batch."""
    (model.weight * 1.0).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    return x.double().sum() + 1e6 * (y - x).double().sum()


def windows(tmp_path: Path, *options: str, tokens: np.ndarray, length: int = 4) -> list[list[float]]:
    """Sums of the tokens of each step's only row, and of what the next tokens add to them."""
    model = Recorder()
    x = torch.zeros(1, length, dtype=torch.int64)
    if not (tmp_path / "record.spmd").exists():
        spmd.capture(record, model, torch.optim.SGD(model.parameters(), lr=0.1), x, x).save(tmp_path / "record.step")
        subprocess.run([tool("spmd-compile"), tmp_path / "record.step", "--quiet", "-o", tmp_path / "record.spmd"], check=True)
    if not (tmp_path / "t.bin").exists():
        tokens.tofile(tmp_path / "t.bin")
    run(tmp_path, "record.spmd", "--data=t.bin", f"--log={tmp_path / 'log.jsonl'}", *options)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    (tmp_path / "log.jsonl").unlink()
    return [line["loss"] for line in lines]


@pytest.mark.parametrize("dtype, header", [(np.uint16, None), (np.uint32, None), (np.uint16, (20240520, 1)),
                                           (np.uint32, (20240801, 7))])
def test_windows_of_tokens(tmp_path, dtype, header) -> None:
    """Each epoch has every window once, in an order of its own; the second input has the tokens after the first's."""
    tokens = np.arange(41, dtype=dtype) ** 2
    if header:
        start = np.zeros(256, np.int32)
        start[:3] = *header, len(tokens)
        (tmp_path / "t.bin").write_bytes(start.tobytes() + tokens.tobytes())
    options = [] if header or dtype == np.uint16 else ["--token-dtype=uint32"]
    expected = {}
    for begin in range(37):  # of every window: what the step's loss is
        x, y = tokens[begin:begin + 4].astype(float), tokens[begin + 1:begin + 5].astype(float)
        expected[x.sum() + 1e6 * (y - x).sum()] = begin
    sequential = windows(tmp_path, "--order=sequential", "--steps=9", *options, tokens=tokens)
    assert [expected[loss] for loss in sequential] == [0, 4, 8, 12, 16, 20, 24, 28, 32]
    orders = []
    for seed in (1, 2):
        begins = [expected[loss] for loss in windows(tmp_path, f"--seed={seed}", "--steps=27", *options, tokens=tokens)]
        for epoch in (begins[:9], begins[9:18], begins[18:]):
            first = min(epoch)
            assert sorted(epoch) == list(range(first, first + 36, 4)) and 0 <= first <= 4
            orders.append(epoch)
    assert len({tuple(order) for order in orders}) == 6
    assert orders[0] != sorted(orders[0])


def test_an_input_without_samples_is_the_same_in_every_step(tmp_path) -> None:
    def scaled(model, optimizer, x, scale):
        loss = (model.weight * (x * scale).sum()).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return (x * scale).sum() + 0 * loss.detach()

    model = Recorder()
    spmd.capture(scaled, model, torch.optim.SGD(model.parameters(), lr=0.1), torch.zeros(2, 3), torch.zeros(3),
                 batch_dims={"scale": None}).save(tmp_path / "s.step")
    subprocess.run([tool("spmd-compile"), tmp_path / "s.step", "--quiet", "--ranks=2", "-o", tmp_path / "s.spmd"], check=True)
    x, scale = np.random.default_rng(0).random((3, 2, 3), np.float32), np.array([1, 10, 100], np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "scale.npy", scale)
    text = run(tmp_path, "s.spmd", "--data=x=x.npy,scale=scale.npy", "--steps=4")
    np.testing.assert_allclose([float(v) for v in losses(text).values()],
                               [(x[i % 3] * scale).sum() for i in range(4)], rtol=1e-6)
    assert "data: 3 batches, sequential (the same in every step: scale), 3 steps per epoch" in text


# -- Schedules ---------------------------------------------------------------------------------------------------------

SCHEDULES = {
    "constant:factor=0.25,total_iters=100": lambda o: lrs.ConstantLR(o, 0.25, 100),
    "linear:start_factor=0.1,end_factor=0.5,total_iters=300": lambda o: lrs.LinearLR(o, 0.1, 0.5, 300),
    "warmup:total_iters=50": lambda o: lrs.LinearLR(o, 1 / 50, 1.0, 50),
    "step:step_size=70,gamma=0.7": lambda o: lrs.StepLR(o, 70, 0.7),
    "multistep:milestones=30+80+80,gamma=0.3": lambda o: lrs.MultiStepLR(o, [30, 80, 80], 0.3),
    "exponential:gamma=0.995": lambda o: lrs.ExponentialLR(o, 0.995),
    "polynomial:total_iters=700,power=1.5": lambda o: lrs.PolynomialLR(o, 700, 1.5),
    "cosine:T_max=333,eta_min=1e-5": lambda o: lrs.CosineAnnealingLR(o, 333, 1e-5),
    "restarts:T_0=60,T_mult=2,eta_min=1e-5": lambda o: lrs.CosineAnnealingWarmRestarts(o, 60, 2, 1e-5),
    "onecycle:max_lr=0.02,total_steps=1000": lambda o: lrs.OneCycleLR(o, 0.02, 1000),
    "onecycle:max_lr=0.02,total_steps=1000,three_phase=true,anneal_strategy=linear,pct_start=0.2":
        lambda o: lrs.OneCycleLR(o, 0.02, 1000, three_phase=True, anneal_strategy="linear", pct_start=0.2),
    "sequential(warmup:total_iters=100;100;cosine:T_max=400;600;exponential:gamma=0.99)":
        lambda o: lrs.SequentialLR(o, [lrs.LinearLR(o, 1 / 100, 1.0, 100), lrs.CosineAnnealingLR(o, 400),
                                       lrs.ExponentialLR(o, 0.99)], [100, 600]),
    "chained(constant:factor=0.5,total_iters=40;exponential:gamma=0.999)":
        lambda o: lrs.ChainedScheduler([lrs.ConstantLR(o, 0.5, 40), lrs.ExponentialLR(o, 0.999)], o),
    # What is in each other begins otherwise than what is not: each object takes a step when it is made.
    "sequential(chained(warmup:total_iters=50;exponential:gamma=0.99);300;polynomial:total_iters=600)":
        lambda o: lrs.SequentialLR(o, [lrs.ChainedScheduler([lrs.LinearLR(o, 1 / 50, 1.0, 50), lrs.ExponentialLR(o, 0.99)], o),
                                       lrs.PolynomialLR(o, 600)], [300]),
    "chained(warmup:total_iters=9;sequential(step:step_size=50,gamma=0.5;130;restarts:T_0=30,eta_min=1e-4))":
        lambda o: lrs.ChainedScheduler([lrs.LinearLR(o, 1 / 9, 1.0, 9), lrs.SequentialLR(
            o, [lrs.StepLR(o, 50, 0.5), lrs.CosineAnnealingWarmRestarts(o, 30, eta_min=1e-4)], [130])], o),
    "sequential(sequential(linear:total_iters=7;20;exponential:gamma=0.999);400;multistep:milestones=0+50,gamma=0.5)":
        lambda o: lrs.SequentialLR(o, [lrs.SequentialLR(o, [lrs.LinearLR(o, total_iters=7), lrs.ExponentialLR(o, 0.999)], [20]),
                                       lrs.MultiStepLR(o, [0, 50], 0.5)], [400]),
}


@pytest.mark.parametrize("text", SCHEDULES)
def test_schedules_are_those_of_pytorch(folder, tmp_path, text: str) -> None:
    run(folder, "drop1.spmd", "--data=train.bin", "--steps=1000", f"--lr-schedule={text}", "--quiet",
        f"--log={tmp_path / 'log.jsonl'}")
    found = [json.loads(line)["lr"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    optimizer = torch.optim.AdamW([nn.Parameter(torch.zeros(1))], lr=1e-2)
    schedule, expected = SCHEDULES[text](optimizer), []
    for _ in range(1000):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_cycle_moves_the_momentum(folder, tmp_path) -> None:
    """Losses of eager with OneCycleLR, whose cycle of beta1 without inputs is an error."""
    model, optimizer = setup(0.0)
    spmd.capture(train_step, model, optimizer, *batch(), scheduled_options=["betas.0"]).save(tmp_path / "c.step")
    subprocess.run([tool("spmd-compile"), tmp_path / "c.step", "--quiet", "-o", tmp_path / "c.spmd"], check=True)
    x, y = np.random.default_rng(1).integers(0, TOKENS, (2, 20, ROWS, LENGTH))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    cycle = "--lr-schedule=onecycle:max_lr=0.1,total_steps=21"
    text = run(tmp_path, "c.spmd", "--data=x=x.npy,y=y.npy", cycle)
    schedule, expected = lrs.OneCycleLR(optimizer, 0.1, 21), []
    for a, b in zip(x, y):
        expected.append(train_step(model, optimizer, torch.from_numpy(a), torch.from_numpy(b)).item())
        schedule.step()
    np.testing.assert_allclose([float(v) for v in losses(text).values()], expected, rtol=1e-4)
    error = run(folder, "plain2.spmd", "--data=train.bin", cycle, code=2)
    assert "moves the momentum, which is a constant of this artifact" in error and "cycle_momentum=false" in error
    run(folder, "plain2.spmd", "--data=train.bin", "--steps=2", cycle + ",cycle_momentum=false")


# -- Going on ----------------------------------------------------------------------------------------------------------

TRAIN = ("--data=train.bin", "--seed=3", "--steps=20", "--lr-schedule=onecycle:max_lr=0.02,total_steps=20")


def state_of(checkpoint: Path) -> dict[str, np.ndarray]:
    with spmd.checkpoint.Checkpoint(checkpoint) as opened:
        return {key: opened.read(key) for key in opened.tensors}


@pytest.mark.parametrize("kind", ["full", "sharded"])
def test_a_resumed_run_is_the_uninterrupted_one(folder, tmp_path, kind: str) -> None:
    """Bit by bit, in the middle of a schedule, with dropout; on other ranks as closely as those are."""
    whole = losses(run(folder, "drop2.spmd", *TRAIN, f"--save={tmp_path / 'all'}", "--save-every=7", "--keep=2",
                       f"--save-kind={kind}"))
    assert sorted(p.name for p in (tmp_path / "all").iterdir()) == ["step-00000014", "step-00000020"]
    files = sorted(p.name for p in (tmp_path / "all/step-00000020").iterdir())
    assert files == ["index.json", *(["rank-00000.safetensors", "rank-00001.safetensors", "run.json"] if kind == "sharded"
                                     else ["run.json", "state.safetensors"])]
    text = run(folder, "drop2.spmd", f"--resume={tmp_path}/all/step-00000014", "--steps=20", f"--save={tmp_path / 'again'}")
    assert losses(text) == {step: loss for step, loss in whole.items() if step >= 14}
    last = [state_of(tmp_path / name / "step-00000020") for name in ("all", "again")]
    assert last[0].keys() == last[1].keys() and "optimizer/exp_avg/fc.weight" in last[0]
    assert all(np.array_equal(last[0][name], last[1][name]) for name in last[0])
    for ranks in (1, 3):
        other = losses(run(folder, f"drop{ranks}.spmd", f"--resume={tmp_path}/all/step-00000014", "--steps=20"))
        for step, loss in other.items():
            assert abs(float(loss) - float(whole[step])) <= 1e-5 * float(whole[step]), (ranks, step)


@pytest.mark.parametrize("kind", ["full", "sharded"])
def test_saving_beside_the_run(folder, tmp_path, kind: str) -> None:
    """The same losses and the same files as when the run waits, each of the state at its step; the copy's size is said."""
    texts = {mode: run(folder, "drop2.spmd", *TRAIN, f"--save={tmp_path / mode}", "--save-every=3", f"--save-mode={mode}",
                       f"--save-kind={kind}") for mode in ("wait", "beside")}
    assert losses(texts["wait"]) == losses(texts["beside"])
    (said,) = re.findall(r"from a copy of the state: ([\d,]+) bytes", texts["beside"])
    manifest = json.loads((folder / "drop2.spmd/manifest.json").read_text())
    assert int(said.replace(",", "")) == 2 * manifest["arena"]["state_bytes"]
    assert texts["beside"].count("saved ") == 7
    names = sorted(p.name for p in (tmp_path / "wait").iterdir())
    assert names == sorted(p.name for p in (tmp_path / "beside").iterdir()) and len(names) == 7
    for name in names:
        files = sorted(p.name for p in (tmp_path / "wait" / name).iterdir())
        for file in files:
            if file != "run.json":  # has the time
                assert (tmp_path / "wait" / name / file).read_bytes() == (tmp_path / "beside" / name / file).read_bytes()


def start_processes(folder, *options: str, data: bool = True, output: int = subprocess.DEVNULL) -> list[subprocess.Popen]:
    """A run of two processes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    return [subprocess.Popen([tool("spmd-run"), folder / "drop2.spmd", *[f"--data={folder}/train.bin"] * data, *options,
                              f"--rank={rank}", "--world-size=2", f"--address={address}"], stdout=output,
                             stderr=subprocess.PIPE, text=True) for rank in range(2)]


def test_two_processes_train_on_data_as_threads_do(folder, tmp_path) -> None:
    """Each reads its own rows; losses and evaluations to the bit."""
    options = ("--seed=3", "--steps=20", f"--eval={folder}/eval2.spmd", f"--val={folder}/val.bin", "--eval-every=7")
    threads = run(folder, "drop2.spmd", "--data=train.bin", *options)
    jobs = start_processes(folder, *options, output=subprocess.PIPE)
    said = [job.communicate(timeout=60) for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], said
    evaluated = re.compile(r"after step (\d+): validation loss ([\d.]+)")
    assert losses(said[0][0]) == losses(threads) and len(losses(threads)) == 20
    assert evaluated.findall(said[0][0]) == evaluated.findall(threads) != []


def test_saving_a_whole_file_beside_several_processes_is_refused(folder, tmp_path) -> None:
    jobs = start_processes(folder, f"--save={tmp_path}", "--save-mode=beside")
    said = [job.communicate(timeout=60)[1] for job in jobs]
    assert all(job.returncode != 0 for job in jobs)
    assert any("--save-mode=beside in several processes is for checkpoints with a file for each rank\n  hint: "
               "--save-kind=sharded; or --save-mode=wait" in text for text in said), said


def test_version_1_is_read(folder, tmp_path) -> None:
    """As it was before there was an index: one file, with one hash."""
    whole = losses(run(folder, "drop2.spmd", *TRAIN, f"--save={tmp_path}", "--save-every=14"))
    checkpoint = tmp_path / "step-00000014"
    now, data = json.loads((checkpoint / "run.json").read_text()), (checkpoint / "state.safetensors").read_bytes()
    old = {name: now[name] for name in ("format", "step", "program", "ranks", "time", "data", "schedule")}
    old |= {"version": 1, "files": {"state.safetensors": {"bytes": len(data), "hash": fnv(data)}}}
    old["hash"] = fnv(json.dumps(old, separators=(",", ":")).encode())
    (checkpoint / "run.json").write_text(json.dumps(old))
    (checkpoint / "index.json").unlink()
    text = run(folder, "drop2.spmd", f"--resume={checkpoint}", "--steps=20")
    assert losses(text) == {step: loss for step, loss in whole.items() if step >= 14}
    (checkpoint / "state.safetensors").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert "is damaged: '" in run(folder, "drop2.spmd", f"--resume={checkpoint}", "--steps=20", code=2)


def test_version_2_is_read(folder, tmp_path) -> None:
    """Its blocks have other hashes."""
    whole = losses(run(folder, "drop2.spmd", *TRAIN, f"--save={tmp_path}", "--save-every=14", "--save-kind=sharded"))
    checkpoint = tmp_path / "step-00000014"
    index, now = (json.loads((checkpoint / name).read_text()) for name in ("index.json", "run.json"))
    assert index.pop("block_hash") == "xxh3" and now["version"] == 3
    for file in index["files"]:
        content = (checkpoint / file["name"]).read_bytes()
        file["blocks"] = "".join(fnv(content[at:at + 2 ** 20]) for at in range(0, len(content), 2 ** 20))
    text = json.dumps(index, separators=(",", ":")) + "\n"
    (checkpoint / "index.json").write_text(text)
    now |= {"version": 2, "index": {"bytes": len(text), "hash": fnv(text.encode())}}
    del now["hash"]
    now["hash"] = fnv(json.dumps(now, separators=(",", ":")).encode())
    (checkpoint / "run.json").write_text(json.dumps(now))
    rest = losses(run(folder, "drop2.spmd", f"--resume={checkpoint}", "--steps=20"))
    assert rest == {step: loss for step, loss in whole.items() if step >= 14}
    data = (checkpoint / "rank-00001.safetensors").read_bytes()
    (checkpoint / "rank-00001.safetensors").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert "the file was changed after it was saved" in run(folder, "drop2.spmd", f"--resume={checkpoint}", "--steps=20",
                                                            code=2)


def fnv(data: bytes) -> str:
    value = 14695981039346656037
    for byte in data:
        value = (value ^ byte) * 1099511628211 % 2 ** 64
    return f"{value:016x}"


def test_what_does_not_fit_is_listed(folder, tmp_path) -> None:
    run(folder, "drop2.spmd", *TRAIN[:3], f"--save={tmp_path}")
    error = run(folder, "plain2.spmd", f"--resume={tmp_path}", "--steps=22", code=2)
    assert "does not fit the step, nothing was loaded: unexpected 'rng/seed', 'rng/step'\n  hint: strict=False" in error
    assert list(losses(run(folder, "plain2.spmd", f"--resume={tmp_path}", "--steps=22", "--strict=off"))) == [20, 21]


def test_runs_do_not_mix(folder, tmp_path) -> None:
    """A new run, and one that goes back, do not save beside later checkpoints."""
    run(folder, "drop2.spmd", *TRAIN, f"--save={tmp_path}", "--save-every=10")
    for options, first in ((TRAIN, 0), ((f"--resume={tmp_path}/step-00000010", "--steps=12"), 10)):
        error = run(folder, "drop2.spmd", *options, f"--save={tmp_path}", code=2)
        assert f"has a checkpoint of step 20, and this run begins at step {first}" in error and "hint: --resume=" in error
    on = (f"--resume={tmp_path}", "--steps=22", f"--save={tmp_path}")
    assert "total_steps=20' has 20 steps, and the run 22" in run(folder, "drop2.spmd", *on, code=2)
    run(folder, "drop2.spmd", *on, "--lr-schedule=step:step_size=30")


def test_a_single_file_has_the_whole_state(folder, tmp_path) -> None:
    """--save=NAME.safetensors and --weights: Adam's moments and the dropout's counter go along."""
    x, y = np.random.default_rng(1).integers(0, TOKENS, (2, 6, ROWS, LENGTH))
    for name, array in (("x", x), ("y", y), ("x2", x[3:]), ("y2", y[3:])):
        np.save(tmp_path / f"{name}.npy", array)
    data = f"--data=x={tmp_path}/x.npy,y={tmp_path}/y.npy"
    whole = losses(run(folder, "drop2.spmd", data))
    run(folder, "drop2.spmd", data, "--steps=3", f"--save={tmp_path / 'half.safetensors'}")
    rest = losses(run(folder, "drop2.spmd", data.replace("x.npy", "x2.npy").replace("y.npy", "y2.npy"),
                      f"--weights={tmp_path / 'half.safetensors'}"))
    assert list(rest.values()) == list(whole.values())[3:]


def test_checkpoints_are_plain_pytorch(folder, tmp_path) -> None:
    run(folder, "drop2.spmd", *TRAIN, f"--save={tmp_path}")
    saved = load_file(tmp_path / "step-00000020/state.safetensors")
    model, _ = setup()
    model.load_state_dict({name: value for name, value in saved.items() if "/" not in name})
    assert json.loads((tmp_path / "step-00000020/run.json").read_text())["step"] == 20


def test_sigterm_saves(folder, tmp_path) -> None:
    process = subprocess.Popen([tool("spmd-run"), folder / "drop2.spmd", f"--data={folder}/train.bin", "--quiet",
                                "--steps=100000000", f"--save={tmp_path}"], stdout=subprocess.PIPE, text=True)
    assert "ranks" in process.stdout.readline()
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    (checkpoint,) = tmp_path.iterdir()
    step = json.loads((checkpoint / "run.json").read_text())["step"]
    text = run(folder, "drop2.spmd", f"--resume={tmp_path}", f"--steps={step + 1}")
    assert list(losses(text)) == [step]


@pytest.mark.parametrize("asked", [0, 1])
def test_two_processes_save_when_one_gets_sigterm(folder, tmp_path, asked: int) -> None:
    """And two others go on, with the data of the run."""
    jobs = start_processes(folder, "--quiet", "--steps=100000000", f"--save={tmp_path}", "--save-every=100")
    await_a_checkpoint(tmp_path)
    jobs[asked].send_signal(signal.SIGTERM)
    assert [job.communicate(timeout=30)[1] for job in jobs] == ["", ""] and [job.returncode for job in jobs] == [0, 0]
    step = max(int(p.name[5:]) for p in tmp_path.glob("step-*"))
    again = [subprocess.run([tool("spmd-run"), folder / "drop2.spmd", f"--resume={tmp_path}", f"--steps={step + 2}"],
                            capture_output=True, text=True).stdout]
    jobs = start_processes(folder, f"--resume={tmp_path}", f"--steps={step + 2}", data=False, output=subprocess.PIPE)
    again.append([job.communicate(timeout=30) for job in jobs][0][0])
    assert losses(again[1]) == losses(again[0]) and len(losses(again[0])) == 2


def heed_interrupts() -> None:
    """A shell starts what runs in the background with Ctrl-C ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def await_a_checkpoint(place: Path) -> None:
    begin = time.monotonic()
    while not list(place.glob("step-*")) and time.monotonic() < begin + 30:
        time.sleep(0.01)


@pytest.mark.parametrize("number", range(int(os.environ.get("SPMD_KILLS", 5))))
def test_killed_at_any_moment_it_resumes(folder, tmp_path, number: int) -> None:
    process = subprocess.Popen([tool("spmd-run"), folder / "drop2.spmd", f"--data={folder}/train.bin", "--quiet",
                                "--steps=100000000", f"--save={tmp_path}", "--save-every=1", "--keep=3",
                                f"--save-kind={('full', 'sharded')[number % 2]}",
                                f"--save-mode={('wait', 'beside')[number // 2 % 2]}"],
                               stdout=subprocess.DEVNULL, preexec_fn=heed_interrupts)
    await_a_checkpoint(tmp_path)
    time.sleep(random.Random(number).random() / 4)
    how = (signal.SIGKILL, signal.SIGINT)[number % 3 == 1]
    process.send_signal(how)
    assert process.wait(5) == -how
    newest = max(int(p.name[5:]) for p in tmp_path.glob("step-*"))
    assert f"{newest:,} steps done" in run(folder, "drop2.spmd", f"--resume={tmp_path}", f"--steps={newest + 1}",
                                           f"--save={tmp_path}")
    assert not list(tmp_path.glob(".saving-*"))


@pytest.mark.parametrize("number", range(int(os.environ.get("SPMD_KILLS", 4))))
def test_of_two_processes_one_or_both_killed_at_any_moment(folder, tmp_path, number: int) -> None:
    """The one that is left ends by itself, and says why; two others go on from the newest checkpoint, which is whole."""
    mode = ("wait", "beside")[number % 2]
    jobs = start_processes(folder, "--quiet", "--steps=100000000", f"--save={tmp_path}", "--save-every=1", "--keep=3",
                           "--save-kind=sharded", f"--save-mode={mode}", "--timeout=5")
    await_a_checkpoint(tmp_path)
    rng = random.Random(number)
    time.sleep(rng.random() / 4)
    killed = rng.sample(jobs, 1 + number // 2 % 2)
    for job in killed:
        job.kill()
    for job in jobs:
        said = job.communicate(timeout=30)[1]
        assert job.returncode == (-signal.SIGKILL if job in killed else 3), said
        assert job in killed or "error: " in said, said
    newest = max(int(p.name[5:]) for p in tmp_path.glob("step-*"))
    again = start_processes(folder, "--quiet", f"--resume={tmp_path}", f"--steps={newest + 1}", f"--save={tmp_path}",
                            "--save-kind=sharded")
    for job in again:
        assert job.communicate(timeout=60)[1] == "" and job.returncode == 0
    assert (tmp_path / f"step-{newest + 1:08d}").is_dir() and not list(tmp_path.glob(".saving-*"))


@pytest.mark.parametrize("kind", ["full", "sharded"])
def test_damage_is_found(folder, tmp_path, kind: str) -> None:
    """The newest checkpoint with a byte changed, or cut, or a file gone or another's: it is named, and the one before is
    taken."""
    run(folder, "drop2.spmd", *TRAIN, f"--save={tmp_path / 'good'}", "--save-every=10", f"--save-kind={kind}")
    names = sorted(p.name for p in (tmp_path / "good/step-00000020").iterdir())
    rng = random.Random(0)
    for number in range(int(os.environ.get("SPMD_DAMAGES", 20))):
        shutil.rmtree(tmp_path / "bad", ignore_errors=True)
        shutil.copytree(tmp_path / "good", tmp_path / "bad")
        file = tmp_path / "bad/step-00000020" / rng.choice(names)
        content = bytearray(file.read_bytes())
        where = rng.randrange(len(content))
        how = rng.random()
        if how < 0.3:
            content = content[:where]
        elif how < 0.4:
            content = bytearray((tmp_path / "bad/step-00000010" / file.name).read_bytes())
        else:
            content[where] ^= 1 << rng.randrange(8)
        if file.name == "run.json" and is_same(bytes(content), file.read_bytes()):
            continue  # another space
        file.write_bytes(content)
        if how > 0.95:
            file.unlink()
        done = subprocess.run([tool("spmd-run"), folder / "drop2.spmd", f"--resume={tmp_path / 'bad'}", "--steps=11"],
                              cwd=folder, capture_output=True, text=True, errors="replace")
        assert done.returncode == 0 and "10 steps done" in done.stdout, (number, where, done.stderr)
        assert re.search(r"checkpoint '.*step-00000020' is damaged: .*(safetensors|run.json|index.json)", done.stderr), done.stderr


def is_same(changed: bytes, original: bytes) -> bool:
    try:
        return json.loads(changed) == json.loads(original)
    except ValueError:
        return False


# -- Evaluation, logs, mistakes ----------------------------------------------------------------------------------------

def test_evaluation_is_the_loss_on_the_other_data(folder, tmp_path) -> None:
    text = run(folder, "drop2.spmd", *TRAIN, "--eval=eval2.spmd", "--val=val.bin", "--eval-every=8",
               f"--save={tmp_path}", f"--log={tmp_path / 'log.csv'}")
    found = dict(re.findall(r"after step (\d+): validation loss ([\d.]+)", text))
    assert list(found) == ["7", "15", "19"]
    saved = load_file(tmp_path / "step-00000020/state.safetensors")
    model, _ = setup()
    model.load_state_dict({name: value for name, value in saved.items() if "/" not in name})
    tokens = torch.from_numpy(np.fromfile(folder / "val.bin", np.uint16).astype(np.int64))
    rows = (len(tokens) - 1) // LENGTH
    steps = rows // ROWS
    x, y = (tokens[shift:shift + steps * ROWS * LENGTH].view(steps, ROWS, LENGTH) for shift in (0, 1))
    expected = sum(evaluate(model, a, b).item() for a, b in zip(x, y)) / steps
    assert abs(float(found["19"]) - expected) < 1e-5
    lines = (tmp_path / "log.csv").read_text().splitlines()
    assert lines[0] == "step,kind,loss,lr,seconds,items_per_second" and len(lines) == 1 + 20 + 3
    assert lines[-1].startswith("19,eval,")


@pytest.mark.parametrize("options, message", [
    ([], "there is nothing to train on: the step was captured without reference="),
    (["--check"], "--check compares with what eager PyTorch computed, and the step was captured without reference="),
    (["--check", "--data=train.bin"], "--check, which compares the recorded batches, and --data exclude each other"),
    (["--data=none.bin"], "cannot read 'none.bin': No such file"),
    (["--data=z=a.npy"], "'z' is no INPUT=FILE; inputs: x (i64[6, 16]), y (i64[6, 16])"),
    (["--data=x=short.npy,y=short.npy"], "'short.npy' has the shape [4, 3]; input 'x' takes samples [N, ...]"),
    (["--data=x=float.npy,y=float.npy"], "'float.npy' has float32 elements; input 'x' is i64"),
    (["--data=x=damaged.npy,y=damaged.npy"], "'damaged.npy': has 100 bytes of elements, its header says 768"),
    (["--data=x=one.npy,y=two.npy"], "'one.npy' has 1 batches, 'two.npy' has 2 batches"),
    (["--data=large.bin"], "input 'x': value 60000 at position [0, 0] is not a row id in [0, 64)"),
    (["--data=tiny.bin"], "'tiny.bin' has 10 tokens; a sample takes 17"),
    (["--data=train.bin", "--lr-schedule=cosin:T_max=3"], "'cosin' is none; allowed: constant, linear, warmup, step"),
    (["--data=train.bin", "--lr-schedule=cosine"], "schedule 'cosine': needs T_max"),
    (["--data=train.bin", "--lr-schedule=step:step_size=3,gam=2"], "has no argument 'gam'; it has step_size, gamma"),
    (["--data=train.bin", "--lr-schedule=sequential(constant;3)"], "expected sequential(SCHEDULE;STEP;SCHEDULE)"),
    (["--data=train.bin", "--lr-schedule=sequential(constant;3;chained(constant;linear))"], "write the parts of 'chained(constant;linear)' in its place"),
    (["--data=train.bin", "--lr-schedule=cosine:T_mx=3"], "has no argument 'T_mx'; it has T_max, eta_min"),
    (["--data=train.bin", "--lr-schedule=sequential(constant;3;linear"], "expected ')' at the end, which closes sequential("),
    (["--data=train.bin", "--steps=3", "--lr-schedule=onecycle:max_lr=0.01,total_steps=2,cycle_momentum=false"],
     "total_steps=2,cycle_momentum=false' has 2 steps, and the run 3"),
    (["--data=train.bin", "--eval=plain2.spmd", "--val=val.bin"],
     "--eval=plain2.spmd: its step updates parameters, so each batch would be evaluated with others"),
    (["--resume=nowhere"], "no checkpoint is in 'nowhere'"),
    (["--resume=nowhere", "--weights=x"], "--resume and --weights exclude each other"),
    (["--data=train.bin", "--save-mode=beside"], "--save-mode=beside needs --save=FOLDER"),
    (["--data=train.bin", "--save-kind=full"], "--save-kind needs --save=FOLDER"),
    (["--data=train.bin", "--save=a", "--save-kind=half"], "--save-kind: expected full, sharded, found half"),
    (["--data=train.bin", "--strict=off"], "--strict=off needs --resume"),
    (["--data=train.bin", "--keep=3"], "--keep needs --save=FOLDER"),
    (["--data=train.bin", "--val=val.bin"], "--val needs --eval=ARTIFACT"),
    (["--data=train.bin", "--log=a.txt"], "--log=a.txt: expected a name that ends in .jsonl or .csv"),
])
def test_mistakes(folder, options, message: str) -> None:
    np.save(folder / "short.npy", np.zeros((4, 3), np.int64))
    np.save(folder / "float.npy", np.zeros((2, ROWS, LENGTH), np.float32))
    np.save(folder / "one.npy", np.zeros((1, ROWS, LENGTH), np.int64))
    np.save(folder / "two.npy", np.zeros((2, ROWS, LENGTH), np.int64))
    np.save(folder / "damaged.npy", np.zeros((ROWS, LENGTH), np.int64))
    (folder / "damaged.npy").write_bytes((folder / "damaged.npy").read_bytes()[:228])
    np.full(1000, 60000, np.uint16).tofile(folder / "large.bin")
    np.zeros(10, np.uint16).tofile(folder / "tiny.bin")
    assert message in run(folder, "plain2.spmd", *options, code=2)
