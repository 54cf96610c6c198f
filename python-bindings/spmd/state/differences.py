"""The differences between what a training has and what a source of values has: an error, or a remark."""
from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ..remarks import remark
from ..tensor_info import TensorInfo
from .keys import key_of, name_list, place_of
from .source import Source


@dataclasses.dataclass(frozen=True)
class Differences:
    """`unfit`: keys with the shapes or types that differ. `missing`: keys that the source lacks. `unexpected`: keys that
    only the source has."""

    unfit: list[str]
    missing: list[str]
    unexpected: list[str]


def check_differences(source: Source, found: Differences, strict: bool) -> None:
    """Checks that a source can be loaded. Not `strict`: a Remark names what is not loaded.

    Raises:
      ValueError: tensors do not fit; `strict`: also, they are missing or unexpected. All of them are listed.
    """
    problems = [f"it has {name_list(found.unfit)}"] * bool(found.unfit)
    if strict:
        problems += [f"it lacks {name_list(found.missing)}"] * bool(found.missing)
        problems += [f"unexpected {name_list(found.unexpected)}"] * bool(found.unexpected)
    if problems:
        hint = "" if found.unfit else "\n  hint: strict=False leaves what it lacks as it is, and what is unexpected out"
        raise ValueError(f"{source.describe()} does not fit the model, nothing was loaded: {'; '.join(problems)}{hint}")
    remark_on(source, found)


def remark_on(source: Source, found: Differences) -> None:
    """A Remark with the tensors that are not loaded, if there are any."""
    parts = [f"what it lacks stays as it is: {name_list(found.missing)}"] * bool(found.missing)
    parts += [f"what is unexpected is left out: {name_list(found.unexpected)}"] * bool(found.unexpected)
    if parts:
        remark(f"{source.describe()} does not have the tensors of the training; {'; '.join(parts)}")


def remark_on_tensors(source: Source, tensors: Iterable[TensorInfo]) -> None:
    """The same for a checkpoint that ranks with these tensors have loaded."""
    missing, known = [], set()
    for info in tensors:
        keys = [key_of(dataclasses.replace(info, name=name)) for name in (info.name, *info.aliases)]
        known.update(keys)
        if info.saved and info.state not in ("grad", "master", "rng") and not any(key in source.tensors for key in keys):
            missing.append(keys[0])
    unexpected = [key for key in source.tensors if key not in known and place_of(key)[0] != "rng"]
    remark_on(source, Differences([], missing, unexpected))
