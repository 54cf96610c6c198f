"""Runs a program eager and compiled, compares the two, and makes a program that fails as simple as it can be."""
from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib
import importlib.util
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, Iterator, NamedTuple

import torch

import spmd

from .choose import ROLE, SIMPLEST, Number, Spec, problem, states
from .source import source

CALLS, TOLERANCE = 6, 1e-9
FOLDER = Path(tempfile.mkdtemp(prefix="python_reads"))
REFUSALS = (spmd.CaptureError, spmd.CompileError, spmd.RunError)


class Outcome(NamedTuple):
    """What a program gives.

    kind: "right"; "compiled too often", right with more programs than the numbers had states; "refused", an error of
      spmd; "wrong", other numbers than eager; "crash", an error that nobody wrote for users; "invalid", eager fails.
    text: where and how they differ, or the first line of the error.
    """

    kind: str
    text: str = ""


class _Run(NamedTuple):
    losses: list[float]
    states: list[str]  # after each call, what the step has written
    parameters: list[torch.Tensor]
    error: Exception | None
    compiles: int


@contextlib.contextmanager
def equal_graphs_compile_once() -> Iterator[None]:
    """Takes the artifact of another program whose graph differs in lines and classes only: most programs share theirs."""
    package = importlib.import_module("spmd.capture.write.package").StepPackage
    before = package.digest

    def digest(self: Any) -> str:
        parts = [part.step for part in (self, self.first_step, self.other_batch) if part]
        texts = [json.dumps({**part, "stacks": [], "module_tree": [],
                             "optimizer": {**(part["optimizer"] or {}), "class": ""},
                             "nodes": [{**node, "stack": 0} for node in part["nodes"]]}, default=str) for part in parts]
        return hashlib.sha256("".join(texts).encode()).hexdigest()

    package.digest = digest
    try:
        yield
    finally:
        package.digest = before


def _name_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _load(text: str, libraries: dict[int, str]) -> Any:
    """A new module of the program, with new modules of its libraries."""
    packages = FOLDER / "site-packages"
    packages.mkdir(exist_ok=True)
    if str(packages) not in sys.path:
        sys.path.append(str(packages))
    for k, library in libraries.items():
        name = f"lib_{_name_of(library)}"
        (packages / f"{name}.py").write_text(library)
        text = text.replace(f"from lib_{k} import *", f"from {name} import *")
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    file = FOLDER / f"program_{_name_of(text)}.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location("program", file)
    module = sys.modules["program"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _run(text: str, libraries: dict[int, str], ranks: int | None) -> _Run:
    """Six calls; eager without `ranks`."""
    generator = torch.Generator().manual_seed(1)
    data = [(torch.randn(8, 6, dtype=torch.float64, generator=generator),
             torch.randint(3, (8,), generator=generator)) for _ in range(CALLS)]
    module = _load(text, libraries)
    w = module.build()
    writers = [k for k in range(w.count) if hasattr(module, f"state_{k}")]
    step = spmd.compile(w.step, ranks=ranks, threads=2) if ranks else w.step
    run = _Run([], [], [], None, 0)
    try:
        for call, (x, y) in enumerate(data):
            if call:
                module.change(w, call)
            run.losses.append(float(step(*w.before, x, y, *(getattr(w, name) for name in w.names))))
            run.states.append("; ".join(repr(getattr(module, f"state_{k}")(getattr(w, f"own_{k}"))) for k in writers))
        run.parameters.extend(p.detach().clone() for p in w.model.parameters())
    except Exception as error:
        run = run._replace(error=error)
    if ranks:
        run = run._replace(compiles=step.compiles)
        step.reset()
    return run


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}".replace(str(FOLDER), "")[:300]


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, REFUSALS) or "\n  hint: " in str(error)


def outcome(spec: Spec, ranks: int = 2) -> Outcome:
    """Runs a program, eager and compiled."""
    with warnings.catch_warnings(), equal_graphs_compile_once():
        warnings.simplefilter("ignore")
        try:
            text, libraries = source(spec)
            eager = _run(text, libraries, None)
            if eager.error is not None:
                raise eager.error
        except Exception as error:
            return Outcome("invalid", _first_line(error))
        try:
            found = _run(text, libraries, ranks)
        except Exception as error:
            return Outcome("crash", _first_line(error))
    gc.collect()
    return _compare(spec, eager, found)


def _compare(spec: Spec, eager: _Run, found: _Run) -> Outcome:
    """An error counts only if all calls before it were right."""
    for call, (a, b) in enumerate(zip(eager.losses, found.losses)):
        if not abs(a - b) <= TOLERANCE * max(1.0, abs(a)):
            return Outcome("wrong", f"the loss of call {call} is {b:.9g}, eager has {a:.9g}")
    for call, (a, b) in enumerate(zip(eager.states, found.states)):
        if a != b:
            return Outcome("wrong", f"after call {call} the state is {b}, eager has {a}")
    if found.error is not None:
        kind = "refused" if _is_refusal(found.error) else "crash"
        return Outcome(kind, f"call {len(found.losses)}: {_first_line(found.error)}")
    distance = max(float((a - b).abs().max()) for a, b in zip(eager.parameters, found.parameters))
    if not distance <= TOLERANCE:
        return Outcome("wrong", f"parameters differ by {distance:.1e}")
    needed = states(spec)
    if found.compiles > needed and not any("write" in number for number in spec["numbers"]):
        return Outcome("compiled too often", f"{found.compiles} programs, {needed} needed")
    return Outcome("right")


# Pieces that a number keeps while all others become the simplest; those first that are the likeliest.
_KEPT = ((), ("role",), ("way",), ("change", "first"), ("wrap",), ("encoding",), ("site",), ("library",), ("use",),
         ("read",), ("role", "way"), ("role", "site", "library"), ("change", "first", "role"),
         ("change", "first", "way"), ("role", "way", "wrap", "site", "library"),
         ("change", "first", "role", "way", "wrap", "site", "library"))


def _simpler(number: Number) -> Iterator[Spec]:
    """Programs with that number only, the simplest first."""
    for kept in _KEPT:
        other = {key: value if key in kept else SIMPLEST.get(key, value) for key, value in number.items()}
        style = ROLE[other["role"]].style or "method"
        if not problem(other, style):
            yield {"style": style, "numbers": [other]}


def shrink(spec: Spec, kind: str) -> list[Spec]:
    """Simple programs with that outcome, one for each number that has it alone; the program itself if none has."""
    found: list[Spec] = []
    for number in spec["numbers"]:
        alone = {**spec, "numbers": [number]}
        if alone == spec or outcome(alone).kind == kind:
            found.append(next((other for other in _simpler(number) if outcome(other).kind == kind), alone))
    return found or [spec]


def name_of_kind(spec: Spec) -> str:
    """The pieces of a program that are not the simplest."""
    return " + ".join("; ".join(str(value) if key in ("place", "write") else f"{key}: {value}"
                                for key, value in number.items() if SIMPLEST.get(key) != value and key != "first")
                      for number in spec["numbers"])
