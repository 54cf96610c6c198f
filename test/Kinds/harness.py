"""What the generators of this folder share: run cases, compare with eager, count outcomes, keep the counts."""
from __future__ import annotations

import argparse
import collections
import json
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

import spmd

REFUSALS = (spmd.CaptureError, spmd.CompileError, spmd.RunError, ValueError, NotImplementedError)


class Outcome(NamedTuple):
    """`kind`: "right", "refused" or "wrong"; `text`: why."""

    kind: str
    text: str = ""


def compare(expected: Sequence[Any], found: Sequence[Any], tolerance: float) -> Outcome:
    """Whether two lists of numbers or tensors are equal, to a relative `tolerance` of the largest entry of each."""
    if len(expected) != len(found):
        return Outcome("wrong", f"{len(found)} values, eager has {len(expected)}")
    for number, (one, other) in enumerate(zip(expected, found)):
        one, other = (torch.as_tensor(t, dtype=torch.float64).detach() for t in (one, other))
        if one.shape != other.shape:
            return Outcome("wrong", f"value {number} has shape {list(other.shape)}, eager's {list(one.shape)}")
        distance = float((one - other).abs().max()) if one.numel() else 0.0
        if not distance <= tolerance * max(1e-30, float(one.abs().max()) if one.numel() else 0.0):
            return Outcome("wrong", f"value {number} differs by {distance:.1e}")
    return Outcome("right")


def outcome_of(case: Callable[[], Outcome]) -> Outcome:
    """The outcome of a case. An error of the compiled step is a refusal, any other is wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return case()
        except REFUSALS as error:
            return Outcome("refused", _first_line(str(error)))
        except Exception as error:  # only errors that are written for users have a hint
            kind = "refused" if "\n  hint: " in str(error) else "wrong"
            return Outcome(kind, _first_line(f"{type(error).__name__}: {error}"))


def _first_line(text: str) -> str:
    """The first line without the names of temporary folders."""
    return re.sub(r"'/\S*/([^/]*)'", r"'\1'", text.splitlines()[0] if text else "")[:200]


def main(name: str, names: Sequence[str], case: Callable[[str], Outcome]) -> None:
    """The command line of a generator: runs the named cases, all with --all, and prints those that are not right."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="cases; none: every tenth")
    parser.add_argument("--all", action="store_true", help="all cases")
    parser.add_argument("--write", metavar="WHEN", help=f"keep the counts in {name}.json as those of WHEN: before, after")
    given = parser.parse_args()
    torch.set_num_threads(1)
    counts: collections.Counter[str] = collections.Counter()
    others: dict[str, str] = {}
    for one in given.names or (names if given.all else names[::10]):
        found = outcome_of(lambda: case(one))
        counts[found.kind] += 1
        if found.kind != "right":
            others[one] = f"{found.kind}: {found.text}"
            print(f"{one}  {others[one]}", flush=True)
    print(dict(sorted(counts.items())))
    if given.write:
        file = Path(__file__).resolve().parent / f"{name}.json"
        kept = json.loads(file.read_text()) if file.exists() else {}
        kept[given.write] = {"cases": f"{counts.total()} of {len(names)}", "counts": dict(sorted(counts.items())), "others": others}
        file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
