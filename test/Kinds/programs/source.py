"""The source of a program: build() makes model, optimizer and step, change(w, call) runs before each call."""
from __future__ import annotations

from .choose import ENCODING, PLACE, ROLE, USE, WAY, WRAP, WRITE, Number, Spec, changes_of, is_optimizer, parts_of, \
    values_of
from .pieces import Role, fill, indent
from .roles import FUNCTION
from .uses import literal

IMPORTS = """\
import abc, bisect, collections, collections.abc, contextlib, contextvars, copy, dataclasses, datetime, decimal, enum
import fractions, functools, heapq, inspect, io, itertools, json, logging, math, operator, os, pathlib, queue, random
import sys, threading, types, typing, weakref
import numpy as np
import torch
import torch.utils.checkpoint
from torch.nn import functional as F
"""


def source(spec: Spec) -> tuple[str, dict[int, str]]:
    """The program, and by number the modules that lie in site-packages."""
    blocks, libraries, wires, forward, step, news, moves = [], {}, [], [], [], [], []
    style, owners = spec["style"], {"step": [], "model": [], "optimizer": []}
    arguments, defaults = [], []
    for k, number in enumerate(spec["numbers"]):
        role, own = ROLE[number["role"]], f"own_{k}"
        host = "model" if role.host == "forward" or style != "method" else "trainer"
        seen = "self" if role.host == "forward" or style == "method" else "model"
        blocks.append(_block(number, k))
        if number["library"]:
            libraries[k] = IMPORTS + "\n\n" + blocks[-1]
            blocks[-1] = f"from lib_{k} import *"
        wire = indent(fill(role.wire, k=k, h=host) or "pass")
        wires.append("\n".join([f"def wire_{k}(model, trainer, {own}):", *wire]))
        if role.host == "self":
            owners["optimizer" if is_optimizer(role) else role.name].append(f"Owner_{k}")
        made = {"step": "w.trainer", "model": "w.model"}.get(role.name, "w.optimizer" if is_optimizer(role) else "")
        news.append(f"    w.own_{k} = {made or f'Owner_{k}()'}")
        if not is_optimizer(role):
            calls = _calls(number, k, fill(role.owner, k=k, p=seen) or "self", fill(role.calls, k=k, p=seen))
            (forward if role.host == "forward" or role.name == "model" else step).extend(calls)
        if role.name == "config in an argument":
            arguments.append(own)
        elif role.name == "config in a default":
            defaults.append(f"default_{k}={own}")
        moves.append(_move(number, k))
    return "\n\n\n".join([IMPORTS + "\n\n" + "\n\n\n".join(blocks), *wires, _model(owners["model"], forward),
                          _step(style, owners["step"], step, arguments, defaults, len(news)),
                          _build(style, owners["optimizer"], news, arguments),
                          "def change(w, call):\n" + "\n".join(moves)]) + "\n", libraries


def _model(owners: list[str], forward: list[str]) -> str:
    return "\n".join([f"class Model({', '.join([*owners, 'torch.nn.Module'])}):", "    def __init__(self):",
                      "        super().__init__()", "        self.fc = torch.nn.Linear(6, 3).double()", "",
                      "    def forward(self, x):", "        t = self.fc(x)", *indent("\n".join(forward), 8),
                      "        return t"])


def _step(style: str, owners: list[str], step: list[str], arguments: list[str], defaults: list[str], count: int) -> str:
    prefix = "self." if style == "method" else ""
    body = "\n".join([f"t = F.cross_entropy({prefix}model(x), y)", *step, "t.backward()", f"{prefix}optimizer.step()",
                      f"{prefix}optimizer.zero_grad()", "return t.detach()"])
    if style == "method":
        return "\n".join([f"class Trainer({', '.join(owners)}):", "    def __init__(self, model, optimizer):",
                          "        super().__init__()", "        self.model, self.optimizer = model, optimizer", "",
                          "    def step(self, x, y):", *indent(body, 8)])
    if style == "function":
        return "\n".join([f"def step({', '.join(['model', 'optimizer', 'x', 'y', *arguments])}):", *indent(body)])
    owned = [f"own_{k}" for k in range(count)]
    return "\n".join([f"def make_step({', '.join(['model', 'optimizer', *owned])}):",
                      f"    def step({', '.join(['x', 'y', *defaults])}):", *indent(body, 8), "    return step"])


def _build(style: str, optimizers: list[str], news: list[str], arguments: list[str]) -> str:
    make = f"{optimizers[0]}(w.model.parameters())" if optimizers else "torch.optim.SGD(w.model.parameters(), lr=0.1)"
    owned = ", ".join(["w.model", "w.optimizer", *(f"w.own_{k}" for k in range(len(news)))])
    last = {"method": "w.step, w.before = w.trainer.step, ()",
            "function": "w.step, w.before = step, (w.model, w.optimizer)",
            "closure": f"w.step, w.before = make_step({owned}), ()"}[style]
    trainer = ["    w.trainer = Trainer(w.model, w.optimizer)"] if style == "method" else []
    return "\n".join(["def build():", "    torch.manual_seed(0)", "    w = types.SimpleNamespace(trainer=None)",
                      "    w.model = Model()", f"    w.optimizer = {make}", *trainer, *news,
                      *(f"    wire_{k}(w.model, w.trainer, w.own_{k})" for k in range(len(news))),
                      f"    w.names = {arguments!r}", f"    w.count = {len(news)}", f"    {last}", "    return w"])


def _move(number: Number, k: int) -> str:
    """Lines of change()."""
    lines = [f"    if call == {call}:\n        w.own_{k} = Owner_{k}()\n        wire_{k}(w.model, w.trainer, w.own_{k})"
             for call, op in changes_of(number).items() if op.endswith("owner")]
    return "\n".join([*lines, f"    change_{k}(w.own_{k}, call)"])


def _calls(number: Number, k: int, owner: str, calls: str) -> list[str]:
    """Lines of the host."""
    is_loop = calls.startswith("for layer_")
    if calls and not is_loop:
        return calls.split("\n")
    lines = {"method": f"t = {owner}.use_{k}(t)", "function": f"t = apply_{k}({owner}, t)"}.get(number["site"])
    lines = lines or _lines(number, k, owner)
    return [calls, *indent(lines)] if is_loop else lines.split("\n")


def _in_brackets(expression: str) -> str:
    return f"({expression})" if " " in expression else expression


def _lines(number: Number, k: int, owner: str) -> str:
    """What happens to `t`: the number is read, or something is written."""
    if "write" in number:
        write = WRITE[number["write"]]
        read = f"\nt = t * (1.0 + 0.1 * ({write.value}))" if number["read"] else ""
        return fill(write.lines + read, k=k, o=owner)
    place, way, wrap = PLACE[number["place"]], WAY[number["way"]], WRAP[number["wrap"]]
    given = {"k": k, "o": owner, "t": place.target, "y": place.key, "a": place.key.strip("'"),
             "s": _in_brackets(place.read)}
    if way.lines:
        lines = fill(way.lines, **given)
    else:
        x = fill(fill(way.read, x=_in_brackets(place.read)), **given)
        lines = (wrap.lines or f"n = {wrap.read}").replace("$x", x).replace("$k", str(k))
    return "\n".join(filter(None, (lines, fill(ENCODING[number["encoding"]].decode, k=k), USE[number["use"]].lines)))


def _block(number: Number, k: int) -> str:
    """The owner's class, what it needs, and change_k(), or state_k() where the step writes."""
    role, bases, first, given = ROLE[number["role"]], [], "", {}
    if "write" in number:
        write = WRITE[number["write"]]
        parts, body, init = [write.module], [write.body], write.init
    else:
        place, way, wrap = PLACE[number["place"]], WAY[number["way"]], WRAP[number["wrap"]]
        encoding = ENCODING[number["encoding"]]
        first = literal(encoding, values_of(number)[0], k)
        given = {"t": place.target, "y": place.key, "a": place.key.strip("'"),
                 "s": fill(_in_brackets(place.read), o="self")}
        parts = [encoding.module, place.module, way.module, wrap.module]
        bases, body, init = [way.bases, place.bases], [place.body, way.body], place.init
    base = {"module": "torch.nn.Module", "optimizer": "torch.optim.Optimizer", "sgd": "torch.optim.SGD"}.get(role.base)
    bases = sorted(filter(None, [*bases, base]), key=lambda text: text.startswith("metaclass"))
    use = f"return apply_{k}(self, t)" if number["site"] == "function" else _lines(number, k, "self")
    body += ["\n".join([f"def use_{k}(self, t):", *indent(use), "    return t"]), *_called(role, k)]
    names, values = {"optimizer": ("self, params", "params, {'lr': 0.1}"),
                     "sgd": ("self, params", "params, lr=0.1")}.get(role.base, ("self", ""))
    head = "\n".join([f"def __init__({names}):", f"    super().__init__({values})", *indent(init)])
    parts += ["\n".join([f"class Owner_$k({', '.join(bases)}):", *indent("\n\n".join(filter(None, [head, *body])))]),
              FUNCTION if role.name == "autograd function" else ""]
    if number["site"] == "function":
        parts.append("\n".join([f"def apply_{k}(one, t):", *indent(_lines(number, k, "one")), "    return t"]))
    parts.append(_state(number, k) if "write" in number else _change(number, k))
    return fill("\n\n\n".join(filter(None, parts)), k=k, v=first, o="self", **given)


def _called(role: Role, k: int) -> list[str]:
    """The members by which others call the owner."""
    use = f"self.use_{k}"
    if role.base == "module" and role.name != "model":
        return [f"def forward(self, t):\n    return {use}(t)"]
    if role.base == "optimizer":
        return ["@torch.no_grad()\ndef step(self, closure=None):\n    for group in self.param_groups:\n"
                "        for p in group['params']:\n            if p.grad is not None:\n"
                f"                p.sub_(group['lr'] * {use}(p.grad))"]
    if role.base == "sgd":
        return ["def step(self, closure=None):\n    with torch.no_grad():\n"
                "        for p in self.param_groups[0]['params']:\n"
                f"            p.grad.copy_({use}(p.grad))\n    return super().step(closure)"]
    return {"criterion object": [f"def __call__(self, t):\n    return {use}(t)"],
            "hook that is a bound method": [f"def hook_{k}(self, module, inputs, output):\n    return {use}(output)"]
            }.get(role.name, [])


def _state(number: Number, k: int) -> str:
    """state_k(owner): what the caller finds after a call."""
    state = fill(WRITE[number["write"]].state, k=k, o="o")
    return f"def change_{k}(o, call):\n    pass\n\n\ndef state_{k}(o):\n    return {state}"


def _change(number: Number, k: int) -> str:
    """change_k(owner, call): what happens before a call."""
    place, way, encoding = PLACE[number["place"]], WAY[number["way"]], ENCODING[number["encoding"]]
    values, lines, before = values_of(number), [], ""
    for call, op in changes_of(number).items():
        letter, what = parts_of(op)
        text = {"": place.set, "!": place.replace, "owner": place.set if letter != "a" else "", "extra": place.extra,
                "delete": place.delete, "class": f"o.__class__ = Other_{k}", "unclass": f"o.__class__ = Owner_{k}",
                "patch": f"Owner_{k}.use_{k} = lambda self, t: t * 0.5"}.get(what, "")
        if what in ("method", "unmethod"):
            name = fill(way.methods[0], k=k) if way.methods else f"use_{k}"
            other = f"lambda *args: {literal(encoding, values[1], k)}" if way.methods else "lambda t: t * 0.5"
            text = f"o.{name} = {other}" if what == "method" else f"del o.{name}"
        if what == "class":
            before = (f"class Other_{k}(Owner_{k}):\n    def use_{k}(self, t):\n"
                      f"        return 0.5 * super().use_{k}(t)\n\n\n")
        v = literal(encoding, values["abc".index(letter)] if letter else 0.0, k)
        lines += [f"    if call == {call}:", *indent(fill(text, o="o", v=v, k=k) or "pass", 8)]
    return before + "\n".join([f"def change_{k}(o, call):", *(lines or ["    pass"])])
