"""The step package NAME.step/: step.json, weights.safetensors, reference.safetensors (docs/step-format.md)."""
from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Sequence

import torch
from safetensors.torch import save_file

from ...planning import Plan, plan_package
from ...torch_api.tracing import FakeTensor
from ..optimizer.gradients import Gradients
from ..optimizer.optimizer_numbers import OptimizerNumbers
from ..values.lazy_rows import Check
from ..values.value_guards import ValueGuards
from ..world.grown_lists import Grown
from ..world.held import Held
from ..world.leaked_values import LeakedValue
from ..world.reads.guards import ReadGuards
from ..world.reads.writes import Write
from ..world.seeds import SeededGenerators
from ..world.settings import Setting


FORMAT = "spmd-step"


@dataclasses.dataclass
class StepPackage:
    """A captured step.

    `step` is the content of step.json. `weights` holds parameters, buffers, constants and optimizer state that was
    there at capture; `reference` what eager PyTorch gave on the reference batches (empty without them).
    """

    step: dict[str, Any]
    weights: dict[str, torch.Tensor]
    reference: dict[str, torch.Tensor]
    reference_ranks: int | None = None  # that the reference's batches are for, with view=local
    reads: ReadGuards = dataclasses.field(default_factory=ReadGuards)  # as in write/graph.py; in this process only
    python_writes: list[Write] = dataclasses.field(default_factory=list)  # as in write/graph.py; in this process only
    guards: ValueGuards = dataclasses.field(default_factory=ValueGuards)  # as in write/graph.py; in this process only
    seeds: SeededGenerators = dataclasses.field(default_factory=SeededGenerators)  # as in write/graph.py; in this process only
    gradients: Gradients = Gradients()  # as in write/graph.py; in this process only
    left: list[LeakedValue] = dataclasses.field(default_factory=list)  # as in write/graph.py; in this process only
    grown: list[Grown] = dataclasses.field(default_factory=list)  # as in write/graph.py; in this process only
    settings: list[Setting] = dataclasses.field(default_factory=list)  # as in write/graph.py; in this process only
    written: list[tuple[str, Any]] = dataclasses.field(default_factory=list)  # as in write/graph.py; in this process only
    checks: list[Check] = dataclasses.field(default_factory=list)  # as in write/graph.py; in this process only
    read_left: frozenset[int] = frozenset()  # as in write/graph.py; in this process only
    updates: int = 1  # as in write/graph.py; in this process only
    libraries: tuple[Path, ...] = ()  # files with functions and kernels that are operators
    first_step: StepPackage | None = None  # a first call that differs from all later ones, on the same state
    other_batch: StepPackage | None = None  # of a step for several batch sizes, the same with another number of rows
    held: Held = dataclasses.field(default_factory=Held)  # as in write/graph.py; in this process only
    optimizer_numbers: OptimizerNumbers = dataclasses.field(default_factory=OptimizerNumbers)  # in this process only
    result: Any = None  # the step's return value with trace.Output in place of tensors

    @property
    def has_backward(self) -> bool:
        """False for a step that only evaluates."""
        return any(node["phase"] == "backward" for node in self.step["nodes"])

    def text(self, reads: bool = False) -> str:
        """step.json: one line per entry of each list, so that captures can be read and compared with diff. `reads`: with the Python
        values that the capture has read."""
        lines = []
        for key, value in (self.step | ({"reads": self.reads.table()} if reads and len(self.reads) else {})).items():
            if isinstance(value, list) and value:
                entries = ",\n".join("  " + _json(entry) for entry in value)
                lines.append(f"{_json(key)}: [\n{entries}\n]")
            else:
                lines.append(f"{_json(key)}: {_json(value)}")
        return "{\n" + ",\n".join(lines) + "\n}\n"

    def digest(self) -> str:
        """Names the graph: equal for equal step.json."""
        parts = [part.text() for part in (self, self.first_step, self.other_batch) if part]
        return hashlib.sha256("".join(parts).encode()).hexdigest()

    def plan(self, ranks: int | None = None, policy: Any = None, mode: str | None = None,
             memory_budget: int | str | None = None, options: Sequence[str] = (), mesh: Any = None) -> Plan:
        """Plans the step for `ranks` ranks: memory of a rank by class and at the peak, collectives by unit.

        Needs no weights, no kernels and no ranks: Llama-3-8B for 64 ranks takes seconds.

        Args:
          ranks: how many ranks share parameters, gradients, optimizer state and batch; None: those of the mesh, or 1.
          policy: which modules are shard units: text as for spmd-compile --policy, what spmd.shard_units gave for the
            model, or a policy of PyTorch's that names classes or sizes. None: the model's annotations, or one unit.
          mode: as for spmd.compile.
          memory_budget: the most bytes that a rank's arena may have, a number or "80GB".
          options: further options of spmd-compile.
          mesh: how the ranks are arranged, as for spmd.compile.

        Raises:
          MemoryBudgetError: when the arena is larger; its `plan` is the plan.
          CompileError: when the step cannot be planned.
        """
        return plan_package(self, ranks=ranks, policy=policy, mode=mode, memory_budget=memory_budget, options=options,
                            mesh=mesh)

    def save(self, path: str | os.PathLike, weights: bool = True, reads: bool = True) -> Path:
        """Writes the package; `weights=False` leaves graph and shapes (and the reference losses, if recorded), `reads=False` leaves out
        which Python values the capture has read.

        The folder appears whole or not at all; an older package of the name is replaced.

        Raises:
          FileExistsError: when something else has the name.
        """
        path = Path(path)
        if path.exists() and not (path / "step.json").is_file():
            raise FileExistsError(f"'{path}' is there and is no step package; remove it or choose another name")
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            (folder / "step.json").write_text(self.text(reads))
            if weights:
                if any(t.is_meta or isinstance(t, FakeTensor) for t in self.weights.values()):
                    raise ValueError("the model is made of meta or fake tensors and has no weights; save with "
                                     "weights=False (--no-weights)")
                _save_tensors(self.weights, folder / "weights.safetensors", {"format": "spmd-weights"})
            if self.reference:
                steps = str(len(self.reference["loss"]))
                ranks = {"ranks": str(self.reference_ranks)} if self.reference_ranks else {}
                _save_tensors(self.reference, folder / "reference.safetensors",
                              {"format": "spmd-reference", "steps": steps, **ranks})
            folder.chmod(0o755)
            for file in folder.iterdir():
                file.chmod(0o644)
            if self.libraries:
                (folder / "libraries").mkdir(mode=0o755)
            for library in self.libraries:
                shutil.copy(library, folder / "libraries" / library.name)
            for name, part in (("first_step", self.first_step), ("other_batch", self.other_batch)):
                if part:
                    (folder / name).mkdir(mode=0o755)
                    (folder / name / "step.json").write_text(part.text(reads))
            if path.exists():
                shutil.rmtree(path)
            folder.rename(path)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return path


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def _save_tensors(tensors: dict[str, torch.Tensor], path: Path, metadata: dict[str, str]) -> None:
    """A safetensors file whose bytes depend on its content alone: the library writes metadata in random order."""
    plain = {name: t.detach().cpu().clone(memory_format=torch.contiguous_format) for name, t in tensors.items()}
    save_file(plain, path, metadata)
    with open(path, "r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        ordered = {"__metadata__": dict(sorted(header.pop("__metadata__").items())), **header}
        text = json.dumps(ordered, separators=(",", ":"), ensure_ascii=False).encode()
        assert len(text) <= size, "the header only changes its order"
        file.seek(8)
        file.write(text.ljust(size))


@dataclasses.dataclass(frozen=True)
class OwnStates:
    """Which states of optimizers, and gradients, the ranks keep for the user: `names` has (state, parameter), of which
    gradients of `copied` parameters are there to be looked at."""

    names: frozenset[tuple[str, str]]
    copied: frozenset[str]

    @classmethod
    def of(cls, package: StepPackage) -> OwnStates:
        return cls(frozenset((i["state"], i["of"]) for i in package.step["inputs"] if i["kind"] == "state"),
                   frozenset(package.gradients.copied))

    def serve(self, other: OwnStates) -> bool:
        """Whether a program with the states `other` can train these. Its unit has a place for its states in any case, but
        nobody would bring them here. What is kept of gradients to be looked at is nothing to add to."""
        return other.names <= self.names and other.copied <= self.copied and bool(other.copied) == bool(self.copied)
