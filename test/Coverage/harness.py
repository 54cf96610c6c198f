"""Takes each op of a family through the whole compiler, and says how far it comes.

    results = run_family("pointwise", OPS)      # {"abs": Result(...), ...}

Per op, all samples are one step, with the gradients for random cotangents, captured in float64: import, the sharding
rule of every op in it by execution (spmd-interpret --check-rules), and the values in the interpreter against PyTorch's.
Then all ops of the family in float32 (and int64 and bool) are one step, compiled for two ranks, with every input cut
along its first dim, and run.
"""
from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import functools
import os
import re
import shutil
import subprocess
import tempfile
import warnings
import zlib
from pathlib import Path
from typing import Any, Callable, Sequence

import torch
from safetensors.torch import load_file, save_file

import spmd
from samples import Op, Sample
from spmd.capture.ops.draws import Draws

COLUMNS = ("import", "shard rule", "interpreter", "host")
YES, NO_RULE, NOT_REACHED = "yes", "replicated", "–"
DTYPES = (torch.float64, torch.int64, torch.bool)
HOST_DTYPES = (torch.float32, torch.int64, torch.bool)
RANKS = 2
SEED = 5  # of random ops


@dataclasses.dataclass
class Result:
    """How far an op came: a cell per column ("yes", "no", "replicated": it has no rule and runs on whole operands, "–":
    an earlier stage failed), the ATen ops that its capture consists of, and what the first failure said."""

    cells: dict[str, str] = dataclasses.field(default_factory=lambda: dict.fromkeys(COLUMNS, NOT_REACHED))
    ops: list[str] = dataclasses.field(default_factory=list)
    failure: str = ""

    def fail(self, column: str, message: str) -> None:
        self.cells[column] = "no"
        self.failure = self.failure or message.strip()


class CaseStep:
    """A training step that computes nothing but ops on their samples.

    The step's parameter is there because a step has one; `names` says what each output is.
    """

    def __init__(self, cases: Sequence[tuple[Op, Sample]]):
        self.cases = cases
        self.model = torch.nn.Module()
        self.model.register_parameter("weight", torch.nn.Parameter(torch.ones(2)))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.5)
        self.inputs = [[t.detach().clone().requires_grad_(t.requires_grad) for t in one.tensors()] for _, one in cases]
        self.names: list[str] = []
        self.cotangents: list[list[torch.Tensor]] = [[] for _ in cases]
        self.expected = self.run(make_cotangents=True)

    def run(self, make_cotangents: bool = False) -> dict[str, torch.Tensor]:
        # A generator per op: its cotangents are the same whatever other ops share the step.
        generators = {op.name: torch.Generator().manual_seed(zlib.crc32(op.name.encode())) for op, _ in self.cases}

        def cotangent_of(number: int, position: int, value: torch.Tensor) -> torch.Tensor:
            if make_cotangents:
                generator = generators[self.cases[number][0].name]
                self.cotangents[number].append(torch.randn(value.shape, dtype=value.dtype, generator=generator))
            return self.cotangents[number][position]
        with Draws(torch.tensor(SEED), torch.tensor(0)).entered():  # random ops draw what the captured step draws
            return self._detached(cotangent_of)

    def _detached(self, cotangent_of: Callable) -> dict[str, torch.Tensor]:
        return {name: t.detach().clone() for name, t in self._compute(self.inputs, cotangent_of).items()}

    def _compute(self, inputs: Sequence[Sequence[torch.Tensor]], cotangent_of: Callable) -> dict[str, torch.Tensor]:
        computed: dict[str, torch.Tensor] = {}
        for number, ((op, one), tensors) in enumerate(zip(self.cases, inputs)):
            outputs = one.call(op.function, tensors)
            computed.update((f"{number}/output{i}", t) for i, t in enumerate(outputs))
            wanted = [(i, t) for i, t in enumerate(tensors) if t.requires_grad]
            smooth = [t for t in outputs if t.requires_grad]
            if smooth and wanted:
                cotangents = [cotangent_of(number, i, t) for i, t in enumerate(smooth)]
                gradients = torch.autograd.grad(smooth, [t for _, t in wanted], cotangents, allow_unused=True)
                computed.update((f"{number}/gradient{i}", g) for (i, _), g in zip(wanted, gradients) if g is not None)
        return computed

    def capture(self, name: str, sharded: bool) -> spmd.capture.StepPackage:
        """The step package; with `sharded`, every input that has rows is cut along them."""
        def train_step(model, optimizer, inputs, cotangents):
            loss = (model.weight * model.weight).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss, self._compute(inputs, lambda number, position, _: cotangents[number][position])
        dims = {f"{what}.{n}.{i}": 0 if sharded and t.dim() and t.shape[0] > 1 else None
                for what, lists in (("inputs", self.inputs), ("cotangents", self.cotangents))
                for n, tensors in enumerate(lists) for i, t in enumerate(tensors)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(SEED)
            return spmd.capture(train_step, self.model, self.optimizer, self.inputs, self.cotangents, name=name,
                                batch_dims=dims)

    def batch(self) -> list[torch.Tensor]:
        return [t.detach() for lists in (self.inputs, self.cotangents) for tensors in lists for t in tensors]


def difference(got: torch.Tensor, expected: torch.Tensor, floor: float) -> float:
    """The largest difference of two elements, relative to the largest expected one or `floor`. NaN equals NaN."""
    if got.shape != expected.shape:
        return float("inf")
    if not expected.is_floating_point():
        return 0.0 if torch.equal(got.to(expected.dtype), expected) else float("inf")
    got, expected = got.double(), expected.double()
    special = ~torch.isfinite(expected)
    same = (got == expected) | (got.isnan() & expected.isnan())
    if not bool(same[special].all()) or not bool(torch.isfinite(got[~special]).all()):
        return float("inf")
    finite = expected[~special]
    if finite.numel() == 0:
        return 0.0
    return float((got[~special] - finite).abs().max() / finite.abs().max().clamp_min(floor))


def tool(name: str, *arguments: Any) -> subprocess.CompletedProcess:
    folder = os.environ.get("SPMD_BIN")
    return subprocess.run([str(Path(folder) / name) if folder else name, *map(str, arguments)],
                          capture_output=True, text=True)


def _message(done: subprocess.CompletedProcess) -> str:
    """The first error of a tool, without places."""
    line = next((line for line in done.stderr.splitlines() if "error: " in line), f"exit code {done.returncode}")
    return line.split("error: ")[-1]


@functools.cache
def _frame() -> collections.Counter:
    """The ops of a step without cases."""
    return _count(CaseStep([]).capture("frame", sharded=False))


def _count(package: spmd.capture.StepPackage) -> collections.Counter:
    return collections.Counter(node["op"].removesuffix(".default") for node in package.step["nodes"])


def _aten_ops(package: spmd.capture.StepPackage) -> list[str]:
    """The ATen ops of a capture beyond its frame, in order of appearance."""
    return list(_count(package) - _frame())


class Family:
    """The run of one family; see run_family."""

    def __init__(self, ops: Sequence[Op], folder: Path, expected: dict[str, dict[str, str]]):
        self.ops, self.folder, self.known = list(ops), folder, expected
        self.results = {op.name: Result() for op in self.ops}
        assert len(self.results) == len(self.ops), "two rows of one name"

    def run(self) -> dict[str, Result]:
        steps: dict[str, tuple[CaseStep, spmd.capture.StepPackage]] = {}
        for op in self.ops:
            cases = [(op, one) for dtype in DTYPES for one in op.samples(dtype)]
            assert cases, f"'{op.name}' has no sample"
            try:
                step = CaseStep(cases)
                package = step.capture("coverage", sharded=False)
                steps[op.name] = step, package
                self.results[op.name].ops = _aten_ops(package)
            except (spmd.CaptureError, NotImplementedError) as error:
                self.results[op.name].fail("import", str(error).splitlines()[0])
        functions = self._import(steps)
        self._check_rules(functions)
        self._interpret(functions, steps)
        self._run_on_host([op for op in self.ops if self.results[op.name].cells["interpreter"] == YES])
        return self.results

    def _import(self, steps: dict) -> dict[str, str]:
        """Each op's step as a function of its own."""
        def read(number: int, name: str) -> subprocess.CompletedProcess:
            path = steps[name][1].save(self.folder / f"op{number}.step", weights=False)
            return tool("spmd-translate", "--import-step", path, "--no-locations")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            imports = dict(zip(steps, pool.map(read, range(len(steps)), steps)))
        functions = {}
        for number, (name, done) in enumerate(imports.items()):
            if done.returncode:
                self._refuse(name, "import", done)
                continue
            self.results[name].cells["import"] = YES
            text = re.search(r"^  func\.func @step.*?^  }$", done.stdout, re.DOTALL | re.MULTILINE).group(0)
            functions[name] = text.replace("@step", f"@f{number}", 1)
        return functions

    def _refuse(self, name: str, column: str, done: subprocess.CompletedProcess) -> None:
        """A tool's failure as a cell: a clean error, that names an op."""
        assert done.returncode in (1, 2, 3), f"'{name}' crashes {done.args[0]}:\n{done.stderr[-3000:]}"
        self.results[name].fail(column, _message(done))

    def _program(self, functions: dict[str, str]) -> Path:
        path = self.folder / "program.mlir"
        path.write_text("module {\n" + "\n".join(functions.values()) + "\n}\n")
        return path

    def _check_rules(self, functions: dict[str, str]) -> None:
        """All at once; one by one when something is wrong."""
        done = tool("spmd-interpret", self._program(functions), "--check-rules")
        if done.returncode and len(functions) > 1:
            for name, text in functions.items():
                self._check_rules({name: text})
            return
        if done.returncode:
            self._refuse(next(iter(functions)), "shard rule", done)
            return
        without = {line.split(":")[0] for line in done.stdout.splitlines() if line.endswith(": no rule")}
        # Views map positions; what has no operand is whole until somebody uses a piece.
        view_like = {"aten.view", "aten.unsqueeze", "aten.squeeze.dim", "aten._fused_sgd", "aten.arange.start_step",
                     "aten.constant"}
        for name, text in functions.items():
            ops = set(re.findall(r"= (aten\.[\w.]+)", text))
            self.results[name].cells["shard rule"] = NO_RULE if ops & (without - view_like) else YES

    def _interpret(self, functions: dict[str, str], steps: dict) -> None:
        inputs = {}
        for name, text in functions.items():
            label = re.search(r"@(f\d+)", text).group(1)
            step, package = steps[name]
            batch = iter(step.batch())
            for position, given in enumerate(package.step["inputs"]):
                value = {"param": torch.ones(2), "hyper": torch.tensor(0.5, dtype=torch.float64),
                         "constant": package.weights.get(f"constant/{given.get('name')}"),
                         "rng": torch.tensor(given.get("value") or 0)}.get(given["kind"])
                inputs[f"{label}/{position}"] = (next(batch) if value is None else value).clone()
        save_file(inputs, self.folder / "in.safetensors")
        done = tool("spmd-interpret", self._program(functions), f"--calls={self.folder / 'in.safetensors'}",
                    f"--results={self.folder / 'out.safetensors'}")
        if done.returncode and len(functions) > 1:
            for name, text in functions.items():
                self._interpret({name: text}, steps)
            return
        if done.returncode:
            self._refuse(next(iter(functions)), "interpreter", done)
            return
        results = load_file(self.folder / "out.safetensors")
        for name, text in functions.items():
            label = re.search(r"@(f\d+)", text).group(1)
            step, package = steps[name]
            op = next(op for op in self.ops if op.name == name)
            paths = [output["path"] for output in package.step["outputs"]]
            got = {path.removeprefix("1."): results[f"{label}/{i}"] for i, path in enumerate(paths) if path != "0"}
            self._compare(op, "interpreter", step, got, op.tolerance)

    def _compare(self, op: Op, column: str, step: CaseStep, got: dict[str, torch.Tensor], tolerance: float) -> None:
        self.results[op.name].cells[column] = YES
        for name, expected in step.expected.items():
            number, what = name.split("/")
            if step.cases[int(number)][0] is not op:
                continue
            # An analytically zero result is compared absolutely; samples are of magnitude 1. PyTorch rounds what is
            # computed in a smaller type (exp of integers is float32).
            magnitude = op.magnitude if expected.dtype == torch.float64 else 0
            apart = difference(got[name], expected, max(magnitude, 1e-3 if tolerance < 1e-9 else 1e-1))
            rounding = 16 * torch.finfo(expected.dtype).eps if expected.is_floating_point() else 0
            if not apart <= max(tolerance, rounding):
                one = step.cases[int(number)][1]
                given = [tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in (*one.args, *one.kwargs.items())]
                self.results[op.name].fail(column, f"{what} of {op.name}{given} differs by {apart:.1e}")
                return

    def _run_on_host(self, ops: list[Op]) -> None:
        """Ops that are known not to compile go alone, and so do ops without a rule: their inputs are not cut."""
        known = {op.name for op in ops if self.known.get(op.name, {}).get("host") == "no"}
        whole = [op for op in ops if op.name not in known and self.results[op.name].cells["shard rule"] != YES]
        for op in ops:
            if op.name in known:
                self._run_together([op])
        self._run_together(whole)
        self._run_together([op for op in ops if op.name not in known and op not in whole])

    def _run_together(self, ops: list[Op]) -> None:
        """One step of these ops; in halves when it fails, to find out which op it is."""
        cases = [(op, one) for op in ops for dtype in HOST_DTYPES for one in op.samples(dtype)]
        if not cases:
            return
        step = CaseStep(cases)
        sharded = all(self.results[op.name].cells["shard rule"] == YES for op in ops)
        path = step.capture("host", sharded).save(self.folder / "host.step")
        artifact = self.folder / "host.spmd"
        done = tool("spmd-compile", path, "-o", artifact, f"--ranks={RANKS}", "--quiet")
        if done.returncode and len(ops) > 1:
            self._run_together(ops[:len(ops) // 2])
            self._run_together(ops[len(ops) // 2:])
            return
        if done.returncode:
            self._refuse(ops[0].name, "host", done)
            return
        with spmd.load(artifact) as trainer:
            _, got = trainer.step(*step.batch())
        shutil.rmtree(artifact)
        for op in ops:
            self._compare(op, "host", step, got, op.host_tolerance)


def run_family(ops: Sequence[Op], expected: dict[str, dict[str, str]] | None = None) -> dict[str, Result]:
    """A Result per op. `expected` (name -> column -> cell) is what the committed table says; it only saves time."""
    with tempfile.TemporaryDirectory() as folder:
        return Family(ops, Path(folder), expected or {}).run()
