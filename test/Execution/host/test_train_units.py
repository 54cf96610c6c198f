"""GPT-2 nano, whose head is tied, trains on 4 ranks to eager's losses under policies and annotations of every kind.

train-*.test do so for the policies that the command line names; here are those of Python, options per unit, ignored
parameters, and annotations that the capture carries.
"""
from __future__ import annotations

import copy
import dataclasses
import functools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.distributed.fsdp.wrap import (CustomPolicy, ModuleWrapPolicy, _or_policy, _Policy, lambda_auto_wrap_policy,
                                         size_based_auto_wrap_policy, transformer_auto_wrap_policy)

import spmd

EXAMPLES = Path(os.environ["SPMD_SOURCE"]) / "examples"
sys.path.insert(0, str(EXAMPLES))
import gpt2  # noqa: E402

PACKAGE = EXAMPLES / "gpt2-nano.step"


def make_model() -> gpt2.GPT:
    vocab = next(p["shape"][0] for p in json.loads((PACKAGE / "step.json").read_text())["parameters"]
                 if p["name"] == "wte.weight")
    return gpt2.GPT(dataclasses.replace(gpt2.CONFIGS["nano"], vocab=vocab))


def train(step: Path, folder: Path, *options: str, steps: int = 12) -> str:
    """Compiles for 4 ranks and checks steps against eager, and after all 50 the parameters; the compiler's report."""
    artifact = folder / "nano.spmd"
    done = subprocess.run(["spmd-compile", str(step), "-o", str(artifact), "--ranks=4", *options], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    ran = subprocess.run(["spmd-run", str(artifact), f"--steps={steps}", "--check", "--quiet"],
                         capture_output=True, text=True)
    assert ran.returncode == 0 and "passed" in ran.stdout, ran.stdout + ran.stderr
    return done.stdout


def count(report: str, collective: str) -> int:
    found = re.search(rf"^  {collective} +(\d+) ", report, re.MULTILINE)
    return int(found[1]) if found else 0


class EveryOtherBlock(_Policy):
    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        return {block: {} for block in list(root_module.h)[::2]}


def by_path(model, path):
    return model.get_submodule(path)


OPTIONS = {"h.0": {"reshard_after_forward": False}, "h.1": {"mode": "replicate"}, "h.2": {"prefetch": 0}, "h.3": True}

# Gathers: each sharded unit twice (forward, backward), once when it is kept or, as the position embedding, not read in
# backward; scatters: each sharded unit once.
POLICIES = {
    "lambda": (lambda m: functools.partial(lambda_auto_wrap_policy, lambda_fn=lambda x: isinstance(x, gpt2.MLP)),
               10, 5),
    "transformer": (lambda m: functools.partial(transformer_auto_wrap_policy,
                                                transformer_layer_cls={gpt2.Block, gpt2.Attention}), 18, 9),
    "custom": (lambda m: CustomPolicy(lambda x: next((o for p, o in OPTIONS.items() if x is by_path(m, p)), False)),
               7, 4),
    "or": (lambda m: functools.partial(_or_policy, policies=[
        ModuleWrapPolicy({nn.Embedding}), functools.partial(size_based_auto_wrap_policy, min_num_params=150000)]),
           11, 6),
    "callable": (lambda m: lambda module, recurse, nonwrapped_numel: recurse or 60000 < nonwrapped_numel < 200000,
                 26, 13),
    "user": (lambda m: EveryOtherBlock(), 6, 3),
}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.sample(2)
def test_policy(name: str, tmp_path) -> None:
    make, gathers, scatters = POLICIES[name]
    model = make_model()
    units = spmd.shard_units(model, make(model), ranks=4)
    units.save(tmp_path / "plan.json")
    report = train(PACKAGE, tmp_path, f"--policy-file={tmp_path}/plan.json", steps=50 if name == "custom" else 12)
    assert (count(report, "all_gather"), count(report, "reduce_scatter")) == (gathers, scatters), report


def test_ignored(tmp_path) -> None:
    report = train(PACKAGE, tmp_path, "--policy=name:h\\.[0-9]", "--ignored-module=h.1",
                   "--ignored-parameter=wpe.weight", "--ignored-parameter=ln_f.bias")
    # The root and three blocks are sharded; the ignored parameters are in one unit more, whose gradient is all-reduced.
    assert (count(report, "all_gather"), count(report, "reduce_scatter")) == (8, 4), report
    assert count(report, "all_reduce") == 3, report


def fully_shard_blocks(model) -> None:
    for block in model.h:
        spmd.fully_shard(block)


def fully_shard_in_pairs(model) -> None:
    for block in model.h:
        spmd.fully_shard(block, reshard_after_forward=2)


def fully_shard_lists(model) -> None:
    spmd.fully_shard([model.h[0], model.h[1]], reshard_after_forward=False)
    spmd.fully_shard(model.h[2].mlp, ignored_params={model.h[2].mlp.c_fc.bias})
    spmd.fully_shard(model.h[2])
    spmd.fully_shard(model)


def wrap_blocks(model) -> None:
    with spmd.enable_wrap(mode="fully_shard", reshard_after_forward=True):
        for number, block in enumerate(model.h):
            spmd.wrap(block, mode="replicate" if number == 3 else "fully_shard")


# The root is kept between forward and backward, as PyTorch does.
@pytest.mark.parametrize("annotate, gathers, scatters", [(fully_shard_blocks, 9, 5), (fully_shard_in_pairs, 9, 5), (fully_shard_lists, 6, 4),
                                                         (wrap_blocks, 7, 4)])
@pytest.mark.sample(2)
def test_annotation(annotate, gathers: int, scatters: int, tmp_path) -> None:
    model = make_model()
    annotate(model)
    batch = json.loads((PACKAGE / "step.json").read_text())
    shape = next(i["shape"] for i in batch["inputs"] if i["kind"] == "batch")
    x = torch.zeros(shape, dtype=torch.int64)
    zero_gradient = [f"h.{i}.attn.c_attn.bias" for i in range(len(model.h))]
    package = spmd.capture(gpt2.train_step, model, gpt2.make_optimizer(model, "fused"), x, x, name="gpt2-nano",
                           zero_gradient=zero_gradient)
    assert package.step["version"] == 2
    step = package.save(tmp_path / "nano.step", weights=False)
    for file in ("weights.safetensors", "reference.safetensors"):
        shutil.copy(PACKAGE / file, step / file)
    report = train(step, tmp_path, steps=50 if annotate is fully_shard_lists else 12)
    assert (count(report, "all_gather"), count(report, "reduce_scatter")) == (gathers, scatters), report
    refused = subprocess.run(["spmd-compile", str(step), "-o", str(tmp_path / "no.spmd"), "--policy=always"],
                             capture_output=True, text=True)
    assert refused.returncode == 2
    assert "is annotated as a unit already; a policy chooses for models without" in refused.stderr
    assert not (tmp_path / "no.spmd").exists()


def test_types_that_were_not_captured_are_errors(tmp_path) -> None:
    plan = {"format": "spmd-shard-units", "version": 1, "rules": [{"class": "Block", "options": {"precision": {"param": "bf16"}}}]}
    error = (r"shard unit 'h.0' \(@unit1\) has mixed precision \(param = 'bf16'\), and the step was captured in 'f32' "
             r"\(h.0.attn.c_attn, gpt2.py:\d+ reads 'h.0.attn.c_attn.weight' as it is\); capture it with precision=")
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    command = ["spmd-compile", str(PACKAGE), "--ranks=4", f"--policy-file={tmp_path}/plan.json", "--quiet"]
    done = subprocess.run([*command, "-o", str(tmp_path / "nano.spmd")], capture_output=True, text=True)
    assert done.returncode == 2 and re.search(error, done.stderr), done.stderr
    assert not (tmp_path / "nano.spmd").exists()
    planned = subprocess.run([*command, "--compile-to=plan", "-o", "-"], capture_output=True, text=True)
    assert planned.returncode == 2 and re.search(error, planned.stderr), planned.stderr
    assert not planned.stdout
    kept = subprocess.run([*command, "--compile-to=units", "-o", "-"], capture_output=True, text=True)
    assert "precision = {param = bf16, reduce = bf16}" in kept.stdout


def test_units_that_keep_parameters_over_groups(tmp_path) -> None:
    """Some of the units, of a plan file, beside others; a rank's bytes and collectives are those of the groups."""
    plan = {"format": "spmd-shard-units", "version": 1, "options": {"reshard_after_forward": True}, "rules": [
        {"module": "h.0", "options": {"reshard_after_forward": 2}}, {"module": "h.1", "options": {"reshard_after_forward": 2}},
        {"module": "h.2", "options": {"mode": "replicate"}}, {"module": "h.3", "options": {"mode": "shard_optimizer"}}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    report = train(PACKAGE, tmp_path, f"--policy-file={tmp_path}/plan.json")
    assert (count(report, "all_gather"), count(report, "reduce_scatter")) == (7, 4), report
    text = subprocess.run(["spmd-report", str(tmp_path / "nano.spmd")], capture_output=True, text=True, check=True).stdout
    assert re.findall(r"all_gather  (unit\d) +gather.inner", text) == ["unit2", "unit1"], text


@pytest.mark.parametrize("options, more, error", [
    ({"reshard_after_forward": 3}, [], "unit 'h.0': reshard_after_forward is 3, expected a factor of the 4 ranks"),
    ({"reshard_after_forward": 2}, ["--ranks=8", "--reshard-after-forward=4"],
     r"unit '\(root\)': reshard_after_forward is 4, and 2 of unit 'h.0'; the units of a step reshard to groups of one size"),
    ({"reshard_after_forward": 8}, ["--mesh=replicate:2,shard:4"],
     "unit 'h.0': reshard_after_forward is 8, expected a factor of the 4 ranks of the axis shard"),
    ({}, ["--reshard-after-forward=0"], "--reshard-after-forward=0: expected true, false, or a number of ranks"),
    ({}, ["--reshard-after-forward=yes"], "--reshard-after-forward=yes: expected true, false, or a number of ranks")])
def test_groups_that_cannot_be(options: dict, more: list[str], error: str, tmp_path) -> None:
    plan = {"format": "spmd-shard-units", "version": 1, "rules": [{"module": "h.0", "options": options}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    ranks = [] if any(word.startswith(("--ranks", "--mesh")) for word in more) else ["--ranks=4"]
    done = subprocess.run(["spmd-compile", str(PACKAGE), *ranks, f"--policy-file={tmp_path}/plan.json", "--quiet", *more, "-o",
                           str(tmp_path / "nano.spmd")], capture_output=True, text=True)
    assert done.returncode == 2 and re.search(error, done.stderr), done.stderr


def test_compile_takes_the_model_apart(tmp_path, monkeypatch) -> None:
    """spmd.compile with a policy that only Python can ask, and with parameters that are ignored."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    example = gpt2.setup("tiny", steps=3)
    model, optimizer = example["model"], example["optimizer"]
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    step = spmd.compile(gpt2.train_step, ranks=4, policy=CustomPolicy(lambda m: {"mode": "replicate"} if m is model.h[0]
                                                                      else isinstance(m, gpt2.Block)),
                        ignored_states=[model.wpe.weight], threads=2)
    for x, y in example["reference"]:
        loss, expected = step(model, optimizer, x, y), gpt2.train_step(twin, twin_optimizer, x, y)
        assert abs(loss.item() - expected.item()) < 1e-5
    torch.testing.assert_close(model.wpe.weight, twin.wpe.weight, rtol=1e-4, atol=1e-6)
