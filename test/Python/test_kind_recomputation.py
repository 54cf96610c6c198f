"""Activation checkpointing: a sample of test/Kinds/recomputation.py, and what becomes of the regions of a step."""
from __future__ import annotations

import functools
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import spmd

sys.path.insert(0, str(Path(__file__).parent.parent / "Kinds"))
import harness  # noqa: E402
import recomputation as kind  # noqa: E402

SAMPLE = ["called reentrant/f64/batch norm/2", "transformers/masters of layers/nested/1", "transformers reentrant/autocast/dropout/1",
          "wrapper/masters/batch norm/2", "wrapper reentrant/f64/fresh dropout/2", "selective/f64/microbatches/1",
          "called/f64/hooks/2"]


@pytest.mark.parametrize("name", SAMPLE)
def test_sample(name: str) -> None:
    found = harness.outcome_of(lambda: kind.case(name))
    assert found.kind == "right", found.text


@pytest.mark.skipif("SPMD_TEST_ALL" not in os.environ, reason="SPMD_TEST_ALL=1 runs a tenth of the kind")
@pytest.mark.parametrize("name", kind.NAMES[3::10])
def test_more(name: str) -> None:
    test_sample(name)


class _Wide(nn.Module):
    """Activations dominate."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(32, 128, bias=False), nn.Linear(128, 32, bias=False)

    def forward(self, x):
        return x + self.down(self.up(x).sin().exp().tanh())


def _step(model, optimizer, x):
    loss = model(x).float().square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def _capture(wrap: Any, block: Any = _Wide, rows: int = 512, **options: Any) -> tuple[spmd.StepPackage, list[str]]:
    """The package, and the remarks on regions."""
    model = nn.Sequential(nn.Linear(32, 32, bias=False), *(wrap(block()) for _ in range(4))).train()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        package = spmd.capture(_step, model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(rows, 32), **options)
    return package, [str(w.message) for w in seen if issubclass(w.category, spmd.Remark) and "checkpoint" in str(w.message)]


def _again(package: spmd.StepPackage) -> list[str]:
    return [node["op"] for node in package.step["nodes"] if node["phase"] == "backward"]


PRECISIONS = {"f32": {}, "masters": {"precision": "param=bf16,reduce=f32"}}


@functools.cache
def _kept(precision: str) -> tuple[int, int]:
    """Without checkpoints: bytes of the arena, and the number of products in the backward."""
    package, remarks = _capture(lambda block: block, **PRECISIONS[precision])
    assert not remarks and "aten.exp.default" not in _again(package)
    return package.plan(ranks=2, policy="none").arena_bytes, _again(package).count("aten.mm.default")


@pytest.mark.sample(3)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("form", kind.FORMS)
def test_regions_lower_the_peak(form: str, precision: str) -> None:
    package, remarks = _capture(kind.FORMS[form], **PRECISIONS[precision])
    assert remarks == ["4 checkpoint regions are recomputed in the backward"]
    arena, products = _kept(precision)
    if form != "selective list":  # keeps as much as the compiler does without checkpoints
        assert package.plan(ranks=2, policy="none").arena_bytes < (0.85 if "selective" in form else 0.65) * arena
    again = _again(package)
    assert again.count("aten.exp.default") == 4
    assert again.count("aten.tanh.default") == (0 if form == "selective list" else 4)
    # The last product of a region is not needed; PyTorch's reentrant checkpoint repeats it all the same.
    repeated = 0 if form in ("selective", "selective wrapper") else 2 if "reentrant" in form else 1
    assert again.count("aten.mm.default") == products + 4 * repeated


def test_operators_come_from_the_region() -> None:
    package, _ = _capture(kind.FORMS["transformers"])
    found = {phase: [(node["module"], node["stack"]) for node in package.step["nodes"]
                     if node["phase"] == phase and node["op"] == "aten.exp.default"] for phase in ("forward", "backward")}
    assert [module for module, _ in found["forward"]] == [f"{n}.block" for n in range(1, 5)]
    assert found["backward"] == found["forward"][::-1]
    products = [node["module"] for node in package.step["nodes"] if node["phase"] == "backward" and node["op"] == "aten.mm.default"]
    assert set(products) == {"0", *(f"{n}.block.{name}" for n in range(1, 5) for name in ("up", "down"))}


class _Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(32, 96, bias=False)

    def forward(self, x):
        q, k, v = self.qkv(x).view(2, -1, 3, 2, 16).permute(2, 0, 3, 1, 4)
        return x + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)


@pytest.mark.parametrize("saved", ["_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention", None])
def test_policies_name_the_attention_of_pytorch(saved: str | None) -> None:
    operators = [getattr(torch.ops.aten, saved).default] if saved else [torch.ops.aten.bmm.default]
    package, _ = _capture(lambda block: kind.Called(block, kind.selective(operators)), _Attention, 16)
    assert _again(package).count("spmd.sdpa.default") == (0 if saved else 4)


def test_a_region_that_does_something_else_again_keeps_its_activations() -> None:
    """PyTorch refuses it; the numbers are those of the first run."""
    model = nn.Sequential(nn.Linear(32, 32), kind.FORMS["called"](_Changing()))
    expected = nn.Sequential(nn.Linear(32, 32), _Changing())
    expected.load_state_dict({name.replace("1.block", "1"): value.clone() for name, value in model.state_dict().items()})
    x = torch.randn(8, 32)
    with pytest.warns(spmd.Remark, match="(?s)1 checkpoint region is not recomputed, so the activations are kept: .*hint: checkpoint functions"):
        found = spmd.compile(_step, ranks=2)(model, torch.optim.SGD(model.parameters(), lr=0.1), x)
    torch.testing.assert_close(found, _step(expected, torch.optim.SGD(expected.parameters(), lr=0.1), x))
    torch.testing.assert_close(model[1].block.up.weight, expected[1].up.weight)


class _Changing(nn.Module):
    """Computes in another type when it runs in backward()."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(32, 32, bias=False)

    def forward(self, x):
        y = self.up(x)
        return (y.double() if torch._C._current_graph_task_id() != -1 else y).sin().float()
