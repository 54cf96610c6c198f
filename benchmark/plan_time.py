"""What a step of a plan takes on a machine, by the cost model: what schedules are compared with where there are no GPUs.

    spmd-compile NAME.step --ranks=64 --compile-to=plan --quiet -o plan.mlir
    python benchmark/plan_time.py plan.mlir [--machine=NAME|FILE] [--network=NAME|FILE]

Prints one line of `spmd-report time` (docs/cost.md): nothing here is measured. The machine is `reference-h100` unless
another one is named, whose prices are the same for all schedules: differences of some per cent between two of them mean
something, a time by itself does not.
"""
from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

BUILT = Path(__file__).parent.parent / "build" / "bin"


def program(name: str) -> str:
    """The tool of the path, or that of the build folder."""
    return shutil.which(name) or str(BUILT / name)


def model(plan: Path, *options: str) -> dict[str, Any]:
    """The report of `spmd-report time --json` of the IR of a plan. Raises CalledProcessError for a bad plan or option."""
    with tempfile.TemporaryDirectory() as folder:
        for action, name in (("--plan-to-json", "train_step.plan.json"), ("--plan-to-manifest", "manifest.json")):
            subprocess.run([program("spmd-translate"), action, plan, "-o", f"{folder}/{name}"], check=True)
        written = subprocess.run([program("spmd-report"), "time", folder, "--json", *options], check=True,
                                 stdout=subprocess.PIPE)
    return json.loads(written.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path, help="the IR of a plan")
    parser.add_argument("--machine", default="reference-h100", help="as spmd-report time takes it")
    parser.add_argument("--network", help="as spmd-report time takes it (default: the machine's)")
    options = parser.parse_args()
    network = [f"--network={options.network}"] if options.network else []
    try:
        time = model(options.program, f"--machine={options.machine}", *network)
    except subprocess.CalledProcessError as problem:
        raise SystemExit(problem.returncode) from None
    print(f"{time['ranks']} ranks: {time['step_ms']:.1f} ms, kernels {time['kernels_ms']:.1f}, idle {time['idle_ms']:.1f} "
          f"(modelled on {time['machine']}, {time['network']})")


if __name__ == "__main__":
    main()
