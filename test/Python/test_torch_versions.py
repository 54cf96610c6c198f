"""Which releases of PyTorch are taken is said in spmd/torch_versions.py, and everywhere else the same."""
from __future__ import annotations

import subprocess
import sys

import mlp
import pytest
import torch

import spmd
from conftest import ROOT
from spmd.torch_versions import NEWEST, OLDEST, RANGE, REQUIREMENT, TESTED, why_not


def test_this_release_is_the_tested_one() -> None:
    assert torch.__version__.startswith(f"{TESTED[0]}.{TESTED[1]}.")


@pytest.mark.parametrize("version", ["2.9.1", "1.13.1+cpu", "2.16.0", "3.0.0a0+git0", "unknown"])
def test_another_release_is_refused(version: str, monkeypatch) -> None:
    example = mlp.setup()
    monkeypatch.setattr(torch, "__version__", version)
    with pytest.raises(spmd.CaptureError) as error:
        spmd.capture(mlp.train_step, example["model"], example["optimizer"], *example["args"])
    assert f"{RANGE}; this is {version}\n  hint: pip install '{REQUIREMENT}'" in str(error.value)


@pytest.mark.parametrize("version", [".".join(map(str, (*v, 0))) + build for v in (OLDEST, TESTED, NEWEST)
                                     for build in ("", "+cu130", "a0+git1")])
def test_these_are_taken(version: str) -> None:
    assert why_not(version) is None


def test_all_say_the_same() -> None:
    bindings = ROOT / "python-bindings"
    assert f'capture = ["{REQUIREMENT}"]' in (bindings / "pyproject.toml").read_text()
    readme = (bindings / "README.md").read_text()
    assert RANGE in readme and REQUIREMENT in readme
    assert f"needs {RANGE}" in (ROOT / "README.md").read_text()
    code = "import sys; sys.modules['torch'] = None; import spmd; spmd.capture"
    without = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                             env={"PYTHONPATH": str(bindings)})
    assert f"ImportError: spmd.capture needs PyTorch: pip install '{REQUIREMENT}'" in without.stderr
