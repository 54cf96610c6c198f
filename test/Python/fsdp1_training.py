"""Trains small_net.py under PyTorch's FSDP1 with keep_low_precision_grads on CPUs, in processes with gloo, for
test_kept_gradients.py: python fsdp1_training.py PROCESSES STORE.

Prints one JSON object: of each case what `Seen` has.
"""
from __future__ import annotations

from typing import NamedTuple

import torch
import torch.distributed as dist
from fsdp2_training import Recorder, stored, types
from gloo_process import run_processes
from small_net import Block, batches, setup
from torch import nn
from torch.distributed.fsdp import MixedPrecision
from torch.nn.functional import cross_entropy

CALLS = 20


class ByHand(torch.optim.Optimizer):
    """Reads gradients widened, as an optimizer that takes narrow ones does."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.05})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.sub_(p.grad.to(p.dtype) * group["lr"])


OPTIMIZERS = {"by hand": ByHand, "SGD": lambda p: torch.optim.SGD(p, lr=0.05),
              "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9)}


class Case(NamedTuple):
    """`adds`: each second call updates. `keep`: keep_low_precision_grads."""

    optimizer: str
    keep: bool = True
    adds: bool = False


CASES = {"by hand": Case("by hand"), "SGD": Case("SGD"), "momentum": Case("momentum"), "adds": Case("SGD", adds=True),
         "wide": Case("SGD", keep=False)}


class Seen(NamedTuple):
    """Of each call the mean of the ranks' losses; of each that clips the total norm; the types of what is reduced, of
    gradients that a call leaves, of the total norm, of parameters and optimizer state."""

    losses: list[float]
    norms: list[float]
    types: dict[str, list[str]]


def policy(case: Case) -> MixedPrecision:
    return MixedPrecision(param_dtype=torch.bfloat16, keep_low_precision_grads=case.keep)


def clip(model, limit: float) -> torch.Tensor:
    """The method of FSDP1's modules, or the function."""
    return model.clip_grad_norm_(limit) if hasattr(model, "clip_grad_norm_") else \
        nn.utils.clip_grad_norm_(model.parameters(), limit)


def call_step(model, optimizer, x, y, ends: bool):
    """A call: one that leaves gradients, or that updates. The network begins so that its gradients are clipped at once."""
    loss = cross_entropy(model(x).flatten(0, 1).float(), y.flatten())
    loss.backward()
    if not ends:
        return loss.detach(), None
    norm = clip(model, 0.5)
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach(), norm


def types_of_numbers(numbers) -> list[str]:
    return sorted({str(number.dtype).removeprefix("torch.") for number in numbers})


def train(case: Case, rank: int, processes: int, recorder: Recorder, all_reduce) -> Seen:
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    # Not with use_orig_params=True: PyTorch 2.13 then gives a tied parameter a gradient that it must not have.
    model = FullyShardedDataParallel(setup()[0], auto_wrap_policy=ModuleWrapPolicy({Block}), mixed_precision=policy(case),
                                     device_id=torch.device("cpu"))
    optimizer = OPTIMIZERS[case.optimizer](model.parameters())
    for moved in recorder.moved.values():
        moved.clear()
    losses, norms, gradients = [], [], []
    for number, (x, y) in enumerate(batches(CALLS)):
        loss, norm = call_step(model, optimizer, *(t.chunk(processes)[rank] for t in (x, y)), not case.adds or number % 2 == 1)
        if norm is not None:
            norms.append(norm)
        gradients += [p.grad for p in model.parameters() if p.grad is not None][:1]
        all_reduce(loss)
        losses.append(loss.item() / processes)
    return Seen(losses, [norm.item() for norm in norms], stored(model, optimizer) | {
        "reduced": sorted(recorder.moved["reduce_scatter"]), "gradients": types(*gradients), "norm": types_of_numbers(norms)})


def train_all(rank: int, processes: int) -> dict[str, dict]:
    all_reduce, recorder = dist.all_reduce, Recorder()
    return {name: train(case, rank, processes, recorder, all_reduce)._asdict() for name, case in CASES.items()}


if __name__ == "__main__":
    run_processes(train_all)
