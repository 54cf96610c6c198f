"""Random numbers of a compiled step: a function of the seed and of the number of the step, which its state has."""
from __future__ import annotations

import weakref

import torch

from ..arrays import to_torch
from ..capture.optimizer.optimizers import Optimizers
from ..remarks import remark
from ..run.runtime import Trainer
from ..state.source import Source
from .programs import Program


def read_draws(trainer: Trainer) -> dict[str, torch.Tensor]:
    """Seed and step counter of random numbers; empty when the step draws none."""
    return {i.name: to_torch(trainer.read("rng", i.name), i.dtype) for i in trainer.tensors if i.state == "rng"}


def write_draws(drawn: dict[str, torch.Tensor], target: Trainer) -> None:
    """Another program goes on with the seed, and with the steps counted so far."""
    known = read_draws(target)
    for name, value in drawn.items():
        if name in known:
            target.write("rng", name, value)


def step_counts(optimizers: Optimizers) -> list[int]:
    """How many steps the parameters have taken, of optimizers that count them."""
    return [int(state["step"]) for _, state in optimizers.states if isinstance(state, dict) and "step" in state]


def drawn_of(source: Source) -> dict[str, torch.Tensor]:
    """What a checkpoint has of them."""
    return {key[4:]: source.read_torch(key) for key in source.tensors if key.startswith("rng/")}


def follow_counters(program: Program, counts: list[int]) -> None:
    """The draws of the next step are those of a training that has taken the steps which the optimizer counts."""
    write_draws({"step": torch.tensor(max(counts) // program.package.updates)}, program.home)


class Randomness:
    """Where the draws of one compiled step begin; `given` is what was set, or loaded, and is for ranks that come."""

    def __init__(self, name: str):
        self.given: dict[str, torch.Tensor] = {}
        self._name = name
        self._optimizers: list[weakref.ref[torch.optim.Optimizer]] = []

    def start(self, program: Program, drawn: dict[str, torch.Tensor] | None, counts: list[int], has_state: bool,
              is_resumed: bool, steps: int) -> None:
        """Random numbers go on after what has been `drawn`, or was given, or after the steps that the optimizer
        has counted (`counts`); where it has taken steps and counts none, they begin, which is told."""
        optimizers, same = program.call.optimizers, [ref() for ref in self._optimizers]
        self._optimizers = [weakref.ref(part) for part in optimizers.parts]
        if is_resumed and self.given:
            pass  # comes with the values
        elif drawn or self.given:
            write_draws(drawn or self.given, program.home)
            self.given = {}
        elif counts:
            follow_counters(program, counts)
        elif read_draws(program.home) and (has_state or steps and same == list(optimizers.parts)):
            remark(f"{self._name} draws random numbers, and starts from an optimizer that has taken steps and does not "
                   "count them: its draws (dropout masks) begin with those of step 0, as at the beginning of the training "
                   f"that is resumed\n  hint: set {self._name}.rng to what it was, {{'seed': …, 'step': …}}, before "
                   "the first call of a resumed training")

    def put(self, target: Trainer, drawn: dict[str, torch.Tensor] | None = None) -> None:
        """The ranks are there: what was given, before what was `drawn`, goes to them."""
        write_draws((drawn or {}) | self.given, target)
        self.given = {}
