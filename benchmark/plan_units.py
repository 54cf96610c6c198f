"""What the policy `auto` costs beside other shard units, by the cost model: nothing here is measured.

    python examples/llama3_8b.py --batch 64 --save llama3-8b.step
    python benchmark/plan_units.py llama3-8b.step --ranks=64 [--network=network-100g]

Each row is a plan of the same step: one unit, the units of `auto`, and two, three, four of them joined. The last column is
the modelled step beside the fastest row's.
"""
from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from plan_time import program, model


def units_of(step: Path, ranks: int) -> list[list[str]]:
    """The modules of each unit of `auto` but the root, in the order of the plan."""
    report = json.loads(subprocess.run([program("spmd-report"), "units", step, "--policy=auto", f"--ranks={ranks}", "--json"],
                                       check=True, stdout=subprocess.PIPE).stdout)
    return [unit["modules"] for unit in report["units"] if unit["name"]]


def joined(units: list[list[str]], number: int) -> dict:
    """A plan file whose units are `number` of `units` each."""
    groups = [sum(units[i:i + number], []) for i in range(0, len(units), number)]
    return {"format": "spmd-shard-units", "version": 1, "rules": [{"module": group} for group in groups]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", type=Path, help="a step package")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--target", default="cuda:sm_90", help="as spmd-compile takes it (default cuda:sm_90)")
    parser.add_argument("--network", help="as spmd-report time takes it (default: the machine's)")
    options = parser.parse_args()
    network = [f"--network={options.network}"] if options.network else []
    units = units_of(options.step, options.ranks)
    rows: list[tuple[str, dict]] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in (0, 1, 2, 3, 4):
            policy = ["--policy=none"] if number == 0 else ["--policy=auto"]
            if number > 1:
                Path(folder, "units.json").write_text(json.dumps(joined(units, number)))
                policy = [f"--policy-file={folder}/units.json"]
            subprocess.run([program("spmd-compile"), options.step, f"--ranks={options.ranks}", f"--target={options.target}",
                            *policy, "--compile-to=plan", "--quiet", "-o", f"{folder}/plan.mlir"], check=True)
            rows.append((f"{number} of auto" if number > 1 else policy[0], model(Path(folder, "plan.mlir"), *network)))
    best = min(time["step_ms"] for _, time in rows)
    print(f"{len(units)} units of auto; {options.ranks} ranks, modelled on {rows[0][1]['machine']}, {rows[0][1]['network']}")
    for name, time in rows:
        print(f"{name:14} {time['step_ms']:8.1f} ms  idle {time['idle_ms']:6.1f} ms  {time['step_ms'] / best:.3f}")


if __name__ == "__main__":
    main()
