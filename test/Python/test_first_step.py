"""SGD with dampening from a cold start: its first step is a program of its own, on the same state, and runs once."""
from __future__ import annotations

import copy
import dataclasses
import json
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from json_schema import violations
from optimizer_cases import Case
from step_check import StepCheck, run, tool
from step_interpreter import StepInterpreter

import spmd


ROOT = Path(__file__).resolve().parents[2]


def setup(implementation: str = "fused"):
    return Case("SGD", implementation, "dampening").setup()


def capture(example, **options):
    return spmd.capture(example["train_step"], example["model"], example["optimizer"], *example["args"], **options)


@pytest.mark.parametrize("implementation, tolerance", [("single", 0.0), ("foreach", 6e-8), ("fused", 0.0)])
def test_two_graphs_equal_eager(implementation: str, tolerance: float) -> None:
    example = setup(implementation)
    package = capture(example)
    model, optimizer = copy.deepcopy((example["model"], example["optimizer"]))
    run = StepInterpreter(json.loads(package.first_step.text()), package.weights)
    for number, (x, y) in enumerate(example["reference"]):
        expected = example["train_step"](model, optimizer, x, y)
        assert abs(run({"x": x, "y": y})[0].item() - expected.item()) <= 2e-7
        if number == 0:
            run = StepInterpreter(json.loads(package.text()), run.tensors())
    for name, parameter in model.named_parameters():
        for key, value in ((name, parameter),
                           (f"optimizer/momentum_buffer/{name}", optimizer.state[parameter]["momentum_buffer"])):
            assert (run.tensors()[key] - value.detach()).abs().max().item() <= tolerance, key


@pytest.mark.parametrize("implementation", ["single", "foreach", "fused"])
def test_first_step_is_partitioned(implementation: str, tmp_path) -> None:
    package = capture(setup(implementation))
    check = StepCheck(dataclasses.replace(package.first_step, weights=package.weights), tmp_path)
    for ranks in (1, 2, 3, 4):
        check.interpret(ranks, "class:Linear" if ranks == 3 else "none", steps=1)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory) -> Path:
    """An artifact for 2 ranks, with what eager PyTorch computed."""
    example, folder = setup(), tmp_path_factory.mktemp("first")
    check = StepCheck(capture(example, reference=example["reference"]), folder)
    check.train(2, "class:Linear")
    return folder / "s2.spmd"


def changed(artifact: Path, folder: Path, change) -> Path:
    """A copy whose manifest is changed."""
    shutil.copytree(artifact, folder / "changed.spmd")
    file = folder / "changed.spmd/manifest.json"
    manifest = json.loads(file.read_text())
    change(manifest)
    file.write_text(json.dumps(manifest))
    return folder / "changed.spmd"


def refusal(artifact: Path, *options) -> str:
    done = subprocess.run([tool("spmd-run"), artifact, "--quiet", *options], capture_output=True, text=True)
    assert done.returncode == 2, done
    return done.stderr


def test_artifact_has_two_programs(artifact: Path) -> None:
    """Of one manifest, on one state, in files of kernels that have those of both once."""
    manifest = json.loads((artifact / "manifest.json").read_text())
    step, first = manifest["programs"]
    assert (step["name"], first["name"]) == ("train_step", "first_step")
    assert first["arena"]["state_bytes"] == manifest["arena"]["state_bytes"] and "state" not in first
    launched = {}
    for program in (step, first):
        commands = json.loads((artifact / program["plan"]).read_text())["commands"]
        launched[program["name"]] = {c["kernel"] for c in commands if "kernel" in c}
    both = launched["train_step"] & launched["first_step"]
    assert both and launched["train_step"] - both and launched["first_step"] - both
    assert {k["kernel"] for k in manifest["kernel_table"]} == launched["train_step"] | launched["first_step"]
    schema = json.loads((ROOT / "docs/manifest.schema.json").read_text())
    assert not list(violations(manifest, schema, schema))
    run(tool("spmd-run").parent.parent / "test" / "bin" / "spmd-round-trip", artifact)


def test_artifact_runs_it_once(artifact: Path, tmp_path) -> None:
    without = changed(artifact, tmp_path, lambda manifest: manifest["programs"].pop())
    with pytest.raises(AssertionError, match="the check failed"):
        run(tool("spmd-run"), without, "--check", "--rtol=1e-5", "--rtol-loss=1e-5", "--quiet", "--threads=2")


def test_all_programs_are_checked_also_where_one_will_not_run(artifact: Path, tmp_path) -> None:
    warm = tmp_path / "warm.safetensors"
    run(tool("spmd-run"), artifact, "--steps=2", f"--save={warm}", "--quiet")
    assert run(tool("spmd-run"), artifact, "--steps=1", f"--weights={warm}", "--quiet") is not None
    broken = changed(artifact, tmp_path, lambda manifest: manifest["programs"][1]["outputs"][0].update(buffer=0))
    assert "first_step.plan.json': certificate rule" in refusal(broken, f"--weights={warm}")


def test_programs_of_another_state_are_refused(artifact: Path, tmp_path) -> None:
    def shift(manifest) -> None:
        arena = manifest["programs"][1]["arena"]
        arena.update(state_bytes=arena["state_bytes"] + 64, bytes=arena["bytes"] + 64)
    assert "/programs/1/arena/state_bytes: expected the state of all programs" in refusal(
        changed(artifact, tmp_path, shift))


def test_a_state_that_is_there_goes_on(tmp_path) -> None:
    """From weights with optimizer state, the first step is a later one."""
    example = setup()
    step, model, optimizer, batches = (example[k] for k in ("train_step", "model", "optimizer", "reference"))
    package = capture(example)
    StepCheck(package, tmp_path)
    step(model, optimizer, *batches[0])
    warm = capture(example)
    assert warm.first_step is None
    artifact, weights = tmp_path / "s.spmd", warm.save(tmp_path / "warm.step") / "weights.safetensors"
    run(tool("spmd-compile"), tmp_path / "s.step", "--ranks=2", "--quiet", "-o", artifact)
    for x, y in batches[1:]:
        expected = step(model, optimizer, x, y)
    with spmd.load(artifact, weights=weights, threads=2) as trainer:
        for x, y in batches[1:]:
            loss = trainer.step(x, y)
    assert abs(loss.item() - expected.item()) < 1e-5


def test_compiled_from_cold_and_again_from_warm(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    example = setup()
    twin, twin_optimizer = copy.deepcopy((example["model"], example["optimizer"]))
    train_step = spmd.compile(example["train_step"], ranks=2, threads=2)
    for number, (x, y) in enumerate(example["reference"]):
        if number == 3:
            train_step.sync()
            train_step.reset()
        loss = train_step(example["model"], example["optimizer"], x, y)
        assert abs(loss.item() - example["train_step"](twin, twin_optimizer, x, y).item()) < 1e-5
    for p, q in zip(example["model"].parameters(), twin.parameters()):
        torch.testing.assert_close(p.detach() + 0, q.detach(), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(example["optimizer"].state[p]["momentum_buffer"] + 0,
                                   twin_optimizer.state[q]["momentum_buffer"], rtol=1e-5, atol=1e-6)
