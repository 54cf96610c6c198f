"""Checkpoints of a compiled step: saving them, also beside the training, and going on from one."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

import torch

from ..capture.call import StepCall
from ..native import FAILED
from ..run.runtime import Trainer
from ..run_error import RunError
from ..state.checkpoint import Checkpoint
from ..state.loading import check_groups, load_into, notes_of, objects_file, read_objects, take_groups
from ..state.state_file import Revised, StateFile, opened
from .randomness import drawn_of, follow_counters, step_counts

if TYPE_CHECKING:
    from .compiled_step import CompiledStep


class Checkpoints:
    """Of one compiled step; what the arguments mean is said by CompiledStep's methods. `source` is to be loaded at the
    next call, when the ranks are there."""

    def __init__(self) -> None:
        self.source: Checkpoint | StateFile | Revised | None = None
        self._strict = True
        self._had_state = False  # the optimizer, before it is loaded
        self._saving: Trainer | None = None  # which writes a checkpoint beside the training

    def save(self, step: CompiledStep, folder: str | Path, kind: str, mode: str, keep: int,
             objects: Mapping[str, Any] | None) -> Path:
        with step._lock:
            program, objects = step._compiled(), objects or {}
            if step._live.is_replaced():
                raise RuntimeError(f"parameters or optimizer state were replaced since the last call of {step.__name__}\n"
                                   "  cure: save before that, or after the next call")
            self.finish(step, waits=True)
            step._live.before_save()
            processes = step._agreement.processes
            files = dict([objects_file(objects, processes.rank)] if objects else [])
            step._live.trainer.save_checkpoint(
                folder, kind=kind, mode=mode, step=step.steps, keep=keep, files=files,
                notes=notes_of(program.call.optimizers, step._live.names, processes.world, list(objects)))
            self._saving = step._live.trainer if mode == "beside" else None
            return Path(folder) / f"step-{step.steps:08d}"

    def finish(self, step: CompiledStep, waits: bool) -> None:
        """Asks whether what is written beside the training is there; `waits` until it is."""
        with step._lock:
            if self._saving is None:
                return
            saving, self._saving = self._saving, None
            if not saving.finish_checkpoint(waits):
                self._saving = saving

    def load(self, step: CompiledStep, folder: str | Path, strict: bool, objects: Mapping[str, Any] | None,
             map_location: Any, revise_keys: Sequence[tuple[str, str]], callback: Callable[[Any], Any] | None) -> int:
        with step._lock:
            live = step._live
            if live is None or not live.lost:
                self.finish(step, waits=True)
            if live is not None and (live.lost or live.is_replaced()):  # the next call starts from model and optimizer
                step._forget()
            if step._agreement is None:
                step._join()
            processes, objects = step._agreement.processes, objects or {}
            checkpoint = processes.together(lambda: opened(folder, map_location, revise_keys, callback,
                                                           lambda: Checkpoint(folder)))
            states = processes.together(lambda: read_objects(checkpoint, objects, processes.rank, processes.world))
            self.source, self._strict = checkpoint, strict
            if step._live is not None:
                self._resume_now(step)
            else:
                step._randomness.given = drawn_of(checkpoint)
            for name, value in objects.items():
                value.load_state_dict(states[name])
            step.steps = checkpoint.step
            return checkpoint.step

    def _resume_now(self, step: CompiledStep) -> None:
        checkpoint, optimizers = self.source, step._current.call.optimizers
        try:
            check_groups(checkpoint.notes, optimizers, checkpoint.describe())
            self._bind(step._current.call)
            self.take(step)
        finally:
            self.source = None
        take_groups(checkpoint.notes, optimizers)

    def begin(self, call: StepCall) -> StepCall:
        """The call with which what is to be loaded comes."""
        if self.source is not None:
            check_groups(self.source.notes, call.optimizers, self.source.describe())
            take_groups(self.source.notes, call.optimizers)
            self._bind(call)
            for name, parameter in call.model.named_parameters():  # the call begins with those that are loaded
                if f"optimizer/grad/{name}" in self.source.tensors and parameter.grad is None and not parameter.is_meta:
                    parameter.grad = torch.zeros_like(parameter)
        return call

    def _bind(self, call: StepCall) -> None:
        self._had_state = any(state for _, state in call.optimizers.states)
        if not isinstance(self.source, Checkpoint):
            self.source.bind(call.model, call.optimizers)

    def take(self, step: CompiledStep) -> None:
        """The ranks, which are there, take the checkpoint."""
        if self.source is None:
            return
        step._live.before_load()
        if not isinstance(self.source, Checkpoint):
            self._load_into_tensors(step, self.source)
            self.source = None
            return
        try:
            step._live.trainer.load_checkpoint(self.source.folder, strict=self._strict)
        except RunError as error:
            if error.code == FAILED:
                step._live.lose(error, step.steps)
            raise
        step._live.after_load()
        step._randomness.put(step._live.trainer)
        self.source = None

    def _load_into_tensors(self, step: CompiledStep, source: StateFile | Revised) -> None:
        """What a file has, or a checkpoint under other names, goes the way of what a user writes."""
        program, call = step._current, step._current.call
        load_into(source, call.model, call.optimizers, self._strict, self._had_state)
        counts = step_counts(call.optimizers) if source.has_optimizer else []
        follow_counters(program, counts or [source.step * program.package.updates])
        step._randomness.put(program.home, drawn_of(source))
