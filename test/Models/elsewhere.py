"""Trains a model of the zoo in a type, for a target, beside eager PyTorch, and compares the gradients of its first step.

A few steps in bf16 show little of a gradient: what it moves is less than a rounding of most parameters. So gradients themselves are
compared, and how far eager's own in bf16 are off from what it computes in f32 says how far ours may be.
"""
from __future__ import annotations

import contextlib
import copy
import dataclasses
from typing import Any

import torch

import pipeline
import spmd
import zoo

#: In f32 eager itself is what is right: not every model, and no grouped product, can be in f64.
WIDER = {torch.bfloat16: torch.float32, torch.float32: torch.float32}
#: How often further off than eager's a gradient may be: as spmd-run --check has it of parameters.
MOST = 3
#: What may be off in any case, of a gradient's norm: four epsilons of bf16; in f32 sums of another order.
ROUNDING = {torch.bfloat16: 2.0**-5, torch.float32: 2.0**-15}
#: And of the largest gradient's norm, for those that are zero but for rounding.
NOISE = {torch.bfloat16: 2.0**-12, torch.float32: 2.0**-21}


def norm(tensors) -> float:
    return float(sum((t**2).sum() for t in tensors)) ** 0.5


@dataclasses.dataclass
class Run:
    """The losses of some steps, the gradients of the first, and the parameters after the last."""

    losses: list[float]
    gradients: dict[str, torch.Tensor]
    parameters: dict[str, torch.Tensor]


def train(model: torch.nn.Module, batches: list, compiled: Any = None) -> Run:
    """Plain SGD, eager or by a compiled step."""
    optimizer, losses, gradients = torch.optim.SGD(model.parameters(), lr=1e-2), [], {}

    def keep() -> None:
        gradients.update((name, p.grad.detach().double().clone()) for name, p in model.named_parameters() if p.grad is not None)

    for batch in batches:
        if compiled:
            try:
                losses.append(float(compiled(model, optimizer, batch)))
            except Exception as error:  # whatever it is, it is told
                raise pipeline.refused("train", error) from error
            with compiled.unshard_params(with_grads=True) if not gradients else contextlib.nullcontext():
                gradients or keep()
            continue
        loss = model(**batch).loss
        loss.backward()
        gradients or keep()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
    return Run(losses, gradients, {name: p.detach().double().clone() for name, p in model.named_parameters()})


def compare(what: str, true: Run, eager: Run, ours: Run, dtype: torch.dtype) -> None:
    """What is in all three by name."""
    t, e, o = (getattr(run, what) for run in (true, eager, ours))
    largest = max(norm([tensor]) for tensor in t.values())
    for name, tensor in t.items():
        of_eager, off, size = norm([e[name] - tensor]), norm([o[name] - tensor]), norm([tensor])
        if not off <= max(MOST * of_eager, ROUNDING[dtype] * size, NOISE[dtype] * largest):
            raise pipeline.StageError(what, f"{name} is {off:.2g} off, eager's {of_eager:.2g}, of a norm of {size:.2g}")


def check(case: zoo.Case, target: str, dtype: torch.dtype, ranks: int = 2) -> str:
    """Trains, and raises a StageError about what is too far off eager: a loss, a parameter, a gradient.

    Three steps, of which emulated GPUs take one. Gives ||g - t|| / ||t|| of all gradients together, where t is eager's in a wider
    type: of ours, and of eager's in this type.
    """
    model = pipeline.prepare(case, dtype)
    eager, true = copy.deepcopy(model), copy.deepcopy(model).to(WIDER[dtype])
    batches = zoo.batches(case, 1 if target.startswith("emulate") else 3)
    compiled = spmd.compile(ranks=ranks, policy=f"class:{case.block}", target=target, keep_grads=True)(zoo.plain_step)
    with zoo.first_of_ties() if case.ties else contextlib.nullcontext():
        true, eager, ours = train(true, batches), train(eager, batches), train(model, batches, compiled)
    for name, parameter in model.named_parameters():  # of an expert without a token, to plain SGD none is as good as zeros
        if any(name in run.gradients for run in (true, eager, ours)):
            for run in (true, eager, ours):
                run.gradients.setdefault(name, torch.zeros(parameter.shape, dtype=torch.float64))
    compare("gradients", true, eager, ours, dtype)
    for step, (t, e, o) in enumerate(zip(true.losses, eager.losses, ours.losses)):
        if not abs(o - t) <= max(MOST * abs(e - t), ROUNDING[dtype] / 4 * abs(t)):
            raise pipeline.StageError("train", f"the loss of step {step} is {o}, eager's {e}, and {t} in a wider type")
    compare("parameters", true, eager, ours, dtype)
    off = [norm(run.gradients[n] - t for n, t in true.gradients.items()) / norm(true.gradients.values()) for run in (ours, eager)]
    return f"{off[0]:.1e}" if WIDER[dtype] is dtype else f"{off[0]:.1e}, eager {off[1]:.1e}"
