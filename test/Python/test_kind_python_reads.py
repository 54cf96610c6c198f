"""A sample of test/Kinds/python_reads.py: numbers that Python reads or writes in a step are those of eager, call by call."""
from __future__ import annotations

import sys
from typing import Any

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "test/Kinds"))
from programs import choose, run  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
SEEDS = [4, 9, 11]


@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_that_change(seed: int) -> None:
    spec = choose.draw(seed)
    assert run.outcome(spec) == run.Outcome("right"), spec


@pytest.mark.parametrize("write", ["attribute += 1", "every second call", "property that counts its reads", "list.append"])
def test_writes(write: str) -> None:
    """Those of eager, or an error before the first step."""
    spec = _with(write=write)
    found = run.outcome(spec)
    assert found.kind == "right" or (found.kind == "refused" and found.text.startswith("call 0: ")), found


def _with(**pieces: Any) -> choose.Spec:
    """The simplest program with some pieces."""
    keys = ("read", "role", "site", "library") if "write" in pieces else \
        [key for key in choose.SIMPLEST if key != "read"]
    return {"style": "method", "numbers": [{**{key: choose.SIMPLEST[key] for key in keys}, **pieces}]}


def test_each_piece_has_a_program() -> None:
    """A piece that no program has would never be tested."""
    for kind in choose.KINDS:
        drawn = {number[kind] for spec in choose.each(kind) for number in spec["numbers"]}
        assert drawn == set(choose.KINDS[kind]), kind


def test_a_stale_number_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the comparison is for: a compiled step that misses a change."""
    spec = _with(place="slot")
    compile_ = run.spmd.compile

    def stale(step: Any, **options: Any) -> Any:
        """A compiled step that gets its number once."""
        compiled = compile_(step, **options)
        trainer = step.__self__
        trainer.own_0 = type(trainer.own_0)()
        return compiled

    monkeypatch.setattr(run.spmd, "compile", stale)
    assert run.outcome(spec).kind == "wrong"
    assert run.name_of_kind(spec) == "slot"
