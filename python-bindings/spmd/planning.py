"""package.plan(ranks=64): what a step would take on each of N ranks, without weights, kernels or the ranks."""
from __future__ import annotations

import dataclasses
import json
import tempfile
from pathlib import Path
from typing import Any, Sequence

from .compiler import CompileError, Package, refusal, run_compiler
from .diagnostics import Compilation
from .meshes import mesh_text
from .tools import find_tool
from .units.choice import policy_words


@dataclasses.dataclass(frozen=True)
class MemoryClass:
    """Bytes of a class: those that persist between steps, and those alive at the peak of the transient part."""

    persistent: int
    peak: int


@dataclasses.dataclass(frozen=True)
class PeakTensor:
    """A buffer that is alive at the peak. `loc` is "MODULE, FILE:LINE"."""

    name: str
    memory_class: str
    bytes: int
    loc: str


@dataclasses.dataclass(frozen=True)
class Collectives:
    """The collectives of one kind: how many messages and values, bytes that a rank hands over, bytes of the result of
    a gather or the operand of a reduction."""

    op: str
    count: int
    values: int
    sent_bytes: int
    bytes: int


@dataclasses.dataclass(frozen=True)
class Unit:
    """A shard unit: `elements` of `parameters` tensors in a flat buffer of `padded`, of which a rank has `chunk`."""

    name: str
    modules: list[str]
    dtype: str
    parameters: int
    elements: int
    padded: int
    chunk: int
    collectives: list[Collectives]


@dataclasses.dataclass(frozen=True, repr=False)
class Plan:
    """What spmd-compile --compile-to=plan plans; printed as its tables.

    Sizes are bytes of one rank, the same on all. `classes` has parameters, gradients, optimizer state, activations,
    gathered (units) and io; `peak_bytes` is what is alive at command `peak_op` (at `peak_loc`), `tensors` are what is
    alive there, largest first; `replicated` what every rank computes whole; `report` the whole as JSON
    (docs/planning.md).
    """

    step: str
    ranks: int
    mode: str
    policy: str
    arena_bytes: int
    state_bytes: int
    transient_bytes: int
    classes: dict[str, MemoryClass]
    peak_bytes: int
    peak_op: str
    peak_loc: str
    tensors: list[PeakTensor]
    units: list[Unit]
    collectives: list[Collectives]
    replicated: list[dict[str, Any]]
    report: dict[str, Any] = dataclasses.field(compare=False)
    text: str = dataclasses.field(compare=False)

    def __repr__(self) -> str:
        return self.text


class MemoryBudgetError(CompileError):
    """The arena of a rank exceeds the budget. The message says by how much, what is alive at the peak and what planning
    again with other options gave; `plan` is the plan."""

    def __init__(self, done: Compilation, plan: Plan):
        super().__init__("\n".join(said.rendered for said in done.diagnostics), done.command, done.exit_code,
                         done.said.strip(), done.diagnostics)
        self.plan = plan


def plan_package(package: Package, *, ranks: int | None, policy: Any = None, mode: str | None = None,
                 mesh: Any = None, memory_budget: int | str | None = None, options: Sequence[str] = ()) -> Plan:
    """See StepPackage.plan."""
    with tempfile.TemporaryDirectory(prefix="spmd.") as work:
        step, report = Path(work) / f"{package.step['name']}.step", Path(work) / "report.json"
        package.save(step, weights=False, reads=False)
        command = [str(find_tool("spmd-compile")), str(step), "--compile-to=plan", f"--json={report}",
                   *([] if ranks is None else [f"--ranks={ranks}"]),
                   *([] if mesh is None else [f"--mesh={mesh_text(mesh, 'mesh')}"]),
                   *policy_words(policy, Path(work)), *([] if mode is None else [f"--mode={mode}"]),
                   *([] if memory_budget is None else [f"--memory-budget={memory_budget}"]), *options]
        done = run_compiler(command, step)
        is_over = any(diagnostic.code == "memory-budget" for diagnostic in done.diagnostics)
        if done.exit_code != 0 and not is_over:
            raise refusal(done)
        plan = read_plan(json.loads(report.read_text()), done.tables)
    if is_over:
        raise MemoryBudgetError(done, plan)
    return plan


def read_plan(report: dict[str, Any], text: str) -> Plan:
    """A plan from what spmd-compile --json wrote, and its tables."""
    arena, peak = report["arena"], report["peak"]

    def collectives(entries: list[dict]) -> list[Collectives]:
        return [Collectives(**entry) for entry in entries]

    return Plan(
        step=report["step"], ranks=report["ranks"], mode=report["mode"], policy=report["policy"],
        arena_bytes=arena["bytes"], state_bytes=arena["state_bytes"], transient_bytes=arena["transient_bytes"],
        classes={name: MemoryClass(**entry) for name, entry in arena["classes"].items()},
        peak_bytes=peak["bytes"], peak_op=peak["op"], peak_loc=peak["loc"],
        tensors=[PeakTensor(t["name"], t["class"], t["bytes"], t["loc"]) for t in peak["tensors"]],
        units=[Unit(**{**unit, "collectives": collectives(unit["collectives"])}) for unit in report["units"]],
        collectives=collectives(report["collectives"]), replicated=report["replicated"], report=report, text=text)
