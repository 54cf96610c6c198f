"""What the benchmarks of the host target share."""
from __future__ import annotations

import argparse
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).resolve().parent.parent
# glibc gives large tensors back to the system after every step by default, and eager PyTorch then pays a page fault per
# 4 KiB: without these settings we would be measuring that, in our favour.
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "8589934592",
             "MALLOC_TOP_PAD_": "268435456"}


def find_build() -> Path:
    """The build folder whose programs are measured: SPMD_BUILD, or build, or build/dev."""
    given = os.environ.get("SPMD_BUILD")
    folders = [Path(given)] if given else [ROOT / "build", ROOT / "build" / "dev"]
    for folder in folders:
        if (folder / "bin" / "spmd-compile").exists():
            return folder
    sys.exit(f"no bin/spmd-compile in {' or '.join(map(str, folders))}; build first, or set SPMD_BUILD")


def rerun_with_tuned_allocator() -> None:
    """Starts this program again where its environment lacks ALLOCATOR; makes our modules importable."""
    if any(os.environ.get(key) != value for key, value in ALLOCATOR.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ALLOCATOR})
    os.environ["SPMD_RUNTIME"] = str(find_build() / "lib" / "libspmd_runtime.so")
    sys.path.insert(0, str(ROOT / "examples"))
    sys.path.insert(0, str(ROOT / "python-bindings"))


def compile_step(step: Callable, model: Any, optimizer: Any, args: tuple, artifact: Path, *options: str,
                 precision: str | None = None) -> None:
    """Captures a training step and compiles it to `artifact`."""
    import spmd

    package = artifact.with_suffix(".step")
    if not package.exists():
        spmd.capture(step, model, optimizer, *args, name=artifact.stem, precision=precision).save(str(package))
    subprocess.run([str(find_build() / "bin" / "spmd-compile"), str(package), "-o", str(artifact), "--quiet", *options],
                   check=True)


def start(description: str, cases: Callable[[], list], rounds: int, seconds: float,
          dtypes: list[str] | None = None) -> tuple[argparse.Namespace, list]:
    """Options of a benchmark, and the cases (with a name each) that they choose; the allocator is tuned then."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=[""], help="parts of names")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seconds", type=float, default=seconds,
                        help="time for each contender in a round; once at least")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    if dtypes:
        parser.add_argument("--dtype", choices=dtypes, default=dtypes[0])
    options = parser.parse_args()
    rerun_with_tuned_allocator()
    warnings.filterwarnings("ignore")
    chosen = [case for case in cases() if any(part in case.name for part in options.cases)]
    if not chosen:
        parser.error(f"no case has {' or '.join(options.cases)} in its name; there are: "
                     + ", ".join(case.name for case in cases()))
    return options, chosen
