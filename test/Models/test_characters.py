"""nanoGPT's character model trains from the command line: its data set by its own recipe, its batches to eager's losses,
and a file of its tokens to the same validation loss."""
from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from pipeline import find_tool
from torch.optim import lr_scheduler

import spmd
from spmd.philox import words

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from gpt2 import GPT, GPTConfig, train_step  # noqa: E402

LENGTH, ROWS = 64, 12  # the recipe for CPUs


def write_text() -> str:
    """About 100,000 characters: sentences of 300 words that nobody knows."""
    rng = random.Random(0)
    words = ["".join(rng.choice("eeetaoinshrdlu" if i % 2 else "tnshrdlcmwbpgk") for i in range(rng.randint(2, 8)))
             for _ in range(300)]
    lines, length = [], 0
    while length < 100_000:
        line = " ".join(rng.choice(words) for _ in range(rng.randint(3, 9))).capitalize() + rng.choice(".!?;") + "\n"
        lines.append(line)
        length += len(line)
    return "".join(lines)


def prepare(folder: Path) -> dict[str, np.ndarray]:
    """data/shakespeare_char/prepare.py."""
    text = write_text()
    numbers = {c: i for i, c in enumerate(sorted(set(text)))}
    split = int(0.9 * len(text))
    sets = {name: np.array([numbers[c] for c in part], np.uint16)
            for name, part in (("train", text[:split]), ("val", text[split:]))}
    for name, ids in sets.items():
        ids.tofile(folder / f"{name}.bin")
    return sets | {"vocabulary": np.array(sorted(numbers.values()))}


def philox(seed: int, epoch: int, index: int, stream: int) -> int:
    return int(words(seed, epoch, np.array(index), stream)[0])


def shuffled_windows(ids: np.ndarray, steps: int, seed: int):
    """[Note: order of data], include/spmd/Runtime/Run/DataSet.h, once more: what --order=shuffled gives each step."""
    windows = (len(ids) - 1) // LENGTH - 1
    spare = min(len(ids) - 1 - windows * LENGTH, LENGTH)
    bits = next(b for b in range(1, 32) if 4**b >= windows)

    def permute(index: int, epoch: int) -> int:
        while True:
            left, right = index >> bits, index & (2**bits - 1)
            for turn in range(6):
                left, right = right, left ^ (philox(seed, epoch, right, turn) & (2**bits - 1))
            index = left << bits | right
            if index < windows:
                return index

    for step in range(steps):
        begins = []
        for number in range(step * ROWS, (step + 1) * ROWS):
            epoch, index = divmod(number, windows)
            begins.append(philox(seed, epoch, 0, 1000) % (spare + 1) + permute(index, epoch) * LENGTH)
        yield cut(ids, begins)


def windows_in_order(ids: np.ndarray):
    for step in range((len(ids) - 1) // LENGTH // ROWS):
        yield cut(ids, range(step * ROWS * LENGTH, (step + 1) * ROWS * LENGTH, LENGTH))


def cut(ids: np.ndarray, begins) -> tuple[torch.Tensor, torch.Tensor]:
    return tuple(torch.stack([torch.from_numpy(ids[i + shift:i + shift + LENGTH].astype(np.int64)) for i in begins])
                 for shift in (0, 1))


def get_batch(ids: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """train.py, get_batch."""
    return cut(ids, torch.randint(len(ids) - LENGTH, (ROWS,)))


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        return torch.nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


def setup(vocabulary: int):
    torch.manual_seed(1337)
    model = GPT(GPTConfig(vocab=vocabulary, context=LENGTH, layers=4, heads=4, width=128))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)


SCHEDULE = "sequential(warmup:total_iters=100;100;cosine:T_max=400,eta_min=1e-5)"


def decay(optimizer):
    """The recipe's warm-up, and its decay in 500 steps, so that the last loss is no accident of the last batches."""
    warmup = lr_scheduler.LinearLR(optimizer, 1 / 100, 1.0, 100)
    return lr_scheduler.SequentialLR(optimizer, [warmup, lr_scheduler.CosineAnnealingLR(optimizer, 400, 1e-5)], [100])


def train(model, optimizer, schedule, batch) -> float:
    loss = train_step(model, optimizer, *batch).item()
    schedule.step()
    return loss


def run(folder: Path, *options: str) -> str:
    done = subprocess.run([find_tool("spmd-run"), *options], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_trains_as_eager(tmp_path, whole: bool) -> None:
    """200 batches of the recipe, then 500 steps of the file; a part of each in the suite."""
    count, steps = (200, 500) if whole else (40, 60)
    sets = prepare(tmp_path)
    model, optimizer = setup(len(sets["vocabulary"]))
    batches = [get_batch(sets["train"]) for _ in range(count)]
    spmd.capture(train_step, model, optimizer, *batches[0]).save(tmp_path / "train.step")
    spmd.capture(evaluate, setup(len(sets["vocabulary"]))[0], *batches[0]).save(tmp_path / "eval.step")
    for name in ("train", "eval"):
        subprocess.run([find_tool("spmd-compile"), tmp_path / f"{name}.step", "--ranks=2", "--policy=class:Block", "--quiet",
                        "-o", tmp_path / f"{name}.spmd"], check=True)
    for name, index in (("x", 0), ("y", 1)):
        np.save(tmp_path / f"{name}.npy", torch.stack([b[index] for b in batches]).numpy())
    text = run(tmp_path, "train.spmd", "--data=x=x.npy,y=y.npy", f"--lr-schedule={SCHEDULE}")
    ours = [float(loss) for loss in re.findall(r"^ *\d+ +(\d+\.\d+) ", text, re.M)]
    schedule = decay(optimizer)
    theirs = [train(model, optimizer, schedule, batch) for batch in batches]
    assert theirs[-1] < (0.75 if whole else 0.9) * theirs[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)

    model, optimizer = setup(len(sets["vocabulary"]))
    schedule = decay(optimizer)
    for x, y in shuffled_windows(sets["train"], steps, seed=7):
        train(model, optimizer, schedule, (x, y))
    expected = np.mean([evaluate(model, x, y).item() for x, y in windows_in_order(sets["val"])])
    run(tmp_path, "train.spmd", "--data=train.bin", f"--steps={steps}", "--seed=7", "--quiet", f"--lr-schedule={SCHEDULE}",
        "--eval=eval.spmd", "--val=val.bin", "--log=log.csv")
    found = float((tmp_path / "log.csv").read_text().splitlines()[-1].split(",")[2])
    assert abs(found - expected) < 0.02, (found, expected)
