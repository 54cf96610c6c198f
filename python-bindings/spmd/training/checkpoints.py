"""The checkpoints of one training that are under way: one that is being written, and one that is to be loaded."""
from __future__ import annotations

import threading

import torch

from ..capture.call import StepCall
from ..capture.optimizer.optimizers import Optimizers
from ..run.runtime import Trainer
from ..state.checkpoint import Checkpoint
from ..state.loading import check_groups, take_groups
from ..state.source import Source
from ..state.state_file import by_names_of


class Checkpoints:
    """What is written beside the training, and what the next call loads; resuming.py saves and loads.

    Attributes:
      source: is loaded at the next call, when the ranks are there; None: nothing is.
      is_strict: tensors that `source` lacks, or has besides, are an error.
      had_state: the optimizers had state before `source` was loaded.
      saving: the trainer that writes a checkpoint beside the training; None: none does.
    """

    def __init__(self, lock: threading.RLock) -> None:
        self.source: Source | None = None
        self.is_strict = True
        self.had_state = False
        self.saving: Trainer | None = None
        self._lock = lock

    @property
    def resumed(self) -> dict[str, object]:
        """What is to be loaded, by key; empty where nothing is."""
        return self.source.tensors if self.source is not None else {}

    def finish(self, waits: bool) -> None:
        """Checks whether the checkpoint is complete that is written beside the training; `waits` until it is."""
        with self._lock:
            if self.saving is None:
                return
            saving, self.saving = self.saving, None
            if not saving.finish_checkpoint(waits):
                self.saving = saving

    def begin(self, call: StepCall) -> StepCall:
        """Prepares a call with which `source` is loaded: options of param groups, and gradients, are there before it."""
        if self.source is not None:
            check_groups(self.source.notes, call.optimizers, self.source.describe())
            take_groups(self.source.notes, call.optimizers)
            self.had_state = any(state for _, state in call.optimizers.states)
            self.name_by(call.model, call.optimizers)
            for name, parameter in call.model.named_parameters():  # the call begins with those that are loaded
                if f"optimizer/grad/{name}" in self.source.tensors and parameter.grad is None and not parameter.is_meta:
                    parameter.grad = torch.zeros_like(parameter)
        return call

    def name_by(self, model: torch.nn.Module, optimizers: Optimizers) -> None:
        """Gives the tensors of `source` the names that they have in the model, and those of the parameters to optimizer state
        that a file has by number."""
        if not isinstance(self.source, Checkpoint):
            self.source.bind(model, optimizers)
        self.source = by_names_of(model, self.source)
