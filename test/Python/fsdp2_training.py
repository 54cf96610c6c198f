"""Trains small_net.py under PyTorch's FSDP2 on CPUs, in processes with gloo, for test_beside_fsdp2.py:
python fsdp2_training.py PROCESSES STORE.

Prints one JSON object: of each case of so many processes what `Seen` has.
"""
from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.distributed as dist
from gloo_process import run_processes
from small_net import batches, setup
from torch import nn
from torch.nn.functional import cross_entropy

CALLS = 20


class Case(NamedTuple):
    """`sync`: None where every call updates; else each second one does, and gradients are reduced in "each" call, FSDP2's
    default, or in the "last", as with set_requires_gradient_sync(False) in the others."""

    mesh: tuple[int, ...]
    param: str | None = None
    reduce: str | None = None
    sync: str | None = None
    factor: float | None = None
    optimizer: str = "AdamW"  # SGD is without clipping: both hide by what a gradient is divided

    @property
    def processes(self) -> int:
        return math.prod(self.mesh)


CASES = {
    "bf16 and f32": Case((2,), "bfloat16", "float32"),
    "bf16 and f32 on 4": Case((4,), "bfloat16", "float32"),
    "bf16": Case((4,), "bfloat16"),
    "f32": Case((2,)),
    "f32 reduced in bf16": Case((2,), None, "bfloat16"),
    "2 x 2": Case((2, 2), "bfloat16", "float32"),
    "each": Case((2,), "bfloat16", "float32", "each"),
    "last": Case((2,), "bfloat16", "float32", "last"),
    "last on 4": Case((4,), "bfloat16", "float32", "last"),
    "last on 2 x 2": Case((2, 2), "bfloat16", "float32", "last"),
    "factor": Case((2,), "bfloat16", "float32", None, 1.0, "SGD"),
    "factor on 4": Case((4,), None, None, None, 3.0, "SGD"),
    "factor, each": Case((4,), "bfloat16", "float32", "each", 2.0, "SGD"),
    "factor, last": Case((2,), None, None, "last", 3.0, "SGD"),
    "factor on 2 x 2": Case((2, 2), "bfloat16", "float32", None, 2.0, "SGD"),
}


class Seen(NamedTuple):
    """The mean of the ranks' losses of each call; how many reductions of gradients it had; the types that were gathered,
    scattered and reduced; and those in which parameters, their gradients and optimizer state are stored."""

    losses: list[float]
    reductions: list[int]
    moved: dict[str, list[str]]
    stored: dict[str, list[str]]


def call_step(model, optimizer, x, y, adds: bool, ends: bool):
    """A call: one of two that add gradients up, or a whole step."""
    loss = cross_entropy(model(x).flatten(0, 1).float(), y.flatten())
    (loss / 2 if adds else loss).backward()
    if ends:
        if not isinstance(optimizer, torch.optim.SGD):
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return loss.detach()


def flags(case: Case, number: int) -> tuple[bool, bool]:
    return case.sync is not None, case.sync is None or number % 2 == 1


def make(case: Case):
    model, optimizer = setup()
    return model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9) if case.optimizer == "SGD" else optimizer


def types(*tensors) -> list[str]:
    return sorted({str(tensor.dtype).removeprefix("torch.") for tensor in tensors if tensor.dim()})


def stored(model, optimizer) -> dict[str, list[str]]:
    """Without scalars: the counts of an optimizer."""
    state = [value for values in optimizer.state.values() for value in values.values() if value is not None]
    return {"parameters": types(*model.parameters()), "optimizer": types(*state)}


class Recorder:
    """Counts reductions and notes the types that collectives move, under the names that they have had."""

    def __init__(self):
        self.moved: dict[str, set[str]] = {"all_gather": set(), "reduce_scatter": set(), "all_reduce": set()}
        self.reductions = 0
        for name, kind in (("all_gather_single", "all_gather"), ("all_gather_into_tensor", "all_gather"),
                           ("reduce_scatter_single", "reduce_scatter"), ("reduce_scatter_tensor", "reduce_scatter"),
                           ("all_reduce", "all_reduce")):
            if (original := getattr(dist, name, None)) is not None:
                setattr(dist, name, self._noting(original, kind))

    def _noting(self, original, kind: str):
        def noted(*args, **kwargs):
            self.reductions += kind == "reduce_scatter"
            self.moved[kind].update(types(next(x for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor))))
            return original(*args, **kwargs)
        return noted


def train(case: Case, rank: int, recorder: Recorder, all_reduce) -> Seen:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    model, _ = make(case)
    options = {"mp_policy": MixedPrecisionPolicy(*(getattr(torch, name) if name else None
                                                   for name in (case.param, case.reduce)))}
    if len(case.mesh) > 1:
        options["mesh"] = init_device_mesh("cpu", case.mesh, mesh_dim_names=("replicate", "shard"))
    units = [fully_shard(block, **options) for block in model.blocks] + [fully_shard(model, **options)]
    if case.factor:
        for unit in units:
            unit.set_gradient_divide_factor(case.factor)
            unit.set_force_sum_reduction_for_comms(True)  # gloo has no sums of products
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9) if case.optimizer == "SGD" else \
        torch.optim.AdamW(model.parameters(), lr=1e-2)
    for moved in recorder.moved.values():
        moved.clear()
    losses, reductions, gradients = [], [], []
    for number, (x, y) in enumerate(batches(CALLS)):
        adds, ends = flags(case, number)
        model.set_requires_gradient_sync(ends or case.sync == "each")
        before = recorder.reductions
        loss = call_step(model, optimizer, *(t.chunk(case.processes)[rank] for t in (x, y)), adds, ends)
        reductions.append(recorder.reductions - before)
        gradients += [p.grad for p in model.parameters() if p.grad is not None][:1]
        all_reduce(loss)
        losses.append(loss.item() / case.processes)
    return Seen(losses, reductions, {kind: sorted(moved) for kind, moved in recorder.moved.items()},
                stored(model, optimizer) | {"gradients": types(*gradients)})


def train_all(rank: int, processes: int) -> dict[str, dict]:
    all_reduce, recorder = dist.all_reduce, Recorder()
    return {name: train(case, rank, recorder, all_reduce)._asdict() for name, case in CASES.items()
            if case.processes == processes}


if __name__ == "__main__":
    run_processes(train_all)
