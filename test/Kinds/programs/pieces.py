"""What a program is made of. All fields are Python source with placeholders, which `fill` replaces.

    $o  the owner of the number, as the line sees it: self, self.config, CONFIG_0
    $k  which of the program's numbers it is: names end with it
    $v  the number, as a literal
    $x  the expression that reads it
"""
from __future__ import annotations

import re
from typing import Any, NamedTuple


class Place(NamedTuple):
    """Where a number lives. The owner is an instance of class Owner_k; it reads the number, or others read it there."""

    name: str
    read: str
    set: str
    init: str = ""  # lines of the owner's __init__
    body: str = ""  # lines of the owner's class
    module: str = ""  # lines before the class
    bases: str = ""  # the owner's bases, and metaclass=
    replace: str = ""  # puts another holder in place of the present one
    extra: str = ""  # adds an entry or attribute that no one reads
    delete: str = ""  # the number is absent until it is set
    is_: frozenset[str] = frozenset()  # what a way of reading may rely on, see ways.py
    target: str = ""  # the object that has the attribute, or the container
    key: str = ""  # the name of the attribute or the key of the entry, as a literal
    encoding: str | None = ""  # "": any; else the name of the only one
    values: tuple[float, ...] = (0.5, 1.5, 2.5)
    roles: tuple[str, ...] = ()  # (): any


class Way(NamedTuple):
    """How a number is read: an expression, or lines that assign `n`."""

    name: str
    read: str = ""
    lines: str = ""
    needs: frozenset[str] = frozenset()  # of Place.is_
    body: str = ""  # lines of the owner's class
    module: str = ""  # lines before it
    bases: str = ""
    default: float | None = None  # what is read where the number is absent
    methods: tuple[str, ...] = ()  # that a change may replace on the instance


class Write(NamedTuple):
    """`lines` run in each call, and assign `n` where nothing is in `value`."""

    name: str
    lines: str
    value: str  # an expression after `lines`
    state: str
    init: str = ""
    body: str = ""
    module: str = ""


class Use(NamedTuple):
    """What a number `n` does to a tensor `t`."""

    name: str
    lines: str


class Role(NamedTuple):
    """What the owner is, and how the step reaches it."""

    name: str
    base: str = ""  # of the owner's class: "module", "optimizer", "function" or ""
    host: str = "step"  # which code calls it: "step", "forward" or "self"
    wire: str = ""  # lines that put `own_k` where the step finds it
    owner: str = ""  # the expression by which the host finds it
    calls: str = ""  # lines of the host, if it calls the owner in a way of its own, or the loop that names it
    style: str = ""  # the step's style, if only one has it
    can_move: bool = True  # another owner can be put in its place


def flags(text: str) -> frozenset[str]:
    """Words, as Place.is_ and Way.needs have them."""
    return frozenset(text.split())


def fill(text: str, **values: Any) -> str:
    """Replaces placeholders, in parts that are filled in, too."""
    for _ in range(6):
        found = re.sub(r"\$([a-z]+)\b", lambda m: str(values[m[1]]) if m[1] in values else m[0], text)
        if found == text:
            break
        text = found
    return text


def indent(text: str, by: int = 4) -> list[str]:
    """Lines of a block."""
    return [" " * by + line if line else line for line in text.split("\n")] if text else []
