"""Runs a script in eager PyTorch: what a compiled step is compared with."""
from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import itertools
import sys
import types
from pathlib import Path
from typing import Any, Iterator

import torch
from torch.utils import _pytree as pytree

from spmd.capture.model.activation_checkpoint import Checkpoints
from spmd.capture.ops.composites import one_op_composites
from spmd.capture.ops.draws import Draws
from spmd.capture.write.replicas import Replicas

Trace = dict[str, torch.Tensor]
Batch = tuple[torch.Tensor, ...]


@dataclasses.dataclass
class Run:
    """What a script computed: results of each step, the state after each and at the end."""

    results: Trace
    states: list[Trace] = dataclasses.field(default_factory=list)
    final: Trace = dataclasses.field(default_factory=dict)
    batches: list[Batch] = dataclasses.field(default_factory=list)
    rates: list[list[float]] = dataclasses.field(default_factory=list)
    drift: str | None = None  # a parameter that ends up another on each rank of a local view
    is_alone: list[bool] = dataclasses.field(default_factory=list)  # between() has changed nothing but rates

    def batch(self, step: int) -> Batch:
        """Tensors of its own for a step, which may write them."""
        return tuple(t.clone() for t in self.batches[step])

    def steps_of_one_program(self) -> int:
        """How many steps there are before batches have other shapes or the user changes what is trained."""
        shapes = [[(t.shape, t.dtype) for t in batch] for batch in self.batches]
        return next((n for n in range(1, len(shapes)) if shapes[n] != shapes[0] or not self.is_alone[n - 1]),
                    len(shapes))

    def is_finite(self) -> bool:
        return all(bool(torch.isfinite(t).all()) for t in [*self.results.values(), *self.final.values()]
                   if t.is_floating_point())


def load(path: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where inspect looks for the source of a class
    spec.loader.exec_module(module)
    return module


def is_local(script: types.ModuleType) -> bool:
    return script.OPTIONS.get("view") == "local"


def batches_of(script: types.ModuleType, dtype: torch.dtype, ranks: int) -> Iterator[Batch]:
    """With view="local" a script's batches are those of one rank: `ranks` of them are joined, shared inputs aside."""
    each = (batch if isinstance(batch, tuple) else (batch,) for batch in script.batches(dtype))
    if not is_local(script):
        yield from each
        return
    while len(group := tuple(itertools.islice(each, ranks))) == ranks:
        yield tuple(parts[0] if dim is None else torch.cat(parts) for dim, parts in zip(_dims(script), zip(*group)))


def results_of(returned: Any, step: int) -> Trace:
    """Tensors and numbers, by "STEP/['KEY']"."""
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


def _modes_of(script: types.ModuleType, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> tuple:
    return (getattr(script, "UPDATE", None), [m.training for m in model.modules()], [p.requires_grad for p in model.parameters()],
            [{k: v for k, v in g.items() if k not in ("lr", "params")} for g in optimizer.param_groups])


def start(script: types.ModuleType, dtype: torch.dtype) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(script.SEED)
    return script.setup(dtype)


def _move(model: torch.nn.Module, script: types.ModuleType, dtype: torch.dtype) -> None:
    """Parameters and buffers by one rounding each; in float64, where roundings are far from all that is looked for, by
    as much as a short sum may be off."""
    epsilon = torch.finfo(dtype).eps * (8 if dtype == torch.float64 else 1)
    generator = torch.Generator().manual_seed(script.SEED)
    with torch.no_grad():
        for p in [*model.parameters(), *model.buffers()]:
            if p.is_floating_point():
                sign = torch.randint(0, 2, p.shape, generator=generator).to(dtype) * 2 - 1
                p.mul_(1 + sign * epsilon)


def _rows_of(script: types.ModuleType, batch: Batch, ranks: int, rank: int) -> Batch:
    return tuple(t.clone() if dim is None else t.chunk(ranks)[rank].clone() for t, dim in zip(batch, _dims(script)))


def _dims(script: types.ModuleType) -> list[int | None]:
    """The batch dim of each input."""
    code = script.train_step.__code__
    given = getattr(script, "BATCH_DIMS", {})
    return [given.get(name, 0) for name in code.co_varnames[2:code.co_argcount]]


def _averaged(results: list[Trace]) -> Trace:
    """Losses of ranks are given as their mean, all else as rank 0 has it."""
    return {name: sum(one[name] for one in results) / len(results) if t.dim() == 0 and t.is_floating_point() else t
            for name, t in results[0].items()}


def _refuse_other_strides(optimizer: torch.optim.Optimizer, *unused: Any) -> None:
    """PyTorch's fused optimizers read a gradient in the order of memory, whatever its strides: they update other
    elements than those that it is of, and there is nothing to compare with (docs/optimizers.md)."""
    for p in (p for group in optimizer.param_groups for p in group["params"] if p.grad is not None):
        if p.grad.stride() != p.stride():
            raise ValueError(f"a fused optimizer takes a gradient with strides {p.grad.stride()} for {p.stride()}")


def run_eager(script: types.ModuleType, dtype: torch.dtype, ranks: int = 1, moved: bool = False,
              rounding: contextlib.AbstractContextManager | None = None) -> Run:
    """The script as it stands; random numbers are those that the captured step draws. `ranks` are those of a local
    view, `moved` begins from parameters that one rounding has moved, `rounding` is entered around each step of each rank,
    in its thread: modes are of threads."""
    model, optimizer = start(script, dtype)
    if moved:
        _move(model, script, dtype)
    replicas = Replicas(model, optimizer, ranks) if is_local(script) else None
    if replicas:
        model, optimizer = replicas.members[0]
    if any(group.get("fused") for group in optimizer.param_groups):
        optimizer.register_step_pre_hook(_refuse_other_strides)
    between = getattr(script, "between", lambda *unused: None)
    run = Run({})
    for step, batch in enumerate(batches_of(script, dtype, ranks)):
        run.batches.append(tuple(t.clone() for t in batch))
        run.rates.append([float(g["lr"]) for g in optimizer.param_groups])

        def run_rank(rank: int, *members: Any) -> Trace:
            rows = _rows_of(script, batch, ranks, rank) if replicas else batch
            with rounding or contextlib.nullcontext(), Draws(torch.tensor(script.SEED), torch.tensor(step), rank).entered():
                return results_of(script.train_step(*members, *rows), step)
        with Checkpoints().followed(), one_op_composites():
            run.results |= _averaged(replicas.step(run_rank)) if replicas else run_rank(0, model, optimizer)
        run.states.append(state_of(model, optimizer))
        modes = _modes_of(script, model, optimizer)
        for members in replicas.members if replicas else [(model, optimizer)]:
            between(*members, step)
        after = state_of(model, optimizer)
        run.is_alone.append(not hasattr(script, "TEACHER") and modes == _modes_of(script, model, optimizer) and all(
            torch.equal(t, after[name]) for name, t in run.states[-1].items()))
        if replicas and len(run.states) == script.STEPS:
            break
    run.final = state_of(model, optimizer)
    run.drift = replicas.find_drift() if replicas else None
    return run
