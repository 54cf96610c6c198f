"""A sample of random training steps agrees with eager PyTorch, or is refused by a listed sentence; run.py has more."""
from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from generate import generate
from minimize import minimize
from refusals import LISTED, Refusal, is_listed, small_program

HERE = Path(__file__).resolve().parent
SEEDS = range(8)


def test_a_sample_agrees_with_eager(tmp_path) -> None:
    done = subprocess.run([sys.executable, HERE / "run.py", f"{SEEDS.start}:{SEEDS.stop}", "--sample"],
                          capture_output=True, text=True, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
    print("counts: random steps:", done.stdout.splitlines()[-1])


def test_a_seed_is_one_script() -> None:
    assert generate(3).source() == generate(3).source() != generate(4).source()


def test_targets_and_layouts_of_rows_occur() -> None:
    """Padded rows in each dtype, what GEMMs take over, and the kernels of GPUs."""
    programs = [generate(seed) for seed in range(400)]
    words = {word for one in programs for word in dict(one.options).get("options", ())}
    assert {f"--row-alignment={n}" for n in (1, 32, 64, 128)} <= words
    assert sum(word.startswith("--epilogues=") for word in words) == 6
    gradients = [one for one in programs if any("gelu_tanh_backward" in word for word in dict(one.options).get("options", ()))]
    assert any("GELU('tanh')" in one.source() for one in gradients)
    emulated = [one for one in programs if ("target", "emulate:sm_90") in one.options]
    assert {"torch.float32", "torch.bfloat16"} <= {one.dtype for one in emulated}
    assert any(one.width % 8 and one.width > 32 and one.dtype == "torch.bfloat16" for one in programs)


@pytest.mark.parametrize("refusal", LISTED, ids=lambda refusal: refusal.pattern)
def test_refusal(refusal: Refusal, tmp_path) -> None:
    """Its example is refused by it."""
    from check import check
    script = tmp_path / "refused.py"
    script.write_text(refusal.program().source())
    texts = [one.text for one in check(script, ranks=refusal.ranks, sample=True) if one.kind == "refused"]
    assert texts and all(re.search(refusal.pattern, text) for text in texts)


# What a capture computes, and eager does not.
TRACED = "isinstance(out, torch._subclasses.FakeTensor)"


@pytest.mark.parametrize("line, kind", [
    (f"loss = loss * (1 + 1e-9 * {TRACED})", "wrong interpreter"),
    (f"loss = loss + {{True: None, False: 0.0}}[{TRACED}]", "unlisted"),
])
def test_failures_are_found(line: str, kind: str, tmp_path) -> None:
    from check import check
    script = tmp_path / "failing.py"
    script.write_text(small_program({"terms": (line,)}).source())
    assert any(one.signature().startswith(kind) for one in check(script, ranks=(), sample=True))


def test_roundings_reach_the_ranks_of_a_local_view(tmp_path) -> None:
    """Each has a thread of its own, and a mode is of a thread."""
    from eager import load, run_eager
    from roundings import Roundings
    script = tmp_path / "local.py"
    script.write_text(small_program({}, (("view", "local"),)).source())
    plain, other = (run_eager(load(script), torch.float32, 2, rounding=rounding) for rounding in (None, Roundings(0)))
    assert not torch.equal(plain.final["embed.weight"], other.final["embed.weight"])
    assert torch.allclose(plain.final["embed.weight"], other.final["embed.weight"])


@pytest.mark.parametrize("fused", [True, False])
def test_what_pytorchs_fused_optimizers_misread_is_no_test(fused: bool, tmp_path) -> None:
    from check import check
    program = small_program({"gradients": ("for p in model.parameters():", "    p.grad = p.grad.t().contiguous().t()")})
    program = dataclasses.replace(program, optimizer=f"SGD(model.parameters(), lr=0.1, fused={fused})")
    script = tmp_path / "strides.py"
    script.write_text(program.source())
    found = check(script, ranks=(), sample=True)
    assert ("a fused optimizer takes a gradient with strides" in found[0].text) == fused
    assert found[0].kind == ("invalid" if fused else "ok")


def test_a_crash_is_found(tmp_path) -> None:
    script = f"import sys\nsys.path.insert(0, {str(HERE)!r})\n" + """
import pathlib, run
from refusals import small_program
program = small_program({"terms": ("import os", "os.abort() if isinstance(out, torch._subclasses.FakeTensor) else 0")})
print(*(one.signature() for one in run.check_one(program, pathlib.Path(sys.argv[1]), (), True)))
"""
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True)
    assert done.stdout.startswith("crash signal # in the training process"), done.stdout + done.stderr


def test_what_a_failure_does_not_need_is_left_out() -> None:
    program = next(one for one in map(generate, range(1000)) if len(one.terms) > 1 and len(one.layers) > 2)
    needed = program.layers[1].code
    small = minimize(program, lambda candidate: any(piece.code == needed for piece in candidate.pieces()))
    assert [piece.code for piece in small.layers] == [needed] and not small.terms and small.steps == 1


def test_other_sentences_are_failures() -> None:
    assert not is_listed("error: certificate rule 7: command 76 reduces the gradients of unit0 again")
