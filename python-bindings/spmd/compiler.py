"""Runs spmd-compile, once for each content."""
from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Sequence

from .capture.package import StepPackage
from .remarks import CompilerWarning, remark
from .tools import find_tool


class CompileError(RuntimeError):
    """spmd-compile refused the step; the message is its own."""


def cache_folder() -> Path:
    """Where compiled steps are kept: $XDG_CACHE_HOME/spmd, by default ~/.cache/spmd."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "spmd"


def compile_package(package: StepPackage, options: Sequence[str], plan: dict[str, Any] | None = None) -> Path:
    """The artifact of a package, compiled with `options` of spmd-compile, without weights.

    `plan` is the content of a plan file, which then decides the shard units.

    Equal graph, equal options and the same compiler give the artifact that is in the cache. The compiler's warnings are
    given as CompilerWarning, also when it did not run again.
    """
    compiler = find_tool("spmd-compile")
    stat = compiler.stat()
    identity = json.dumps([package.digest(), list(options), plan, str(compiler), stat.st_size, stat.st_mtime_ns])
    key = hashlib.sha256(identity.encode()).hexdigest()[:32]
    artifact = cache_folder() / key / f"{package.step['name']}.spmd"
    if not artifact.is_dir():
        _compile(package, [str(compiler)], list(options), plan, artifact)
    for warning in _warnings(_said(artifact, "diagnostics.txt")):
        remark(warning, CompilerWarning)
    return artifact


def report_of(artifact: Path) -> str:
    """What spmd-compile printed about an artifact of the cache: units, collectives, arena."""
    return _said(artifact, "report.txt")


def plan_of(artifact: Path) -> dict[str, Any]:
    """The plan of an artifact of the cache, as spmd-compile --json writes it."""
    return json.loads(_said(artifact, "plan.json"))


def _compile(package: StepPackage, compiler: list[str], options: list[str], plan: dict[str, Any] | None,
             artifact: Path) -> None:
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".compiling.", dir=cache_folder()) as work:
        step, folder = Path(work) / f"{package.step['name']}.step", Path(work) / "result"
        package.save(step, weights=False)
        folder.mkdir()
        if plan is not None:
            (Path(work) / "plan.json").write_text(json.dumps(plan, indent=2))
            options = [*options, f"--policy-file={Path(work) / 'plan.json'}"]
        command = [*compiler, str(step), "-o", str(folder / artifact.name), *options, f"--json={folder / 'plan.json'}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise CompileError(f"{' '.join(command)} exited with {done.returncode}\n{done.stderr.strip()}")
        (folder / "report.txt").write_text(done.stdout)
        (folder / "diagnostics.txt").write_text(done.stderr)
        try:
            folder.rename(artifact.parent)
        except OSError:
            if not artifact.is_dir():  # else another process was first, with the same content
                raise


def _said(artifact: Path, name: str) -> str:
    file = artifact.parent / name
    return file.read_text() if file.is_file() else ""


def _warnings(diagnostics: str) -> list[str]:
    """The warnings among a compiler's diagnostics, each with the indented lines that belong to it."""
    found: list[str] = []
    is_open = False
    for line in diagnostics.splitlines():
        if line.startswith(" "):
            if is_open:
                found[-1] += "\n" + line
            continue
        is_open = "warning: " in line
        if is_open:
            found.append(line.replace("warning: ", "", 1))
    return found
