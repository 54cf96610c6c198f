"""Passes that run on the partitioned program, between two phases of spmd-compile: functions in Python, or text that names
passes of MLIR's, of this compiler or of a plug-in."""
from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Callable, Sequence, Union

from .program import Program, read_program
from .tools import find_tool

Pass = Union[str, Callable[[Program], "Program | None"]]


class PassError(RuntimeError):
    """A pass gave a program that spmd-verify-partition refuses, or that is none."""


def name_of_pass(function: Any) -> str:
    if isinstance(function, str):
        return repr(function)
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code else name


def run_passes(passes: Sequence[Pass], partitioned: Path, plugins: Sequence[str] = ()) -> str:
    """The IR of a partitioned program after the passes, each verified. `plugins`: words that load those with passes.

    Raises:
      PassError: naming the pass, with what the verifier says.
    """
    text = _opt(partitioned, "", ["--mlir-print-op-generic"], "reading the partitioned program")
    for one in passes:
        name = f"pass {name_of_pass(one)}"
        if isinstance(one, str):
            text = _opt(None, text, [*plugins, f"--pass-pipeline=builtin.module({one},spmd-record-values)", "--mlir-print-op-generic"],
                        f"{name} failed")
        else:
            text = _run(one, text, name)
        text = _opt(None, text, ["--spmd-verify-partition", "--mlir-print-op-generic"],
                    f"{name} gave a program that spmd-verify-partition refuses")
    # What the program computes now is what later phases are held to.
    return _opt(None, text, ["--spmd-record-values"], "recording what the program computes")


def _run(function: Callable[[Program], Program | None], text: str, name: str) -> str:
    program = read_program(text)
    returned = function(program)
    if returned is not None and not isinstance(returned, Program):
        raise PassError(f"{name} returns a {type(returned).__name__}; return the program, or nothing when it was changed in "
                        "place")
    try:
        return str(returned or program)
    except (TypeError, ValueError) as error:
        raise PassError(f"{name}: {error}") from error


def _opt(file: Path | None, text: str, options: list[str], what: str) -> str:
    done = subprocess.run([str(find_tool("spmd-opt")), str(file or "-"), "--mlir-print-debuginfo", *options], input=text,
                          capture_output=True, text=True)
    if done.returncode:
        said = done.stderr.strip().replace("<stdin>", "the program")
        raise PassError(f"{what}:\n{said}")
    return done.stdout
