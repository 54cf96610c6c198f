"""The tables that put our modes, options, precision and optimizers beside PyTorch's: each row names tests that there are,
and nothing that PyTorch has is left out."""
from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path

import pytest
import torch
from torch.distributed.fsdp import FSDPModule, MixedPrecision, MixedPrecisionPolicy, ShardingStrategy

import spmd
from spmd.unit_options import MODES

ROOT = Path(__file__).parent.parent.parent
TABLES = [("shard-units.md", "| placement | of a parameter |", 4), ("shard-units.md", "| option | values |", 5),
          ("shard-units.md", "| mode | PyTorch |", 8), ("precision.md", "| ours | FSDP2, FSDP1 |", 8),
          ("shard-units.md", "| `FSDPModule` | here |", 8), ("optimizers.md", "| optimizer | state and update |", 7)]


def table(document: str, head: str) -> list[list[str]]:
    """Its rows, as cells."""
    lines = (ROOT / "docs" / document).read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(head))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    assert rows[0][-1] == "tests"
    return rows[2:]


def is_test(name: str) -> bool:
    """A path, or a file's name that no other file in test/ has; "::FUNCTION" behind a Python test."""
    path, _, function = name.partition("::")
    found = [ROOT / path] if "/" in path else list((ROOT / "test").rglob(path))
    return len(found) == 1 and found[0].is_file() and (
        not function or f"\ndef {function}(" in found[0].read_text())


@pytest.mark.parametrize("document, head, least", TABLES)
def test_each_row_names_its_tests(document: str, head: str, least: int) -> None:
    rows = table(document, head)
    assert len(rows) >= least
    for row in rows:
        named = re.findall(r"`([^`]+)`", row[-1])
        assert named and all(map(is_test, named)), row


def test_what_is_no_test() -> None:
    assert is_test("test_precision.py::test_errors") and is_test("test/Transforms/Partition/modes.test")
    assert not any(map(is_test, ("test_precision.py::errors", "nowhere.test", "README.md", "Nowhere/modes.test")))


def words(rows: list[list[str]]) -> set[str]:
    return set(re.findall(r"\w+", " ".join(cell for row in rows for cell in row)))


def test_all_of_pytorch_is_there() -> None:
    modes = words(table(*TABLES[2][:2]))
    assert {strategy.name for strategy in ShardingStrategy} | set(MODES) <= modes
    fields = {field.name for of in (MixedPrecision, MixedPrecisionPolicy) for field in dataclasses.fields(of)}
    assert fields <= words(table(*TABLES[3][:2]))
    classes = {name for name, of in vars(torch.optim).items() if inspect.isclass(of) and issubclass(of, torch.optim.Optimizer)}
    assert classes - {"Optimizer"} <= set(re.findall(r"\w+", (ROOT / "docs/optimizers.md").read_text()))


def test_methods_of_fsdp_modules() -> None:
    """All have a row, and a module that is annotated has none of them."""
    methods = {name for name in vars(FSDPModule) if not name.startswith("_")}
    assert methods <= words(table(*TABLES[4][:2]))
    module = spmd.fully_shard(torch.nn.Linear(4, 4))
    for name in methods:
        with pytest.raises(AttributeError, match=name):
            getattr(module, name)
