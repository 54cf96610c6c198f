"""A random training step: pieces that stand in a template, written out as a script that a person could have written.

A piece can be left out, and what remains is a program (or raises NameError, and then it is none); so a failure can be
made small by leaving out pieces (minimize.py).
"""
from __future__ import annotations

import dataclasses
import textwrap
from typing import Any, Iterator

PLACES = ("block", "layers", "setup", "terms", "gradients", "updates", "results", "between")


@dataclasses.dataclass(frozen=True)
class Piece:
    """Lines for one place of the template. A layer has lines for the constructor, too; a result is an entry of a dict;
    `imports` and `top` stand at the top of the script."""

    name: str
    code: tuple[str, ...]
    init: tuple[str, ...] = ()
    top: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Data:
    """What a step trains on: how the batch is made, and how `h` and `out` come about."""

    batch: tuple[tuple[str, str], ...]  # argument, expression of `generator` and `dtype`
    batch_dims: tuple[tuple[str, int | None], ...]
    embed: Piece  # makes h of x
    pool: tuple[str, ...]  # what comes before the head
    prepare: tuple[str, ...]  # in train_step, before the model is called
    out: str
    loss: str


@dataclasses.dataclass(frozen=True)
class Program:
    """All that a script is written of."""

    seed: int
    data: Data
    width: int
    classes: int
    optimizer: str
    steps: int
    style: str  # of the step; see _STYLES
    dtype: str  # what is trained on the host
    options: tuple[tuple[str, Any], ...]
    repeat: int = 0  # how many blocks there are
    replicas: int = 1  # the size of a mesh's first axis
    block: tuple[Piece, ...] = ()
    layers: tuple[Piece, ...] = ()
    setup: tuple[Piece, ...] = ()
    terms: tuple[Piece, ...] = ()
    gradients: tuple[Piece, ...] = ()
    updates: tuple[Piece, ...] = ()
    results: tuple[Piece, ...] = ()
    between: tuple[Piece, ...] = ()

    def pieces(self) -> Iterator[Piece]:
        yield self.data.embed
        for place in PLACES:
            yield from getattr(self, place)

    def source(self) -> str:
        return "".join(f"{part.rstrip()}\n" for part in self._parts())

    def _parts(self) -> Iterator[str]:
        yield "import copy\nimport math\n\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn"
        top = dict.fromkeys(text for piece in self.pieces() for text in piece.top)
        yield "\n".join(line for line in top if "\n" not in line)
        yield from (f"\n\n{text}" for text in top if "\n" in text)
        if self.block and self.repeat:
            yield "\n\n" + self._module("Block", "h", self.block, [], "h")
        yield "\n\n" + self._net()
        yield "\n\n" + self._setup()
        yield "\n\n" + self._batches()
        yield "\n\n" + self._step()
        if self.between:
            yield f"\n\ndef between(model, optimizer, step):\n{_indent(self.between)}"
        options = ", ".join(f"{key}={value!r}" for key, value in self.options)
        if self.replicas > 1:
            yield f"\n\nREPLICAS = {self.replicas}"
        yield f"\n\nSEED, DTYPE, STEPS, OPTIONS = {self.seed}, {self.dtype}, {self.steps}, dict({options})"

    def _module(self, name: str, argument: str, pieces: tuple[Piece, ...], init: list[str], result: str) -> str:
        lines = [f"class {name}(nn.Module):", "    def __init__(self):", "        super().__init__()"]
        lines += [f"        {line}" for piece in pieces for line in piece.init] + [f"        {line}" for line in init]
        lines += ["", f"    def forward(self, {argument}):"]
        lines += [f"        {line}" for piece in pieces for line in piece.code]
        return "\n".join(lines + [f"        return {result}"])

    def _net(self) -> str:
        blocks = (Piece("blocks", ("for block in self.blocks:", "    h = block(h)"),
                        (f"self.blocks = nn.ModuleList([Block() for _ in range({self.repeat})])",)),) \
            if self.block and self.repeat else ()
        pool = (Piece("pool", self.data.pool),)
        return self._module("Net", "x", (self.data.embed, *blocks, *self.layers, *pool),
                            [f"self.head = nn.Linear({self.width}, {self.classes})"], "self.head(h)")

    def _setup(self) -> str:
        return (f"def setup(dtype):\n    torch.manual_seed({self.seed})\n    model = Net().to(dtype)\n"
                f"{_indent(self.setup)}    optimizer = torch.optim.{self.optimizer}\n    return model, optimizer")

    def _batches(self) -> str:
        made = "".join(f"        {name} = {text}\n" for name, text in self.data.batch)
        names = ", ".join(name for name, _ in self.data.batch)
        dims = dict(self.data.batch_dims)
        # Of up to 5 ranks, or as many meshes' rows.
        count = self.steps * 5 * self.replicas if ("view", "local") in self.options else self.steps
        return (f"def batches(dtype):\n    generator = torch.Generator().manual_seed({self.seed})\n"
                f"    for _ in range({count}):\n{made}        yield {names}"
                + (f"\n\n\nBATCH_DIMS = {dims!r}" if dims else ""))

    def _step(self) -> str:
        names = [name for name, _ in self.data.batch]
        entries = "".join(f", {text!r}: {line}" for piece in self.results for text, line in [_entry(piece)])
        compute = [f"out = {self.data.out}", f"loss = {self.data.loss}",
                   *(line for piece in self.terms for line in piece.code)]
        forward = [*self.data.prepare, *compute]
        return _STYLES[self.style].format(
            names=", ".join(names), forward=_lines(forward, 4), inner=_lines(forward, 8),
            prepare=_lines(list(self.data.prepare), 4), compute=_lines(compute, 8),
            chunks=", ".join(f"{n}.chunk(2)" for n in names), under=", ".join(names),
            deep_gradients=textwrap.indent(_indent(self.gradients), "    "),
            deep_updates=textwrap.indent(_indent(self.updates), "    "),
            gradients=_indent(self.gradients), updates=_indent(self.updates),
            returned="{'loss': loss" + entries + "}" if entries else "loss")


def _entry(piece: Piece) -> tuple[str, str]:
    return piece.name, piece.code[0]


def _lines(lines: list[str], spaces: int) -> str:
    return textwrap.indent("".join(f"{line}\n" for line in lines), " " * spaces)


def _indent(pieces: tuple[Piece, ...]) -> str:
    return _lines([line for piece in pieces for line in piece.code], 4)


# How forward, backward and update follow each other.
_STYLES = {
    "plain": """\
def train_step(model, optimizer, {names}):
{forward}    loss.backward()
{gradients}    optimizer.step()
{updates}    optimizer.zero_grad()
    return {returned}""",
    "zero first": """\
def train_step(model, optimizer, {names}):
    optimizer.zero_grad()
{forward}    loss.backward()
{gradients}    optimizer.step()
{updates}    return {returned}""",
    "zeros": """\
def train_step(model, optimizer, {names}):
{forward}    loss.backward()
{gradients}    optimizer.step()
{updates}    optimizer.zero_grad(set_to_none=False)
    return {returned}""",
    "chunks": """\
def train_step(model, optimizer, {names}):
    total = 0.0
    for {under} in zip({chunks}):
{inner}        loss = loss / 2
        loss.backward()
        total = total + loss.detach()
    loss = total
{gradients}    optimizer.step()
{updates}    optimizer.zero_grad()
    return {returned}""",
    "two backwards": """\
def train_step(model, optimizer, {names}):
{forward}    loss.backward(retain_graph=True)
    (0.5 * loss.square()).backward()
{gradients}    optimizer.step()
{updates}    optimizer.zero_grad()
    return {returned}""",
    "autograd.grad": """\
def train_step(model, optimizer, {names}):
{forward}    trained = [p for p in model.parameters() if p.requires_grad]
    for p, g in zip(trained, torch.autograd.grad(loss, trained, allow_unused=True)):
        p.grad = g
{gradients}    optimizer.step()
{updates}    optimizer.zero_grad()
    return {returned}""",
    "two updates": """\
def train_step(model, optimizer, {names}):
{prepare}    for _ in range(2):
{compute}        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
{updates}    return {returned}""",
    "autocast": """\
def train_step(model, optimizer, {names}):
    with torch.autocast("cpu", torch.bfloat16):
{inner}    loss.backward()
{gradients}    optimizer.step()
{updates}    optimizer.zero_grad()
    return {returned}""",
    "over calls": """\
def train_step(model, optimizer, {names}):
{forward}    (loss / 2).backward()
    if UPDATE:
{deep_gradients}        optimizer.step()
{deep_updates}        optimizer.zero_grad()
    return {returned}""",
}
STYLES = tuple(_STYLES)
