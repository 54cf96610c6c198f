"""A step package, run node by node on real tensors, gives what eager PyTorch gives."""
from __future__ import annotations

import copy
import json
from pathlib import Path

import gpt2
import mlp
import pytest
import torch
from safetensors.torch import load_file
from step_interpreter import StepInterpreter

import spmd

INPUTS = Path(__file__).parent.parent / "Inputs"


def largest_difference(run: StepInterpreter, finals: dict[str, torch.Tensor], without: list[str] = ()) -> float:
    assert set(finals) == {name for name in run.tensors() if not name.startswith("constant/")}
    return max((run.tensors()[name] - value.detach()).abs().max().item() for name, value in finals.items()
               if name not in without)


@pytest.mark.parametrize("name, tolerance", [
    ("mlp-sgd", 3e-8), ("mlp-sgd-foreach", 3e-8), ("gpt-tiny", 1e-7), ("gpt-tiny-foreach", 1e-7), ("gpt-tiny-sgd", 0),
    ("mlp-uneven", 3e-8), ("gpt-square", 1e-7), ("gpt-uneven-sgd", 0)])
def test_shipped_package_gives_its_reference(name: str, tolerance: float) -> None:
    """The reference was recorded with the optimizer's default implementation, the graph holds the fused one."""
    folder = INPUTS / f"{name}.step"
    step = json.loads((folder / "step.json").read_text())
    reference = load_file(folder / "reference.safetensors")
    run = StepInterpreter(step, load_file(folder / "weights.safetensors"))
    groups = len(step["optimizer"]["groups"])
    batch_names = [i["name"] for i in step["inputs"] if i["kind"] == "batch"]
    for number, loss in enumerate(reference["loss"]):
        lr = [float(reference[f"hyper/lr/{g}"][number]) for g in range(groups)]
        outputs = run({n: reference[f"batch/{number}/{n}"] for n in batch_names}, lr)
        assert abs(float(outputs[0]) - float(loss)) <= tolerance * max(1, abs(float(loss)))
    finals = {k.removeprefix("final/"): v for k, v in reference.items() if k.startswith("final/")}
    assert largest_difference(run, finals, without=step["zero_gradient"]) <= tolerance


def eager_finals(model, optimizer) -> dict[str, torch.Tensor]:
    names = {id(p): n for n, p in reversed(list(model.named_parameters(remove_duplicate=False)))}
    states = {f"optimizer/{k}/{names[id(p)]}": v for p, s in optimizer.state.items() for k, v in s.items()
              if isinstance(v, torch.Tensor)}
    return dict(model.named_parameters()) | states


def sgd(**options):
    example = mlp.setup()
    example["optimizer"] = torch.optim.SGD(example["model"].parameters(), lr=0.1, **options)
    return example


def adamw(**options):
    example = gpt2.setup("tiny", steps=5)
    groups = [{k: v for k, v in g.items()
               if k in ("params", "weight_decay")} for g in example["optimizer"].param_groups]
    example["optimizer"] = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), **options)
    return example


CASES = {
    "sgd fused": (lambda: sgd(momentum=0.9, fused=True), 0),
    "sgd fused nesterov, weight decay": (lambda: sgd(momentum=0.9, nesterov=True, weight_decay=0.1, fused=True), 0),
    "sgd one by one": (lambda: sgd(momentum=0.9, foreach=False), 0),
    "sgd foreach": (lambda: sgd(momentum=0.9, foreach=True), 3e-8),  # lr * grad rounds before it is added
    "gpt adamw fused": (lambda: adamw(fused=True), 0),
    "gpt adamw foreach": (lambda: adamw(foreach=True), 1e-7),  # capturable: bias corrections in float32
    "gpt adamw one by one": (lambda: adamw(foreach=False), 1e-7),
    "gpt sgd": (lambda: gpt2.setup("tiny", optimizer="sgd", steps=5), 0),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_captured_graph_equals_eager(case: str, warm: bool) -> None:
    make, tolerance = CASES[case]
    example = make()
    step, model, optimizer = example["train_step"], example["model"], example["optimizer"]
    if warm:
        step(model, optimizer, *example["reference"][0])
    before = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    package = spmd.capture(step, model, optimizer, *example["args"])
    torch.testing.assert_close((model.state_dict(), optimizer.state_dict()), before, rtol=0, atol=0)
    assert all(p.grad is None for p in model.parameters())
    run = StepInterpreter(json.loads(package.text()), package.weights)
    for x, y in example["reference"]:
        expected = float(step(model, optimizer, x, y).detach())
        loss, = run({"x": x, "y": y})
        assert abs(float(loss) - expected) <= 2 * tolerance * abs(expected)
    assert largest_difference(run, eager_finals(model, optimizer), example.get("zero_gradient", [])) <= tolerance
