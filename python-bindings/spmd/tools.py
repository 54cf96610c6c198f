"""Where our programs and libraries are."""
from __future__ import annotations

import os
import shutil
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_BUILD = _PACKAGE.parent.parent / "build"


class ToolError(RuntimeError):
    """A program or library of ours is nowhere to be found."""


def find_tool(name: str) -> Path:
    """A program: its environment variable (SPMD_COMPILE), beside the package, on PATH, or in the checkout's build."""
    places = [_PACKAGE / "bin" / name, shutil.which(name), _BUILD / "bin" / name]
    return _find(name, places, name.upper().replace("-", "_"), "put it on PATH")


def find_runtime() -> Path:
    """The runtime's library."""
    return find_library("libspmd_runtime.so", "SPMD_RUNTIME")


def find_library(name: str, variable: str) -> Path:
    """A library: the environment variable, beside the package, beside spmd-run, or in the checkout's build."""
    program = shutil.which("spmd-run")
    beside = Path(program).resolve().parent.parent / "lib" / name if program else None
    return _find(name, [_PACKAGE / "lib" / name, beside, _BUILD / "lib" / name], variable, "put spmd-run on PATH")


def _find(name: str, places: list, variable: str, hint: str) -> Path:
    named = os.environ.get(variable)
    if named:
        if not Path(named).is_file():
            raise ToolError(f"{variable} is {named!r}, which is no file")
        return Path(named)
    found = next((Path(place) for place in places if place and Path(place).is_file()), None)
    if found is None:
        raise ToolError(f"{name} is not found: set {variable}, {hint}, or build the checkout (scripts/setup)")
    return found
