"""Broken plans are refused, or train to the same bits for a reason that is listed.

A sample of the mutants here; all of them with SPMD_MUTANTS=2000 in the environment (some minutes), from another seed with
SPMD_MUTANTS_SEED. A mutant that escapes is printed with the command that makes it again; KEEP_MUTANTS=FOLDER keeps the
artifacts.
"""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT / "python-bindings"), str(ROOT / "test" / "Python"), str(ROOT / "test" / "Models")]

import own  # noqa: E402
from optimizer_cases import Case  # noqa: E402
from small_net import Block  # noqa: E402
from step_check import run, tool  # noqa: E402

import spmd  # noqa: E402


def accumulating_step(model, optimizer, first, second, labels):
    for x in (first, second):
        (model(x, labels) / 2).backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    optimizer.zero_grad()
    return norm


def microbatches_step(model, optimizer, xs, ys):
    total = 0
    for x, y in zip(xs, ys):
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / len(xs)
        loss.backward()
        total = total + loss.detach()
    optimizer.step()
    optimizer.zero_grad()
    return total


def tokens(*shape: int) -> torch.Tensor:
    return torch.randint(0, 37, shape)


def packages(folder: Path) -> dict[str, tuple[Path, str]]:
    """Step packages, each with its policy: GPT-2, a small Llama, accumulation in a step, a loop of which there is one
    iteration for all, a first step of its own."""
    torch.manual_seed(0)
    found = {"gpt2": (ROOT / "examples" / "gpt2-nano.step", "class:Block")}

    def capture(name: str, policy: str, step, model, optimizer, batches) -> None:
        package = spmd.capture(step, model, optimizer, *batches[0], reference=batches)
        package.save(folder / f"{name}.step")
        found[name] = (folder / f"{name}.step", policy)

    llama = own.Llama()
    capture("llama", "class:LlamaBlock", own.clipped_step, llama, torch.optim.AdamW(llama.parameters(), lr=1e-2),
            [(tokens(4, 9), tokens(4, 9)) for _ in range(3)])
    model = own.Llama()
    capture("accumulation", "none", accumulating_step, model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
            [(tokens(4, 9), tokens(4, 9), tokens(4, 9)) for _ in range(3)])
    model = nn.Sequential(nn.Embedding(37, 8), Block(8), nn.Linear(8, 37))
    capture("loop", "class:Block", microbatches_step, model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
            [([tokens(3, 4) for _ in range(10)], [tokens(3, 4) for _ in range(10)]) for _ in range(3)])
    cold = Case("SGD", "fused", "dampening").setup()
    capture("first", "class:Linear", cold["train_step"], cold["model"], cold["optimizer"], cold["reference"])
    return found


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory) -> list[Path]:
    folder = Path(os.environ.get("KEEP_MUTANTS") or tmp_path_factory.mktemp("artifacts"))
    folder.mkdir(exist_ok=True)
    made = []
    for name, (package, policy) in packages(folder).items():
        made.append(folder / f"{name}.spmd")
        ranks = "--mesh=replicate:2,shard:2" if name == "accumulation" else "--ranks=2"
        run(tool("spmd-compile"), package, ranks, f"--policy={policy}", "--quiet", "-o", made[-1])
    assert (made[-1] / "first_step.plan.json").is_file()
    emulated = folder / "emulated.spmd"
    run(tool("spmd-compile"), ROOT / "examples" / "gpt2-nano.step", "--ranks=2", "--policy=class:Block", "--quiet",
        "--target=emulate:sm_90", "-o", emulated)
    return [emulated, *made]


def judge(artifacts: list[Path], work: Path, count: int, *options: str) -> tuple[int, int]:
    """How many mutants are refused, and how many are harmless; none escapes."""
    driver = tool("spmd-run").parent.parent / "test" / "bin" / "spmd-run-mutants"
    done = subprocess.run([driver, *artifacts, f"--work={work}", f"--count={count}",
                           f"--seed={os.environ.get('SPMD_MUTANTS_SEED', '1')}", *options], capture_output=True, text=True)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    total = done.stdout.splitlines()[-1]
    print("counts:", total)
    made, refused, harmless = (int(n) for n in re.fullmatch(r"(\d+) mutants: (\d+) refused, (\d+) harmless, 0 escaped",
                                                            total).groups())
    assert made == count
    return refused, harmless


def test_no_mutant_escapes(artifacts: list[Path], tmp_path: Path) -> None:
    count = int(os.environ.get("SPMD_MUTANTS", "120"))
    refused, harmless = judge(artifacts, tmp_path, count)
    # Neither refuses the driver everything, nor nothing.
    assert refused > count / 2 and harmless > 0


@pytest.mark.parametrize("name", ["count", "range", "length", "fed-swap", "fed-drop", "alike"])
def test_no_mutant_of_a_loop_escapes(name: str, artifacts: list[Path], tmp_path: Path) -> None:
    """The artifact has one iteration for those that follow it, and what is said of these is another."""
    (loop,) = (path for path in artifacts if path.stem == "loop")
    for file in ("manifest.json", "train_step.plan.json"):
        assert "repeats" in json.loads((loop / file).read_text())
    refused, _ = judge([loop], tmp_path, 12, f"--class=repeat-{name}")
    assert refused > 0


def test_the_tool(artifacts: list[Path], tmp_path: Path) -> None:
    mutate, artifact = tool("spmd-mutate"), artifacts[-1]
    made = [tmp_path / f"{i}.spmd" for i in range(2)]
    for target in made:
        said = run(mutate, artifact, "--class=kernel-iterations", "--seed=7", "-o", target)
        assert re.match(r"kernel-iterations: command \d+ \(kernel k\d+\) parallel: \d+ becomes \d+\n", said), said
    for file in ("manifest.json", "train_step.plan.json"):
        assert (made[0] / file).read_bytes() == (made[1] / file).read_bytes()
    refused = subprocess.run([tool("spmd-run"), made[0], "--quiet"], capture_output=True, text=True)
    assert refused.returncode == 2 and "certificate rule 9: command" in refused.stderr

    first = tmp_path / "first.spmd"
    run(mutate, artifact, "--first-step", "--class=kernel-symbol", "-o", first)
    refused = subprocess.run([tool("spmd-run"), first, "--quiet"], capture_output=True, text=True)
    assert refused.returncode == 2 and "first_step.plan.json': certificate rule 8" in refused.stderr

    classes = [line.split()[0] for line in run(mutate, "--list").splitlines()]
    assert len(classes) == len(set(classes)) > 40
    for options in (["--class=nonsense"], []):
        wrong = subprocess.run([mutate, artifact, *options, "-o", made[0]], capture_output=True, text=True)
        assert wrong.returncode == 2 and (wrong.stderr or wrong.stdout), options
