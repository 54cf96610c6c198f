"""A sample of random options (run.py), of all kinds of outcomes; and what is wrong is found."""
from __future__ import annotations

import collections
from pathlib import Path

import pytest
import run


@pytest.fixture(scope="module")
def runner(tmp_path_factory) -> run.Runner:
    return run.Runner(tmp_path_factory.mktemp("options"))


def test_agree_or_are_refused(runner, whole: bool) -> None:
    verdicts = collections.Counter()
    for seed in range(600 if whole else 24):
        case = run.make(seed)
        verdict, text = runner.verdict(case, seed % 8 == 0)
        assert verdict != "failure", f"{run.shown(seed, case)}\n{text}"
        verdicts[verdict] += 1
    assert min(verdicts["ok"], verdicts["refused"]) > 3


def test_a_wrong_number_is_found(runner, tmp_path: Path) -> None:
    """Of a program that is compared with another one."""
    other = run.Runner(tmp_path)
    case = run.Case("mlp-sgd-foreach", ("--ranks=2",), None, False)
    assert other.verdict(case, False) == ("ok", "")
    text = (tmp_path / "mlp-sgd-foreach.mlir").read_text()
    assert "aten.relu " in text
    (tmp_path / "mlp-sgd-foreach.mlir").write_text(text.replace("aten.relu ", "aten.sigmoid "))
    verdict, what = other.verdict(case, False)
    assert verdict == "failure" and "spmd-interpret: exit code 1" in what
