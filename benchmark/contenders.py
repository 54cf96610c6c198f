"""What the benchmarks of the host target share."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).resolve().parent.parent
# glibc gives large tensors back to the system after every step by default, and eager PyTorch then pays a page fault per
# 4 KiB: without these settings we would be measuring that, in our favour.
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "8589934592", "MALLOC_TOP_PAD_": "268435456"}


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


def compile_step(step: Callable, model: Any, optimizer: Any, args: tuple, artifact: Path, *options: str) -> None:
    """Captures a training step and compiles it to `artifact`."""
    import spmd

    package = artifact.with_suffix(".step")
    if not package.exists():
        spmd.capture(step, model, optimizer, *args, name=artifact.stem).save(str(package))
    subprocess.run([str(find_build() / "bin" / "spmd-compile"), str(package), "-o", str(artifact), "--quiet", *options],
                   check=True)
