"""docs/coverage.md: the committed results, read and written.

    python test/Coverage/table.py [FAMILY...]     runs the families (all of them without an argument) and writes the table
"""
from __future__ import annotations

import importlib
import os
import re
import sys
from pathlib import Path

FAMILIES = {
    "pointwise": "Pointwise arithmetic, comparisons and casts",
    "activations": "Activation functions",
    "losses": "Losses",
    "reductions": "Reductions and scans",
    "views": "Views, copies, pads, factories",
    "indexing": "Indexing: gather, scatter, index",
    "sorting": "Sorting",
    "nn": "Convolutions, pools, normalizations, resampling",
    "matmul": "Matrix products",
    "random_numbers": "Random numbers",
}
COLUMNS = ("import", "shard rule", "interpreter", "host")
TABLE = Path(os.environ.get("SPMD_SOURCE", Path(__file__).parents[2])) / "docs" / "coverage.md"

HEADER = """# Coverage of ATen

This page lists the functions of PyTorch that work, op by op. It is for users who look for an op, and for developers who add one. It is
generated from results, never edited ([how](../test/Coverage/README.md)). A test runs all of it, and fails if the page claims too much.

A row is one function of PyTorch. Its samples come from PyTorch's own operator database, or from ours if that has none. They vary
shapes, broadcasting, options and the dtypes float64, int64 and bool. float64 samples include gradients for random cotangents. The
second column has the ATen ops in the capture of forward and backward. Results without elements are omitted, because there is
nothing to compare.

| column | `yes` means |
| --- | --- |
| import | the captured step is imported as IR |
| shard rule | the rule of each ATen op agrees with execution, with each loop cut in 2 and in 3 |
| interpreter | values and gradients are PyTorch's, in float64, to 1e-12 |
| host | a program for 2 ranks, with all inputs cut along the first dim, in float32, gives PyTorch's values and gradients |

`replicated` in the second column: some op has no rule, and runs on whole operands only. `no`: an error or a difference; the last column has
it. `–`: an earlier stage failed. `masked_select`, `unique` and `nonzero` stay `no`: memory is planned to the byte before a step
runs, so no shape may depend on data.
"""


def row(name: str, result) -> str:
    cells = [name, " ".join(f"`{op.removeprefix('aten.')}`" for op in result.ops), *result.cells.values(),
             re.sub(r"[|\n]", " ", result.failure)]
    return "| " + " | ".join(cells) + " |"


def read() -> dict[str, list[str]]:
    """The rows of each family as they are committed."""
    rows: dict[str, list[str]] = {family: [] for family in FAMILIES}
    family = None
    for line in TABLE.read_text().splitlines() if TABLE.exists() else ():
        if line.startswith("## "):
            family = next((f for f, title in FAMILIES.items() if line.startswith(f"## {title}")), None)
        elif family and line.startswith("| ") and not line.startswith(("| op ", "| --- ")):
            rows[family].append(line)
    return rows


def cells(rows: list[str]) -> dict[str, dict[str, str]]:
    """name -> column -> cell, of rows."""
    table = {}
    for line in rows:
        name, _, *rest = [cell.strip() for cell in line.strip("|").split(" | ")]
        table[name] = dict(zip(COLUMNS, rest))
    return table


def write(rows: dict[str, list[str]]) -> None:
    text = HEADER
    for family, title in FAMILIES.items():
        lines = rows[family]
        done = sum(list(entry.values())[-1] == "yes" for entry in cells(lines).values())
        text += f"\n## {title}: {done} of {len(lines)} on every target\n\n"
        text += "| op | ATen ops | import | shard rule | interpreter | host | why not |\n| --- | --- | --- | --- | --- | --- | --- |\n"
        text += "".join(line + "\n" for line in lines)
    TABLE.write_text(text)


def run(family: str) -> list[str]:
    """The rows of a family as they are now."""
    from harness import run_family
    ops = importlib.import_module(family).OPS
    results = run_family(ops, cells(read()[family]))
    return [row(name, result) for name, result in results.items()]


def check(family: str) -> None:
    """Fails when something that the table says works does not, or an op is not in the table.

    What works better than the table says is printed, not failed; the numbers in the last column are not compared: both can
    depend on the processor.
    """
    lines = run(family)
    now, committed = cells(lines), cells(read()[family])
    order = {"no": 0, "\N{EN DASH}": 0, "replicated": 1, "yes": 2}
    rank = lambda cell: order.get(cell, 0)  # noqa: E731
    worse = [next(line for line in lines if line.startswith(f"| {name} |")) for name, entry in now.items()
             if name not in committed or any(rank(entry[c]) < rank(committed[name][c]) for c in COLUMNS)]
    for name, entry in now.items():
        if any(rank(entry[c]) > rank(committed.get(name, entry)[c]) for c in COLUMNS):
            print(f"{name}: works better than docs/coverage.md says; run python test/Coverage/table.py {family}")
    gone = sorted(set(committed) - set(now))
    assert not worse and not gone, (f"docs/coverage.md says more than the compiler does; mend the op, or run "
                                    f"python test/Coverage/table.py {family}\n  now:  " + "\n  now:  ".join(worse) +
                                    f"\n  gone: {gone}")


if __name__ == "__main__":
    wanted = sys.argv[1:] or list(FAMILIES)
    unknown = [family for family in wanted if family not in FAMILIES]
    if unknown:
        sys.exit(f"table.py: no family {', '.join(unknown)}; there are {', '.join(FAMILIES)}")
    for family in wanted:
        rows = run(family)
        write(read() | {family: rows})
