"""Checks one script: eager PyTorch against the interpreter in float64 and the compiled step on several ranks.

    python test/Fuzz/steps/check.py SCRIPT.py

A script (program.py writes them) has

    setup(dtype) -> model, optimizer          batches(dtype): tuples, one per step
    train_step(model, optimizer, *batch)      between(model, optimizer, step): optional, what happens after each step
    SEED, OPTIONS                             of spmd.compile
    BATCH_DIMS, DTYPE, STEPS                  optional: of spmd.compile; what is trained, float32; see below
    TEACHER, UPDATE                           optional: a module, a truth value that between() changes
    REPLICAS                                  optional: the first axis of a mesh; numbers of ranks are then the second's

With view="local" batches are those of one rank, as many as STEPS steps of all ranks need.
"""
from __future__ import annotations

import dataclasses
import functools
import os
import re
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator

import torch
from safetensors.torch import load_file

import refusals
import spmd
from eager import Run, Trace, batches_of, is_local, load, results_of, run_eager, start, state_of
from roundings import RUNS, Roundings, explain
from spmd.arrays import to_torch
from spmd.tools import find_tool
from tolerance import Tolerance

RANKS = (1, 2, 3, 5)
CPU = "x86-64-v4" if "avx512vl" in Path("/proc/cpuinfo").read_text() else "x86-64-v3"


@dataclasses.dataclass(frozen=True)
class Finding:
    """`kind`: ok; refused (by a listed sentence), unlisted (refused by another), crash, internal, wrong; or unstable:
    off by what roundings alone make of eager (roundings.py); or invalid, not finite: the script is no test."""

    kind: str
    where: str = ""
    text: str = ""

    @property
    def is_failure(self) -> bool:
        return self.kind in ("unlisted", "crash", "internal", "wrong")

    def signature(self) -> str:
        """What stays the same while a failing script is made smaller."""
        if self.kind == "wrong":
            return f"wrong {self.where.split()[0]}"
        first = next((line for line in self.text.splitlines() if line.strip()), "")
        return f"{self.kind} " + re.sub(r"""^\S+:\d*:? |\([^()]*\)|'[^']*'|"[^"]*"|[\d.e+-]*\d""", "#", first)


class NotComparable(Exception):
    """The script raises in eager PyTorch, or its numbers are not finite."""

    def __init__(self, kind: str, text: str):
        super().__init__(text)
        self.kind = kind


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


class Checker:
    """All checks of one script; `folder` is for files, `ranks` those that are run on the host.

    On one number of ranks an artifact runs the steps of the script's first program; on the others the script runs whole,
    through spmd.compile.
    With `sample` there is only one number of ranks, and one kind of run."""

    def __init__(self, path: Path, folder: Path, ranks: Iterable[int] = RANKS, sample: bool = False):
        self.path, self.folder, self.ranks, self.sample = path, folder, tuple(ranks), sample

    def findings(self) -> Iterator[Finding]:
        """One for each thing that was checked; the first is alone when the script is no test."""
        try:
            self._prepare()
        except NotComparable as error:
            yield Finding(error.kind, "eager", str(error))
            return
        if self.sample and self.ranks:
            self.ranks = self.ranks[self.seed % 7 % len(self.ranks):][:1]
        yield from self._guarded("interpreter", self._interpret)
        for number, ranks in enumerate(self.ranks):
            if self.seed % 2 if self.sample else number != self.seed % len(self.ranks) or len(self.ranks) == 1:
                yield from self._guarded(f"compile {ranks}", lambda: self._compile(ranks))
            else:
                yield from self._guarded(f"host {ranks}", lambda: self._host(ranks, self.dtype))
        if self.ranks and self.seed % 2 and self.dtype == torch.float32 and not self.sample:
            ranks = self.ranks[self.seed // 2 % len(self.ranks)]
            yield from self._guarded(f"f64 {ranks}", lambda: self._in_doubles(ranks))

    def _in_doubles(self, ranks: int) -> Iterator[Finding]:
        """But for attention, of which there is no kernel for float64."""
        if not any("sdpa" in node["op"] for node in self._package(torch.float64).step["nodes"]):
            yield from self._host(ranks, torch.float64)

    @functools.cache
    def run(self, dtype: torch.dtype, ranks: int, moved: bool = False) -> Run:
        return run_eager(self.script, dtype, ranks, moved)

    def _runs(self, dtype: torch.dtype, ranks: int | None) -> tuple[Run, list[Run]]:
        """Eager in a dtype, and what it gives from other roundings; no ranks are those of the program before partition."""
        ranks = self._rows_of(ranks) if is_local(self.script) else 1
        others = [self.run(dtype, ranks, moved=True)]
        if dtype != torch.float64:
            others.append(self.run(torch.float64, ranks))
        return self.run(dtype, ranks), others

    def _prepare(self) -> None:
        try:
            self.script = load(self.path)
            self.seed, self.dtype = self.script.SEED, getattr(self.script, "DTYPE", torch.float32)
            runs = [self.run(dtype, 1, moved) for dtype in (torch.float64, self.dtype) for moved in (False, True)]
            if is_local(self.script):
                runs += [self.run(self.dtype, self._rows_of(ranks)) for ranks in self.ranks]
            if drift := next((run.drift for run in runs if run.drift), None):
                raise ValueError(f"eager's ranks drift apart: no hook averages the gradient of {drift!r}")
        except Exception as error:
            raise NotComparable("invalid", f"{type(error).__name__}: {error}\n{traceback.format_exc()}") from error
        self.has_autocast = "autocast(" in self.path.read_text()
        if not all(run.is_finite() for run in runs):
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

    def _compare(self, where: str, dtype: torch.dtype, ranks: int | None, results: Trace, state: Trace,
                 steps: int | None = None) -> Iterator[Finding]:
        """With what eager has after `steps`, or at the end."""
        run, others = self._runs(dtype, ranks)

        def state_after(one: Run) -> Trace:
            return one.final if steps is None else one.states[steps - 1]
        coarsest = torch.bfloat16 if self.has_autocast and dtype == torch.float32 else dtype
        epsilon = max(torch.finfo(one).eps for one in (coarsest, *([] if self._is_exact() else [torch.float32])))
        found: list[str] = []
        is_explained = True
        for part, got in ((lambda one: one.results, results), (state_after, state)):
            differences = Tolerance(part(run), map(part, others), epsilon).differences(got)
            found += differences.values()
            is_explained = is_explained and all(
                explain(part(run)[name], [part(one)[name] for one in self._rounded(dtype, ranks)], got[name])
                for name in differences)
        if found:
            yield Finding("unstable" if is_explained else "wrong", where, "\n".join(found))

    @functools.cache
    def _rounded(self, dtype: torch.dtype, ranks: int | None) -> list[Run]:
        """Eager as others would round; only where something is off."""
        ranks = self._rows_of(ranks) if is_local(self.script) else 1
        return [run_eager(self.script, dtype, ranks, rounding=Roundings(seed)) for seed in range(RUNS)]

    @functools.cache
    def _is_exact(self) -> bool:
        """Trained in float64, the step has no float32 in it: random numbers and 1 / integers are float32 by definition,
        and some optimizers have scalars in float32, whatever the parameters are (docs/optimizers.md)."""
        nodes = self._package(torch.float64).step["nodes"]
        return _has_exact_scalars(start(self.script, torch.float64)[1]) and not any(
            value.get("dtype") in ("f32", "bf16", "f16") for node in nodes if node["phase"] != "optimizer"
            for value in node["results"] if isinstance(value, dict))

    @functools.cache
    def _package(self, dtype: torch.dtype) -> spmd.StepPackage:
        model, optimizer = start(self.script, dtype)
        batch = next(batches_of(self.script, dtype, 1))
        return spmd.capture(self.script.train_step, model, optimizer, *batch, name="train_step",
                            batch_dims=getattr(self.script, "BATCH_DIMS", None))

    def _mesh(self, ranks: int) -> dict[str, Any]:
        replicas = self._rows_of(ranks) // ranks
        return {"ranks": ranks} if replicas == 1 else {"mesh": f"replicate:{replicas},shard:{ranks}"}

    def _rows_of(self, ranks: int | None) -> int:
        """How many ranks there are along all axes; an axis over which nothing is cut there cannot be."""
        return 1 if ranks is None else ranks if ranks == 1 else ranks * getattr(self.script, "REPLICAS", 1)

    def _words(self, ranks: int) -> list[str]:
        """Options of spmd-compile."""
        given = {**self._mesh(ranks), **self.script.OPTIONS}
        return given.pop("options", []) + [f"--{name}={value}" for name, value in given.items()]

    def _host(self, ranks: int, dtype: torch.dtype) -> Iterator[Finding]:
        """The first program of the script, compiled and run."""
        where = f"{'host' if dtype == self.dtype else 'f64'} {ranks}"
        step, artifact = self.folder / f"{dtype}.step", self.folder / f"{dtype}{ranks}.spmd"
        self._package(dtype).save(step)
        tool("spmd-compile", step, "-o", artifact, "--quiet", f"--cpu={CPU}", *self._words(ranks))
        run, _ = self._runs(dtype, ranks)
        steps, results = run.steps_of_one_program(), {}
        with spmd.load(artifact, threads=1, timeout=100) as trainer:
            for number in range(steps):
                for group, rate in enumerate(run.rates[number]):
                    if any(i["kind"] == "hyper" and i["name"] == "lr" and i["group"] == group
                           for i in self._package(dtype).step["inputs"]):
                        trainer.set_hyper("lr", group, rate)
                results |= results_of(trainer.step(*run.batch(number)), number)
            state = {(i.name if i.state in ("param", "buffer") else f"optimizer/{i.state}/{i.name}"):
                     to_torch(trainer.read(i.state, i.name), i.dtype) for i in trainer.tensors
                     if i.state not in ("rng", "constant")}
        yield from self._compare(where, dtype, ranks, results, state, steps)

    def _compile(self, ranks: int) -> Iterator[Finding]:
        """The whole script through spmd.compile, as a user runs it."""
        options = dict(self.script.OPTIONS)
        # Before the script is set up: what eager has trained may be reached by name (TEACHER).
        run, _ = self._runs(self.dtype, ranks)
        model, optimizer = start(self.script, self.dtype)
        step = spmd.compile(self.script.train_step, **self._mesh(ranks), threads=1, timeout=100,
                            options=[*options.pop("options", []), f"--cpu={CPU}"],
                            batch_dims=getattr(self.script, "BATCH_DIMS", None), **options)
        between = getattr(self.script, "between", lambda *unused: None)
        results: Trace = {}
        for number in range(len(run.batches)):
            results |= results_of(step(model, optimizer, *run.batch(number)), number)
            between(model, optimizer, number)
        state = state_of(model, optimizer)
        step.reset()
        missing = sorted((run.results.keys() - results.keys()) | (run.final.keys() - state.keys()))
        if missing:
            yield Finding("wrong", f"compile {ranks}", f"there is no {', '.join(missing)}")
        yield from self._compare(f"compile {ranks}", self.dtype, ranks, results, state)

    def _interpret(self) -> Iterator[Finding]:
        """In float64: the import alone, and partitioned programs."""
        package, program = self._package(torch.float64), self.folder / "program.mlir"
        first = package.first_step  # a graph of its own, which runs once
        if first is not None:
            package = dataclasses.replace(first, weights=package.weights)
        several = [n for n in RANKS if n > 1]
        for ranks in (None, *(several[self.seed % 3:][:1] if self.sample else several)):
            run, _ = self._runs(torch.float64, ranks)
            steps = 1 if first is not None else run.steps_of_one_program()
            recorded = _with_reference(package, run, steps, self._rows_of(ranks) if is_local(self.script) else None)
            step = recorded.save(self.folder / "s.step")
            if ranks:
                tool("spmd-compile", step, "--compile-to=collectives", "--quiet", "-o", program, *self._words(ranks))
            else:
                tool("spmd-translate", "--import-step", step, "-o", program)
            out = self.folder / "out.safetensors"
            tool("spmd-interpret", program, f"--weights={step}", f"--steps={steps}", f"--save={out}")
            results, state = _read_saved(out)
            where = f"interpreter {ranks or 'imported'}"
            found = list(self._compare(where, torch.float64, ranks, results, state, steps))
            if found:
                yield from found
                return


def _with_reference(package: spmd.StepPackage, run: Run, steps: int, ranks: int | None) -> spmd.StepPackage:
    """The package with batches and rates of an eager run."""
    names = [i["name"] for i in package.step["inputs"] if i["kind"] == "batch"]
    reference = {f"batch/{n}/{name}": t for n in range(steps) for name, t in zip(names, run.batches[n])}
    reference["loss"] = torch.zeros(steps, dtype=torch.float64)
    for group in range(len(run.rates[0])):
        reference[f"hyper/lr/{group}"] = torch.tensor([r[group] for r in run.rates[:steps]], dtype=torch.float64)
    reference |= {f"final/{name}": t for name, t in run.states[steps - 1].items()}
    return dataclasses.replace(package, reference=reference, reference_ranks=ranks)


def _read_saved(path: Path) -> tuple[Trace, Trace]:
    """Results and state that the interpreter saved: results of a step are "3/loss/PATH", PATH the key in its dict."""
    results, state = {}, {}
    for name, tensor in load_file(path).items():
        step, _, rest = name.partition("/")
        if step == "final":
            state[rest] = tensor
        elif "/" in rest:
            key = rest.split("/", 1)[1]
            results[f"{step}/" + (f"['{key}']" if key else "")] = tensor
    return results, state


def _has_exact_scalars(optimizer: torch.optim.Optimizer) -> bool:
    options = optimizer.param_groups[0]
    return isinstance(optimizer, torch.optim.SGD) or bool(options.get("fused"))


def _errors(text: str) -> str:
    """Of a tool's diagnostics, all but warnings."""
    lines, is_warning = [], False
    for line in text.splitlines():
        if not line.startswith(" "):
            is_warning = "warning: " in line
        if not is_warning:
            lines.append(line)
    return "\n".join(lines)


def check(path: Path, ranks: Iterable[int] = RANKS, sample: bool = False) -> list[Finding]:
    with tempfile.TemporaryDirectory(prefix="spmd-steps.") as folder:
        return list(Checker(path, Path(folder), ranks, sample).findings())


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in sys.argv[1:]:
        for finding in check(Path(name)):
            print(finding.where, finding.kind, finding.text, sep="\n  " if finding.text else " ")
