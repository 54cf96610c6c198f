"""Every optimizer × implementation × options: captured, it is eager's step; partitioned, it is the captured one; on the
host it trains like eager. docs/optimizers.md is the table of what is tested."""
from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest
import torch
from optimizer_cases import CASES, Case, document, tolerance
from step_check import StepCheck
from step_interpreter import StepInterpreter

import spmd

DOCUMENT = Path(__file__).parent.parent.parent / "docs/optimizers.md"


def capture(case: Case, warm: bool = False, reference: bool = False):
    example = case.setup()
    step, model, optimizer = example["train_step"], example["model"], example["optimizer"]
    if warm or case.options == "dampening":
        step(model, optimizer, *example["reference"][-1])
    package = spmd.capture(step, model, optimizer, *example["args"],
                           reference=example["reference"] if reference else None)
    return example, package


@pytest.mark.parametrize("case, warm", [
    pytest.param(c, warm, id=f"{c} {'warm' if warm else 'cold'}") for c in CASES if c.implementation != "default"
    for warm in ([False, True] if c.options in ("all", "dampening") else [False])])
def test_captured_step_equals_eager(case: Case, warm: bool) -> None:
    example, package = capture(case, warm)
    model, optimizer = example["model"], example["optimizer"]
    run = StepInterpreter(json.loads(package.text()), package.weights)
    for x, y in example["reference"]:
        expected = example["train_step"](model, optimizer, x, y)
        loss, = run({"x": x, "y": y})
        assert abs(loss.item() - expected.item()) <= tolerance(case) * expected.item()
    names = {id(p): n for n, p in model.named_parameters()}
    finals = dict(model.named_parameters()) | {
        f"optimizer/{k}/{names[id(p)]}": v for p, s in optimizer.state.items() for k, v in s.items()
        if isinstance(v, torch.Tensor)}
    assert set(finals) == {n for n in run.tensors() if not n.startswith("constant/")}
    for name, value in finals.items():
        allowed = tolerance(case) * max(1.0, value.detach().abs().max().item())
        assert (run.tensors()[name] - value.detach()).abs().max().item() <= allowed, name


@pytest.mark.parametrize("case", [c for c in CASES if c.implementation == "default" and c.options in ("plain", "all")],
                         ids=str)
@pytest.mark.sample(2)
def test_default_is_one_of_the_others(case: Case) -> None:
    other = Case(case.optimizer, "fused" if case.optimizer in ("SGD", "Adam", "AdamW") else "single", case.options)
    first, second = (capture(c)[1].step for c in (case, other))
    assert first["nodes"] == second["nodes"] and first["inputs"] == second["inputs"]


@pytest.mark.sample(3)
@pytest.mark.parametrize("number, case", [(n, c) for n, c in enumerate(CASES) if c.implementation != "default"],
                         ids=lambda value: str(value))
def test_partitioned_step_equals_captured(number: int, case: Case, tmp_path) -> None:
    """In float64, loss, parameters and optimizer state, to 1e-12; ranks and policies take turns."""
    check = StepCheck(capture(case, warm=number % 2 == 0)[1], tmp_path)
    if case.options == "groups":
        check.interpret(1)
        check.interpret(2, "class:Linear")
        check.interpret(4)
    else:
        check.interpret(2 + number % 3, "class:Linear" if number % 4 < 2 else "none")


@pytest.mark.parametrize("optimizer, implementation", [
    ("SGD", "foreach"), ("Adam", "single"), ("AdamW", "foreach"), ("NAdam", "foreach"), ("RAdam", "single"),
    ("RMSprop", "foreach"), ("Adagrad", "fused"), ("Rprop", "foreach"), ("Adadelta", "single"), ("Adamax", "foreach"),
    ("ASGD", "single")])
@pytest.mark.sample(2)
def test_host_trains_like_eager(optimizer: str, implementation: str, tmp_path) -> None:
    """Five steps on two ranks; loss, parameters and optimizer state are those of eager PyTorch."""
    _, package = capture(Case(optimizer, implementation, "groups"), reference=True)
    StepCheck(package, tmp_path).train(2, "class:Linear", rtol=2e-5)


class Weighed(torch.nn.Module):
    def __init__(self, dtype: torch.dtype):
        super().__init__()
        torch.manual_seed(5)
        self.a, self.b = (torch.nn.Parameter(torch.randn(size).to(dtype)) for size in (37, 70))

    def forward(self, a, b):
        """The gradient of a parameter is what it is weighed by, to the bit."""
        return (self.a * a).sum() + (self.b * b).sum()


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name, options", [
    ("Adam", {"eps": 1e-5}), ("AdamW", {"eps": 1e-5, "weight_decay": 0.1}),
    ("Adagrad", {"weight_decay": 0.1, "lr_decay": 0.01}), ("Adagrad", {})], ids=str)
@pytest.mark.sample(2)
def test_fused_in_a_narrow_type_rounds_once(name: str, options: dict, dtype: torch.dtype, ranks: int, tmp_path,
                                            monkeypatch) -> None:
    """Squares of gradients that are no numbers of the type count: the state is rounded, what is computed from it is not."""
    def step(model, optimizer, a, b):
        loss = model(a, b)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    monkeypatch.setenv("SPMD_CACHE", str(tmp_path))
    model, twin = Weighed(dtype), Weighed(dtype)
    make = getattr(torch.optim, name)
    optimizer, other = (make(m.parameters(), lr=0.01, fused=True, **options) for m in (model, twin))
    compiled = spmd.compile(step, ranks=ranks, batch_dims={"a": None, "b": None})
    torch.manual_seed(1)
    for scale in (1e-4, 1.0, 1e-3):
        batch = [(torch.randn(size) * scale).to(dtype) for size in (37, 70)]
        compiled(model, optimizer, *batch)
        step(twin, other, *batch)
    same = functools.partial(torch.testing.assert_close, rtol=torch.finfo(dtype).eps, atol=torch.finfo(dtype).eps / 100)
    for own, eager in zip(model.parameters(), twin.parameters()):
        same(own, eager)
        for key, value in other.state[eager].items():
            same(optimizer.state[own][key], value)


@pytest.mark.parametrize("make, why", [
    (lambda p: torch.optim.LBFGS(p), "LBFGS is not supported: the number of its closure calls"),
    (lambda p: torch.optim.SparseAdam(p), "SparseAdam is not supported: its gradients are sparse"),
    (lambda p: torch.optim.Adam(p, differentiable=True), "differentiable=True is not supported"),
], ids=["LBFGS", "SparseAdam", "differentiable"])
def test_what_is_not_supported_says_why(make, why: str) -> None:
    example = CASES[0].setup()
    optimizer = make(list(example["model"].parameters()))
    with pytest.raises(spmd.CaptureError, match=f"(?s){why}.*hint: "):
        spmd.capture(example["train_step"], example["model"], optimizer, *example["args"])


def test_document() -> None:
    """docs/optimizers.md is `python test/Python/optimizer_cases.py`."""
    assert DOCUMENT.read_text() == document()
