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
# Where other orders of addition or other roundings are right, too, and gradients carry them on: per step, as
# `spmd-interpret --reference` allows.
RELATIVE_PER_STEP = 16 * torch.finfo(torch.float32).eps


def check_finals(run: StepInterpreter, finals: dict[str, torch.Tensor], zero_gradient: list[str], rtol: float) -> None:
    assert set(finals) == {name for name in run.tensors() if not name.startswith("constant/")}
    for name in set(finals) - set(zero_gradient):
        expected = finals[name].detach()
        assert (run.tensors()[name] - expected).norm() <= rtol * expected.norm(), name


@pytest.mark.parametrize("name", ["mlp-sgd", "mlp-sgd-foreach", "gpt-tiny", "gpt-tiny-foreach", "gpt-tiny-sgd",
                                  "mlp-uneven", "gpt-square", "gpt-uneven-sgd"])
def test_shipped_package_gives_its_reference(name: str) -> None:
    """The reference was recorded on another processor, whose matrix products add up in another order; on one processor
    the bits are equal (below)."""
    folder = INPUTS / f"{name}.step"
    step = json.loads((folder / "step.json").read_text())
    reference = load_file(folder / "reference.safetensors")
    run = StepInterpreter(step, load_file(folder / "weights.safetensors"))
    groups = len(step["optimizer"]["groups"])
    batch_names = [i["name"] for i in step["inputs"] if i["kind"] == "batch"]
    for number, loss in enumerate(reference["loss"]):
        lr = [float(reference[f"hyper/lr/{g}"][number]) for g in range(groups)]
        outputs = run({n: reference[f"batch/{number}/{n}"] for n in batch_names}, lr)
        assert abs(float(outputs[0]) - float(loss)) <= (number + 1) * RELATIVE_PER_STEP * abs(float(loss))
    finals = {k.removeprefix("final/"): v for k, v in reference.items() if k.startswith("final/")}
    check_finals(run, finals, step["zero_gradient"], len(reference["loss"]) * RELATIVE_PER_STEP)


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


# Each with whether the bits are eager's.
CASES = {
    "sgd fused": (lambda: sgd(momentum=0.9, fused=True), True),
    "sgd fused nesterov, weight decay": (lambda: sgd(momentum=0.9, nesterov=True, weight_decay=0.1, fused=True), True),
    "sgd one by one": (lambda: sgd(momentum=0.9, foreach=False), True),
    "sgd foreach": (lambda: sgd(momentum=0.9, foreach=True), False),  # lr * grad rounds before it is added
    "gpt adamw fused": (lambda: adamw(fused=True), True),
    "gpt adamw foreach": (lambda: adamw(foreach=True), False),  # capturable: bias corrections in float32
    "gpt adamw one by one": (lambda: adamw(foreach=False), False),
    "gpt sgd": (lambda: gpt2.setup("tiny", optimizer="sgd", steps=5), True),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_captured_graph_equals_eager(case: str, warm: bool) -> None:
    make, same_bits = CASES[case]
    example = make()
    step, model, optimizer = example["train_step"], example["model"], example["optimizer"]
    if warm:
        step(model, optimizer, *example["reference"][0])
    before = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    package = spmd.capture(step, model, optimizer, *example["args"])
    torch.testing.assert_close((model.state_dict(), optimizer.state_dict()), before, rtol=0, atol=0)
    assert all(p.grad is None for p in model.parameters())
    run = StepInterpreter(json.loads(package.text()), package.weights)
    rtol = 0.0 if same_bits else len(example["reference"]) * RELATIVE_PER_STEP
    for x, y in example["reference"]:
        expected = float(step(model, optimizer, x, y).detach())
        loss, = run({"x": x, "y": y})
        assert abs(float(loss) - expected) <= rtol * abs(expected)
    check_finals(run, eager_finals(model, optimizer), example.get("zero_gradient", []), rtol)
