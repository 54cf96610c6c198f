"""What spmd-compile says, in parts: the lines of --diagnostics=json (docs/diagnostics.md)."""
from __future__ import annotations

import dataclasses
import json
from typing import Any, Iterable


@dataclasses.dataclass(frozen=True)
class Frame:
    """A line of the user's program."""

    file: str
    line: int
    column: int


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """One diagnostic.

    `severity` is error, warning, remark or note; `code` what programs react to, or ""; `location` the place in the
    user's program, innermost first, `module` the path of the module there; `hint` what the user can change, or "";
    `rendered` all of it as spmd-compile prints it.
    """

    severity: str
    message: str
    code: str = ""
    module: str = ""
    location: tuple[Frame, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    hint: str = ""
    rendered: str = ""


@dataclasses.dataclass(frozen=True)
class Compilation:
    """A run of spmd-compile that ended: its words, its exit code (negative: the number of a signal), the tables that it
    printed, all of its standard error, and its diagnostics."""

    command: list[str]
    exit_code: int
    tables: str
    said: str
    diagnostics: list[Diagnostic]


def read_diagnostics(lines: str) -> list[Diagnostic]:
    """The diagnostics of a file. A line that a compiler did not finish, because it died, is left out."""
    return [_read(json.loads(line)) for line in lines.split("\n")[:-1]]


def write_diagnostics(diagnostics: Iterable[Diagnostic]) -> str:
    """The inverse of read_diagnostics."""
    return "".join(json.dumps(dataclasses.asdict(d)) + "\n" for d in diagnostics)


def _read(entry: dict[str, Any]) -> Diagnostic:
    known = {field.name for field in dataclasses.fields(Diagnostic)}
    values = {name: value for name, value in entry.items() if name in known}
    values["location"] = tuple(Frame(**frame) for frame in entry.get("location", ()))
    values["notes"] = tuple(_read(note) for note in entry.get("notes", ()))
    values["rendered"] = entry.get("rendered", "").rstrip("\n")
    return Diagnostic(**values)
