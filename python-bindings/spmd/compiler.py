"""Runs spmd-compile, once for each content."""
from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Sequence

from .capture.package import StepPackage
from .tools import find_tool


class CompileError(RuntimeError):
    """spmd-compile refused the step; the message is its own."""


def cache_folder() -> Path:
    """Where compiled steps are kept: $XDG_CACHE_HOME/spmd, by default ~/.cache/spmd."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "spmd"


def compile_package(package: StepPackage, options: Sequence[str]) -> Path:
    """The artifact of a package, compiled with `options` of spmd-compile, without weights.

    Equal graph, equal options and the same compiler give the artifact that is in the cache.
    """
    compiler = find_tool("spmd-compile")
    stat = compiler.stat()
    identity = json.dumps([package.digest(), list(options), str(compiler), stat.st_size, stat.st_mtime_ns])
    key = hashlib.sha256(identity.encode()).hexdigest()[:32]
    artifact = cache_folder() / key / f"{package.step['name']}.spmd"
    if artifact.is_dir():
        return artifact
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".compiling.", dir=cache_folder()) as work:
        step, folder = Path(work) / f"{package.step['name']}.step", Path(work) / "result"
        package.save(step, weights=False)
        folder.mkdir()
        command = [str(compiler), str(step), "-o", str(folder / artifact.name), *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise CompileError(f"{' '.join(command)} exited with {done.returncode}\n{done.stderr.strip()}")
        try:
            folder.rename(artifact.parent)
        except OSError:
            if not artifact.is_dir():  # else another process was first, with the same content
                raise
    return artifact
