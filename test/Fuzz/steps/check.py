"""Checks one script: eager PyTorch against the interpreter in float64 and the compiled step on several ranks.

A script (program.py writes them) has

    setup(dtype) -> model, optimizer          batches(dtype): tuples, one per step
    train_step(model, optimizer, *batch)      between(model, optimizer, step): optional, what happens after each step
    SEED, OPTIONS                             of spmd.compile; BATCH_DIMS, DTYPE (float32): optional

How far results may be apart is measured, not chosen. The eager step is run in float64, and again with its parameters
moved by one rounding: what that changes is how the program carries roundings on. In the dtype that is trained, what
lies between eager in that dtype and in float64 is its rounding error. A compiled step may have a small multiple of
either, where other orders of addition come in.
"""
from __future__ import annotations

import copy
import dataclasses
import importlib.util
import math
import os
import re
import subprocess
import sys
import tempfile
import traceback
import types
import warnings
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator

import torch
from safetensors.torch import load_file
from torch.utils import _pytree as pytree

import spmd
from spmd.capture.draws import Draws
from spmd.capture.reference import _whole_ops
from spmd.tools import find_tool

import refusals

RANKS = (1, 2, 3, 5)
# A multiple of the rounding errors that eager itself shows, which are one sample of a random walk.
SAMPLES = 32
# Of |b|, of each tensor, in float64; in other dtypes as many of their epsilons. Sums here have some hundred terms.
RELATIVE = 1e-12
EPSILONS = RELATIVE / torch.finfo(torch.float64).eps
# A tensor that is zero but for rounding, next to the largest of its kind.
NOISE = 64

Trace = dict[str, torch.Tensor]


@dataclasses.dataclass(frozen=True)
class Finding:
    """`kind`: ok, refused (by a listed sentence); unlisted (refused by another), crash, internal, wrong; or invalid, not
    finite: the script is no test."""

    kind: str
    where: str = ""
    text: str = ""

    @property
    def is_failure(self) -> bool:
        return self.kind in ("unlisted", "crash", "internal", "wrong")

    def signature(self) -> str:
        """What stays the same while a failing script is made smaller."""
        first = next((line for line in self.text.splitlines() if line.strip()), "")
        if self.kind == "wrong":
            return f"wrong {self.where.split()[0]}"
        return f"{self.kind} " + re.sub(r"""^\S+:\d*:? |\([^()]*\)|'[^']*'|"[^"]*"|[\d.e+-]*\d""", "#", first)


def load(path: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where inspect looks for the source of a class
    spec.loader.exec_module(module)
    return module


class NotComparable(Exception):
    """The script raises in eager PyTorch, or its numbers are not finite."""

    def __init__(self, kind: str, text: str):
        super().__init__(text)
        self.kind = kind


@dataclasses.dataclass
class Run:
    """What a script computed: results of each step, and the state at the end; for eager ones, of every step."""

    results: Trace
    state: Trace
    batches: list[tuple[torch.Tensor, ...]] = dataclasses.field(default_factory=list)
    rates: list[list[float]] = dataclasses.field(default_factory=list)
    states: list[Trace] = dataclasses.field(default_factory=list)
    is_alone: list[bool] = dataclasses.field(default_factory=list)  # nothing but rates changed after this step


def results_of(returned: Any, step: int) -> Trace:
    leaves, _ = pytree.tree_flatten_with_path(returned)
    return {f"{step}/{pytree.keystr(path)}": leaf.detach().clone() if isinstance(leaf, torch.Tensor) else
            torch.tensor(leaf, dtype=torch.float64 if isinstance(leaf, float) else None) for path, leaf in leaves
            if isinstance(leaf, (torch.Tensor, int, float))}


def state_of(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> Trace:
    """Parameters, buffers, and the optimizer's tensors; step counts aside, of which some are numbers."""
    values = {name: t for name, t in [*model.named_parameters(), *model.named_buffers()]}
    names = {p: name for name, p in model.named_parameters()}
    values |= {f"optimizer/{key}/{names[p]}": t for p, state in optimizer.state.items() if p in names
               for key, t in state.items() if isinstance(t, torch.Tensor) and key != "step"}
    return {name: t.detach().clone() for name, t in values.items()}


def modes_of(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> tuple:
    return ([m.training for m in model.modules()], [p.requires_grad for p in model.parameters()],
            [{k: v for k, v in g.items() if k not in ("lr", "params")} for g in optimizer.param_groups])


def eager(script: types.ModuleType, dtype: torch.dtype, moved: bool = False) -> Run:
    """The script as it stands; random numbers are those that the captured step draws."""
    torch.manual_seed(script.SEED)
    model, optimizer = script.setup(dtype)
    if moved:
        generator = torch.Generator().manual_seed(script.SEED)
        with torch.no_grad():
            for p in [*model.parameters(), *model.buffers()]:
                if p.is_floating_point():
                    sign = torch.randint(0, 2, p.shape, generator=generator) * 2 - 1
                    p.mul_(1 + sign * torch.finfo(dtype).eps)
    between = getattr(script, "between", lambda *unused: None)
    run = Run({}, {})
    for step, batch in enumerate(script.batches(dtype)):
        batch = batch if isinstance(batch, tuple) else (batch,)
        run.batches.append(tuple(t.clone() for t in batch))
        run.rates.append([float(g["lr"]) for g in optimizer.param_groups])
        with Draws(torch.tensor(script.SEED), torch.tensor(step)), _whole_ops():
            returned = script.train_step(model, optimizer, *batch)
        run.results |= results_of(returned, step)
        run.states.append(state_of(model, optimizer))
        modes = modes_of(model, optimizer)
        between(model, optimizer, step)
        after = state_of(model, optimizer)
        run.is_alone.append(modes == modes_of(model, optimizer) and all(
            torch.equal(t, after[name]) for name, t in run.states[-1].items()))
    run.state = state_of(model, optimizer)
    return run


def all_finite(run: Run) -> bool:
    return all(bool(torch.isfinite(t).all()) for t in [*run.results.values(), *run.state.values()]
               if t.is_floating_point())


def kind_of(name: str) -> str:
    """Tensors of one kind share a scale: results of one name, parameters, a state."""
    return name.split("/")[1] if "/" in name else "parameter"


class Tolerance:
    """How far each tensor may be from eager's."""

    def __init__(self, expected: Trace, exact: Trace, moved: Trace, epsilon: float):
        self.expected, self.epsilon = expected, epsilon
        self.exact, self.moved = exact, moved
        self.largest: dict[str, float] = {}
        for name, tensor in expected.items():
            if tensor.is_floating_point():
                norm = float(tensor.double().norm())
                self.largest[kind_of(name)] = max(self.largest.get(kind_of(name), 0.0), norm)

    def of(self, name: str) -> float:
        expected = self.expected[name].double()
        rounding = max(float((self.exact[name].double() - expected).norm()),
                       float((self.moved[name].double() - expected).norm()))
        return max(SAMPLES * rounding, EPSILONS * self.epsilon * float(expected.norm()),
                   NOISE * self.epsilon * max(self.largest[kind_of(name)], 1e-3))

    def differences(self, got: Trace, names: Iterable[str] | None = None) -> list[str]:
        found = []
        for name in self.expected if names is None else names:
            expected = self.expected[name]
            if name not in got:
                found.append(f"{name} is missing")
                continue
            value = got[name].reshape(expected.shape) if got[name].numel() == expected.numel() else got[name]
            if value.shape != expected.shape:
                found.append(f"{name} is {list(value.shape)}, expected {list(expected.shape)}")
            elif not expected.is_floating_point():
                stable = torch.equal(self.exact[name], expected) and torch.equal(self.moved[name], expected)
                if stable and not torch.equal(value.to(expected.dtype), expected):
                    found.append(f"{name} is {value.tolist()}, expected {expected.tolist()}")
            else:
                apart, allowed = float((value.double() - expected.double()).norm()), self.of(name)
                if not apart <= allowed:
                    found.append(f"{name} is {apart:.3g} off, allowed {allowed:.3g}, its norm is "
                                 f"{float(expected.double().norm()):.3g}")
        return found


class Checker:
    """All checks of one script; `folder` is for files, `ranks` those that are run on the host."""

    def __init__(self, path: Path, folder: Path, ranks: Iterable[int] = RANKS):
        self.path, self.folder, self.ranks = path, folder, tuple(ranks)

    def findings(self) -> Iterator[Finding]:
        """One for each thing that was checked; the first is alone when the script is no test."""
        try:
            self._prepare()
        except NotComparable as error:
            yield Finding(error.kind, "eager", str(error))
            return
        yield from self._guarded("interpreter", self._interpret)
        for ranks in self.ranks:
            yield from self._guarded(f"host {ranks}", lambda: self._host(ranks, self.dtype))
        if self.ranks and self.dtype == torch.float32:
            ranks = self.ranks[self.script.SEED % len(self.ranks)]
            yield from self._guarded(f"f64 {ranks}", lambda: self._host(ranks, torch.float64))

    def _prepare(self) -> None:
        try:
            self.script = load(self.path)
            self.dtype = getattr(self.script, "DTYPE", torch.float32)
            self.exact, self.exact_moved = (eager(self.script, torch.float64, moved) for moved in (False, True))
            self.plain, self.plain_moved = (eager(self.script, self.dtype, moved) for moved in (False, True))
        except Exception as error:
            raise NotComparable("invalid", f"{type(error).__name__}: {error}\n{traceback.format_exc()}") from error
        if not all_finite(self.exact) or not all_finite(self.plain):
            raise NotComparable("not finite", "")

    def _guarded(self, where: str, check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = list(check())
            yield from found or [Finding("ok", where)]
        except Exception as error:
            yield self._judge(where, error)

    def _judge(self, where: str, error: Exception) -> Finding:
        if not isinstance(error, (spmd.CompileError, spmd.CaptureError, spmd.RunError, ToolFailed)):
            return Finding("internal", where, f"{type(error).__name__}: {error}\n{traceback.format_exc()}")
        text = str(error)
        code = re.search(r"exited with (-?\d+)\n", text)
        exit_code = error.code if isinstance(error, ToolFailed) else int(code[1]) if code else 0
        if exit_code < 0 or exit_code > 100 or "Stack dump" in text:
            return Finding("crash", where, f"exit code {exit_code}\n{text}")
        text = _errors(text[code.end():] if code else text)
        return Finding("refused" if refusals.is_listed(text) else "unlisted", where, text)

    # The host, through spmd.compile, as a user does.
    def _host(self, ranks: int, dtype: torch.dtype) -> Iterator[Finding]:
        script, where = self.script, f"{'host' if dtype == self.dtype else 'f64'} {ranks}"
        options = dict(script.OPTIONS)
        words = [*options.pop("options", []), f"--cpu={'x86-64-v4' if HAS_AVX512 else 'x86-64-v3'}"]
        torch.manual_seed(script.SEED)
        model, optimizer = script.setup(dtype)
        step = spmd.compile(script.train_step, ranks=ranks, threads=1, options=words, timeout=20,
                            batch_dims=getattr(script, "BATCH_DIMS", None), **options)
        between = getattr(script, "between", lambda *unused: None)
        results: Trace = {}
        try:
            for number, batch in enumerate(script.batches(dtype)):
                batch = batch if isinstance(batch, tuple) else (batch,)
                results |= results_of(step(model, optimizer, *batch), number)
                between(model, optimizer, number)
            state = state_of(model, optimizer)
        finally:
            step.reset()
        expected, moved = (self.plain, self.plain_moved) if dtype == self.dtype else (self.exact, self.exact_moved)
        exact = self.exact if dtype == self.dtype else self.exact_moved
        for ours, theirs, other, third in ((results, expected.results, exact.results, moved.results),
                                           (state, expected.state, exact.state, moved.state)):
            found = Tolerance(theirs, other, third, torch.finfo(dtype).eps).differences(ours)
            if found:
                yield Finding("wrong", where, "\n".join(found))
                return

    # The interpreter, in float64: the import alone, and partitioned programs.
    def _interpret(self) -> Iterator[Finding]:
        script, run = self.script, self.exact
        shapes = [[(t.shape, t.dtype) for t in batch] for batch in run.batches]
        steps = next((n for n in range(1, len(shapes)) if shapes[n] != shapes[0] or not run.is_alone[n - 1]), len(shapes))
        torch.manual_seed(script.SEED)
        model, optimizer = script.setup(torch.float64)
        package = spmd.capture(script.train_step, model, optimizer, *next(iter(script.batches(torch.float64))),
                               batch_dims=getattr(script, "BATCH_DIMS", None))
        if package.first_step is not None:
            steps, package = 1, dataclasses.replace(package.first_step, weights=package.weights)
        names = [i["name"] for i in package.step["inputs"] if i["kind"] == "batch"]
        package.reference = {f"batch/{n}/{name}": t for n in range(steps) for name, t in zip(names, run.batches[n])}
        package.reference["loss"] = torch.zeros(steps, dtype=torch.float64)
        for group in range(len(run.rates[0])):
            package.reference[f"hyper/lr/{group}"] = torch.tensor([r[group] for r in run.rates[:steps]],
                                                                  dtype=torch.float64)
        package.reference |= {f"final/{name}": t.contiguous() for name, t in run.states[steps - 1].items()}
        step = package.save(self.folder / "s.step")
        three = run, self.exact_moved, self.exact_moved
        expected = Tolerance(*(one.states[steps - 1] for one in three), torch.finfo(torch.float64).eps)
        losses = Tolerance(*({name: t for name, t in one.results.items() if int(name.split("/")[0]) < steps
                              and t.is_floating_point()} for one in three), torch.finfo(torch.float64).eps)
        for ranks in (0, *RANKS[1:]):
            program, out = self.folder / "p.mlir", self.folder / "out.safetensors"
            if ranks:
                words = [f"--{key.replace('_', '-')}={value}" for key, value in script.OPTIONS.items() if key in ("mode", "policy")]
                tool("spmd-compile", step, f"--ranks={ranks}", "--compile-to=collectives", "--quiet", "-o", program,
                     *words, *script.OPTIONS.get("options", []))
            else:
                tool("spmd-translate", "--import-step", step, "-o", program)
            tool("spmd-interpret", program, f"--weights={step}", f"--steps={steps}", f"--save={out}")
            got = load_file(out)
            placed = _by_place(got)
            where = f"interpreter {ranks or 'imported'}"
            found = expected.differences({name.removeprefix("final/"): t for name, t in got.items()
                                          if name.startswith("final/")},
                                         [n for n in expected.expected if f"final/{n}" in got])
            found += losses.differences(placed, [n for n in losses.expected if n in placed])
            if found:
                yield Finding("wrong", where, "\n".join(found))
                return


def _errors(text: str) -> str:
    """Of a tool's diagnostics, all but warnings."""
    lines, is_warning = [], False
    for line in text.splitlines():
        if not line.startswith(" "):
            is_warning = "warning: " in line
        if not is_warning:
            lines.append(line)
    return "\n".join(lines)


def _by_place(got: Trace) -> Trace:
    """What --save wrote as results of a step: "3/loss/0.a" is "3/['a']" of a dict; compared where names agree."""
    found = {}
    for name, tensor in got.items():
        parts = name.split("/")
        if parts[0].isdigit() and len(parts) == 3:
            found[f"{parts[0]}/" + (f"['{parts[2]}']" if parts[2] else "")] = tensor
    return found


class ToolFailed(RuntimeError):
    def __init__(self, code: int, text: str):
        super().__init__(text)
        self.code = code


def tool(name: str, *arguments: Any) -> str:
    folder = os.environ.get("SPMD_BIN")
    program = Path(folder) / name if folder else find_tool(name)
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise ToolFailed(done.returncode, done.stderr)
    return done.stdout


HAS_AVX512 = "avx512vl" in Path("/proc/cpuinfo").read_text()


def check(path: Path, ranks: Iterable[int] = RANKS) -> list[Finding]:
    with tempfile.TemporaryDirectory(prefix="spmd-steps.") as folder:
        return list(Checker(path, Path(folder), ranks).findings())


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in sys.argv[1:]:
        for finding in check(Path(name)):
            print(finding.where, finding.kind, finding.text, sep="\n  " if finding.text else " ")
