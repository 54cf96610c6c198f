"""Leaves out of a program whatever its failure does not need."""
from __future__ import annotations

import dataclasses
from typing import Callable, Iterator

from program import PLACES, Program


def minimize(program: Program, fails: Callable[[Program], bool]) -> Program:
    """The smallest program found that still fails: no single part of it can be left out."""
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in _smaller(program):
            if fails(candidate):
                program, is_smaller = candidate, True
                break
    return program


def _smaller(program: Program) -> Iterator[Program]:
    """The coarsest changes first."""
    def change(**parts: object) -> Program:
        return dataclasses.replace(program, **parts)
    for place in PLACES:
        if len(getattr(program, place)) > 1:
            yield change(**{place: ()})
    for place in PLACES:
        pieces = getattr(program, place)
        for n in range(len(pieces)):
            yield change(**{place: pieces[:n] + pieces[n + 1:]})
    if program.steps > 1:
        yield change(steps=1)
        yield change(steps=program.steps - 1)
    if program.style != "plain":
        yield change(style="plain")
    if program.optimizer != _PLAIN:
        yield change(optimizer=_PLAIN)
    if program.dtype != "torch.float32":
        yield change(dtype="torch.float32")
    for option in program.options:
        yield change(options=tuple(one for one in program.options if one is not option))
    if program.replicas > 1:
        yield change(replicas=1)
    if program.repeat > 1 and program.block:
        yield change(repeat=1)
    if program.block and program.repeat == 1:
        yield change(block=(), repeat=0, layers=program.block + program.layers)
    for prepared in range(len(program.data.prepare)):
        rest = program.data.prepare[:prepared] + program.data.prepare[prepared + 1:]
        yield change(data=dataclasses.replace(program.data, prepare=rest))
    if program.data.loss != "out.square().mean()":
        yield change(data=dataclasses.replace(program.data, loss="out.square().mean()"))


_PLAIN = "SGD(model.parameters(), lr=0.1)"
