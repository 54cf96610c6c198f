"""A sample of random training steps agrees with eager PyTorch, or is refused by a listed sentence; run.py has more."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from generate import generate
from refusals import LISTED, Refusal, is_listed

HERE = Path(__file__).resolve().parent
SEEDS = range(10)  # 30 seconds


def test_a_sample_agrees_with_eager(tmp_path) -> None:
    done = subprocess.run([sys.executable, HERE / "run.py", f"{SEEDS.start}:{SEEDS.stop}", "--sample"],
                          capture_output=True, text=True, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
    print("counts: random steps:", done.stdout.splitlines()[-1])


def test_a_seed_is_one_script() -> None:
    assert generate(3).source() == generate(3).source() != generate(4).source()


@pytest.mark.parametrize("refusal", LISTED, ids=lambda refusal: refusal.pattern)
def test_refusal(refusal: Refusal, tmp_path) -> None:
    """Its example is refused by it."""
    from check import check
    script = tmp_path / "refused.py"
    script.write_text(refusal.program().source())
    texts = [one.text for one in check(script, ranks=(), sample=True) if one.kind == "refused"]
    assert texts and all(re.search(refusal.pattern, text) for text in texts)


def test_other_sentences_are_failures() -> None:
    assert not is_listed("error: certificate rule 7: command 76 reduces the gradients of unit0 again")
