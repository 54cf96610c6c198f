"""How optimizer state begins: a sample of test/Kinds/first_step.py, and state that no program can have."""
from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

import spmd

_FILE = Path(__file__).resolve().parents[1] / "Kinds/first_step.py"
_SPEC = importlib.util.spec_from_file_location("first_step_kind", _FILE)
kind = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(kind)

# a copy of the parameter, masters, a checkpoint, an eager step first
SEEDS = [5, 16, 25, 4]


@pytest.mark.parametrize("seed", SEEDS)
def test_trains_as_eager(seed: int) -> None:
    assert kind.outcome(seed) == ("right", ""), kind.case(seed)


def setup(begins=("parameter", "gradient"), first="as later"):
    model, optimizer = kind.make({"begins": begins, "first": first}, torch.float64)
    return model, optimizer, torch.randn(6, 5, dtype=torch.float64), torch.randint(3, (6,))


@pytest.mark.parametrize("begin", kind.CONSTANTS)
def test_constants_need_no_program_of_their_own(begin: str) -> None:
    package = spmd.capture(kind.call, *setup((begin, "zeros")))
    states = [i for i in package.step["inputs"] if i["kind"] == "state" and i["state"] == "s0"]
    assert package.first_step is None and {i["init"] for i in states} == {kind.BEGINS[begin](torch.zeros(1)).item()}


def test_gradients_of_an_earlier_call() -> None:
    with pytest.raises(spmd.CaptureError, match="that call would be the first step\n  hint: take one step in eager"):
        spmd.capture(kind.ends, *setup(), False)


def test_state_of_some_parameters() -> None:
    model, optimizer, x, y = setup()
    model[0].requires_grad_(False)
    kind.call(model, optimizer, x, y)
    model[0].requires_grad_(True)
    with pytest.raises(spmd.CaptureError, match="'s0' of '0.weight' begins with the first step, and other state"):
        spmd.capture(kind.call, model, optimizer, x, y)


class Odd(torch.optim.Optimizer):
    """Keeps its state in an odd place."""

    def __init__(self, params, where: str):
        super().__init__(params, {"lr": 0.1} | ({"capturable": False} if where == "capturable" else {}))
        self.where = where

    @torch.no_grad()
    def step(self, closure=None):
        group = self.param_groups[0]
        assert not group.get("capturable")
        if self.where == "global":
            self.state["k"] = torch.zeros(())
        for p in group["params"]:
            state = self.state[p]
            if self.where == "list":
                state.setdefault("m", [torch.zeros_like(p)])
            elif self.where == "group":
                group.setdefault("d", torch.zeros_like(p))
            elif self.where == "attribute":
                self.d = p.grad.sum()
            elif self.where == "memory":
                state.setdefault("m", p.data)
            elif "m" not in state:
                state["m"] = torch.zeros_like(p[:2] if self.where == "shape" and p.dim() == 2 else p)
            if self.where in ("shape", "capturable"):
                state["m"].add_(p.grad[:len(state["m"])])
                p[:len(state["m"])].sub_(state["m"], alpha=0.1)


@pytest.mark.parametrize("where, words", [
    ("global", r"Odd stores state\['k'\], which belongs to no parameter"),
    ("list", r"Odd stores a tensor in state\[...\]\['m'\]"),
    ("group", r"Odd stores a tensor in param_groups\[0\]\['d'\]"),
    ("attribute", "Odd stores a tensor in d"),
    ("memory", "state 'm' of Odd has the memory of its parameter")])
def test_state_in_odd_places(where: str, words: str) -> None:
    model, _, x, y = setup()
    with pytest.raises(spmd.CaptureError, match=words):
        spmd.capture(kind.call, model, Odd(model.parameters(), where), x, y)


@pytest.mark.parametrize("is_warm", [False, True])
def test_states_of_two_shapes(is_warm: bool) -> None:
    """An error before a parameter moves."""
    model, _, x, y = setup()
    optimizer = Odd(model.parameters(), "shape")
    if is_warm:
        kind.call(model, optimizer, x, y)
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(spmd.CaptureError, match=r"'m' has shape \[2, 5\] for parameter '0.weight' of shape \[4, 5\]"):
        spmd.compile(kind.call, ranks=1)(model, optimizer, x, y)
    assert all(torch.equal(a, p) for a, p in zip(before, model.parameters()))


@pytest.mark.parametrize("is_warm", [False, True])
def test_an_optimizer_that_rejects_capturable(is_warm: bool) -> None:
    model, _, x, y = setup()
    optimizer = Odd(model.parameters(), "capturable")
    if is_warm:
        kind.call(model, optimizer, x, y)
    assert spmd.capture(kind.call, model, optimizer, x, y).first_step is None


class Constants(torch.optim.Optimizer):
    """Its steps compute with tensors that are made of Python numbers, other ones in the first step."""

    def __init__(self, params):
        super().__init__(params, {"lr": 0.1})

    @torch.no_grad()
    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            scales = [torch.tensor([0.5, 2.0, 1.0])] if state else [torch.tensor([3.0, 1.0, 0.5]), torch.tensor([1.0, 4.0, 2.0])]
            state.setdefault("begin", p.clone())
            update = p.grad.flatten()[:3] + state["begin"].flatten()[:3]
            for scale in scales:
                update = update * scale
            p.sub_(update.sum() * p.grad, alpha=0.1)


def test_constants_of_the_first_step_are_its_own() -> None:
    results = []
    for step in (kind.call, spmd.compile(kind.call, ranks=2, threads=2)):
        model, _, x, _ = setup()
        optimizer = Constants(model.parameters())
        for number in range(3):
            step(model, optimizer, torch.full_like(x, number) + torch.eye(6, 5), torch.tensor([0, 1, 2, 0, 1, 2]))
        results.append(list(model.parameters()))
    for eager, compiled in zip(*results):
        torch.testing.assert_close(compiled, eager)
