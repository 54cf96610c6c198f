"""check_enumerations.py ROOT DOCS: the element types, reductions, activations, collectives and modes that the schemas in
DOCS list are those of the sources below ROOT."""
from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any


def listed(file: Path, macro: str, pattern: str) -> list[str]:
    return re.findall(rf"^{macro}\({pattern}\)", file.read_text(), re.M)


def main(root: Path, docs: Path) -> int:
    runtime = root / "include/spmd/Runtime"
    dtypes = listed(runtime / "dtypes.def", "SPMD_DTYPE", r'.*"(\w+)", "\w+"')
    floating = listed(runtime / "dtypes.def", "SPMD_DTYPE", r'.*, 1, "(\w+)", "\w+"')
    kinds = runtime / "Core/Kinds.def"
    options = (root / "include/spmd/ShardUnits/UnitOptions.h").read_text()
    modes = re.findall(r'kModes\[\] = "(.*)";', options)[0].split(", ")
    wanted: dict[str, dict[str, list[str]]] = {
        "plan": {"dtype": dtypes, "gemm/dtype": floating,
                 "reduction": listed(kinds, "SPMD_REDUCTION_KIND", r"\w+, (\w+)"),
                 "gemm/activation": listed(kinds, "SPMD_ACTIVATION", r"\w+, (\w+)"),
                 "gemm/bias_gradient_of": listed(kinds, "SPMD_GEMM_OPERAND", r"\w+, (\w+)"),
                 "attention/mask": listed(kinds, "SPMD_ATTENTION_MASK", r"\w+, (\w+)")},
        "manifest": {"dtype": dtypes, "gemm/dtype": floating,
                     "reduction": listed(kinds, "SPMD_REDUCTION_KIND", r"\w+, (\w+)"),
                     "gemm/activation": listed(kinds, "SPMD_ACTIVATION", r"\w+, (\w+)"),
                     "gemm/bias_gradient_of": listed(kinds, "SPMD_GEMM_OPERAND", r"\w+, (\w+)"),
                     "attention/mask": listed(kinds, "SPMD_ATTENTION_MASK", r"\w+, (\w+)"), "mode": modes},
        "step-format": {"dtype": dtypes, "default_dtype": floating}}
    problems = []
    for name, lists in wanted.items():
        schema = json.loads((docs / f"{name}.schema.json").read_text())
        for where, expected in lists.items():
            found: Any = schema["properties" if where in ("default_dtype", "mode") else "$defs"]
            first, *rest = where.split("/")
            found = found[first]
            for part in rest:
                found = found["properties"][part]
            if sorted(found["enum"]) != sorted(expected):
                problems.append(f"{name}.schema.json: {where} is {found['enum']}, in C++ {expected}")
    commands = json.loads((docs / "plan.schema.json").read_text())
    listed_commands = commands["properties"]["commands"]["items"]["oneOf"]
    for collective in listed(kinds, "SPMD_COLLECTIVE_KIND", r"\w+, (\w+), \w+, \w+, \w+"):
        if {"$ref": f"#/$defs/{collective}"} not in listed_commands:
            problems.append(f"plan.schema.json: has no command {collective}")
    print(*problems, f"{sum(map(len, wanted.values()))} lists", sep="\n")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
