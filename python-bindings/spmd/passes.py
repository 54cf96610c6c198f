"""Passes written in Python: functions of the partitioned program, run between two phases of spmd-compile."""
from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Callable, Sequence

from .program import Program, read_program
from .tools import find_tool

Pass = Callable[[Program], "Program | None"]


class PassError(RuntimeError):
    """A pass gave a program that spmd-verify-partition refuses, or that is none."""


def name_of_pass(function: Any) -> str:
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code else name


def run_passes(passes: Sequence[Pass], partitioned: Path) -> str:
    """The IR of a partitioned program after the passes, each verified.

    Raises:
      PassError: naming the pass, with what the verifier says.
    """
    text = _opt(partitioned, "", ["--mlir-print-op-generic"], "reading the partitioned program")
    for function in passes:
        program = read_program(text)
        returned = function(program)
        if returned is not None and not isinstance(returned, Program):
            raise PassError(f"pass {name_of_pass(function)} returns a {type(returned).__name__}; return the program, or "
                            "nothing when it was changed in place")
        try:
            changed = str(returned or program)
        except (TypeError, ValueError) as error:
            raise PassError(f"pass {name_of_pass(function)}: {error}") from error
        text = _opt(None, changed, ["--spmd-verify-partition", "--mlir-print-op-generic"],
                    f"pass {name_of_pass(function)} gave a program that spmd-verify-partition refuses")
    # What the program computes now is what later phases are held to.
    return _opt(None, text, ["--spmd-record-values"], "recording what the program computes")


def _opt(file: Path | None, text: str, options: list[str], what: str) -> str:
    done = subprocess.run([str(find_tool("spmd-opt")), str(file or "-"), "--mlir-print-debuginfo", *options], input=text,
                          capture_output=True, text=True)
    if done.returncode:
        said = done.stderr.strip().replace("<stdin>", "the program")
        raise PassError(f"{what}:\n{said}")
    return done.stdout
