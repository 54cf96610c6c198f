"""GPT-2 124M, real config: captured, compiled for 8 ranks within a minute, trained 3 steps on 2 ranks; the planned
bytes are the bytes that the process takes."""
import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from python_processes import PYTHON

EXAMPLES = Path(os.environ["SPMD_SOURCE"]) / "examples"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    path = tmp_path_factory.mktemp("gpt2") / "gpt2-124m.step"
    subprocess.run([PYTHON, str(EXAMPLES / "gpt2.py"), "--config", "124m", "--batch", "4", "--length", "64",
                    "--steps", "3", "--reference-state", "none", "--save", str(path)], check=True)
    return path


def compile_step(package, ranks, *options):
    artifact = package.parent / f"{ranks}.spmd"
    start = time.monotonic()
    done = subprocess.run(["spmd-compile", str(package), "-o", str(artifact), f"--ranks={ranks}",
                           "--policy=class:Block", *options], check=True, capture_output=True, text=True)
    return artifact, time.monotonic() - start, done.stdout


def test_compiles_for_8_ranks_within_a_minute(package):
    _, seconds, report = compile_step(package, 8)
    assert seconds < 60
    assert re.search(r"all_gather +26 ", report) and re.search(r"reduce_scatter +13 ", report)
    assert re.search(r"all_reduce +2 ", report)


def test_trains_like_eager_within_the_planned_bytes(package):
    artifact, _, report = compile_step(package, 2)
    planned = int(re.search(r"arena: ([\d,]+) bytes per rank", report)[1].replace(",", ""))
    run = subprocess.run(["spmd-run", str(artifact), "--steps=3", "--check"], check=True,
                         capture_output=True, text=True)
    assert f"arena: {planned:,} bytes per rank" in run.stdout
    assert "passed" in run.stdout
