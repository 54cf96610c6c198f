"""A sample of test/Kinds/forms.py, and what checks of values do where they fail."""
from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import spmd

sys.path.insert(0, str(Path(__file__).parent.parent / "Kinds"))
import forms  # noqa: E402
import harness  # noqa: E402

SAMPLE = ["attention of 2 dims; f32; 2 ranks; plain", "attention of 5 dims, mask of 4; f32; 2 ranks; plain",
          "attention, a row that sees nothing; f64; 2 ranks; plain", "index_copy; f32; 2 ranks; plain",
          "scale_grad_by_freq, padding; f32; 2 ranks; microbatches", "scale_grad_by_freq, padding; f64; 2 ranks; microbatches",
          "_check_tensor_all; f32; 2 ranks; microbatches",
          "autocast off; f32; 1 ranks; plain"]


@pytest.mark.parametrize("name", SAMPLE)
def test_sample(name: str) -> None:
    found = harness.outcome_of(lambda: forms.case(name))
    assert found.kind == "right", found.text


CHECKS = {"assert_async": (lambda out: torch._assert_async(out.isfinite().all()), ""),
          "message": (lambda out: torch._assert_async(out.isfinite().all(), "not finite"), ": not finite"),
          "item": (lambda out: torch._check(out.isfinite().all().item()), ""),
          "number": (lambda out: torch._check(2 * out.abs().sum().item() < 1e9, lambda: "too large"), ": too large")}


@pytest.mark.parametrize("name, view", [(name, "global") for name in CHECKS] + [("item", "local")])
def test_a_check_that_fails(name: str, view: str) -> None:
    """The call raises when the step is over, also where the rows of one rank alone fail."""
    check, text = CHECKS[name]

    @spmd.compile(ranks=2, view=view)
    def step(model, optimizer, x):
        out = model(x)
        check(out)
        loss = out.clamp(-1, 1).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    torch.manual_seed(0)
    model, x = nn.Linear(5, 3), torch.randn(6, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step(model, optimizer, x)
    x[5] = float("inf")
    expected = rf"^step 1: a check of the step fails{text}\n(?s:.*)check\(out\)(?s:.*)\n  hint: "
    with pytest.raises(RuntimeError, match=expected):
        step(model, optimizer, x)


def test_attention_to_keys_of_more_dims() -> None:
    """Dims are added in front of the query, and the result has those of the keys."""
    def step(model, x):
        out = model(x)
        return F.scaled_dot_product_attention(out[:4], out[4:].view(3, 5, 8), 2 * out[4:].view(3, 5, 8))

    torch.manual_seed(0)
    model, x = nn.Linear(6, 8), torch.randn(19, 6)
    torch.testing.assert_close(spmd.compile(step, ranks=1)(model, x), step(model, x))


class On(nn.Module):
    """Its forward is a region of autocast for GPUs, as a decorator says."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(5, 3)

    @torch.autocast("cuda", dtype=torch.bfloat16)
    def forward(self, x):
        return self.head(x)


def test_a_decorator_that_is_on_is_refused() -> None:
    def step(model, x):
        return F.relu(model(x)).sum()

    with pytest.raises(spmd.CaptureError, match="autocast for 'cuda' in a captured step"):
        spmd.capture(step, On(), torch.ones(4, 5))


def test_caches_of_libraries_elsewhere(tmp_path, monkeypatch) -> None:
    """What pip has put into a folder is a library, and what lies beside is the user's."""
    for package in ("cachelib_of_pip", "cachelib_of_user"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(
            "SEEN = {}\ndef f(x):\n    SEEN[tuple(x.shape)] = len(SEEN)\n    return x * 2\n")
    (tmp_path / "cachelib_of_pip-1.0.dist-info").mkdir()
    (tmp_path / "cachelib_of_pip-1.0.dist-info" / "RECORD").write_text("cachelib_of_pip/__init__.py,sha256=x,1\n")
    monkeypatch.syspath_prepend(tmp_path)
    by_pip, by_user = (importlib.import_module(f"cachelib_of_{who}").f for who in ("pip", "user"))
    spmd.capture(lambda model, x: by_pip(model(x)).sum(), nn.Linear(5, 3), torch.ones(4, 5))
    with pytest.raises(spmd.CaptureError, match="SEEN"):
        spmd.capture(lambda model, x: by_user(model(x)).sum(), nn.Linear(5, 3), torch.ones(4, 5))


def test_bits_of_floats_are_refused() -> None:
    def step(model, x):
        return (model(x).view(torch.int32) & -65536).view(torch.float32).sum()

    expected = r"view\(torch.int32\) of a tensor of torch.float32 (?s:.*)test_kind_forms.py(?s:.*)hint: "
    with pytest.raises(spmd.CaptureError, match=expected):
        spmd.capture(step, nn.Linear(5, 3), torch.ones(4, 5))
