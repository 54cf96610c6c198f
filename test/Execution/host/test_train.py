"""GPT-2 nano trains as eager PyTorch did: 50 steps for each mode, policy and number of ranks."""
from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

STEP = Path(os.environ["SPMD_SOURCE"]) / "examples" / "gpt2-nano.step"


@pytest.mark.parametrize("mode", ["fully_shard", "replicate"])
@pytest.mark.parametrize("policy", ["always", "class:Block", "none", "size:100000"])
@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
@pytest.mark.sample(4)
def test_trains_as_eager(mode: str, policy: str, ranks: int, tmp_path) -> None:
    artifact = tmp_path / "nano.spmd"
    subprocess.run(["spmd-compile", STEP, "-o", artifact, f"--ranks={ranks}", f"--mode={mode}", f"--policy={policy}", "--quiet"],
                   check=True)
    done = subprocess.run(["spmd-run", artifact, "--steps=50", "--check", "--quiet"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for line in ("check against eager PyTorch: 50 steps", r"loss: largest relative difference .*, tolerance 0\.0001",
                 r"parameters: largest \|a-b\|/\|b\| .*, tolerance 0\.001", "passed"):
        assert re.search(line, done.stdout), done.stdout
