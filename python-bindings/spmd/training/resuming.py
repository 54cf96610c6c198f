"""Saving checkpoints of a training, also beside it, and going on from one."""
from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

import torch

from ..capture.optimizer.masters import MASTER
from ..capture.world.held import whole
from ..native import FAILED
from ..run_error import RunError
from ..state.checkpoint import Checkpoint
from ..state.keys import key_of
from ..state.loading import Target, check_groups, drop_frozen_states, load_into, notes_of, objects_file, read_objects, take_groups
from ..state.source import Source
from ..state.state_file import opened
from ..state.untrained_file import NAME, untrained_file
from .programs import Program
from .randomness import drawn_of, follow_counters, step_counts
from .training_state import TrainingState
from .untrained import is_elsewhere, untrained_states


@dataclasses.dataclass(frozen=True)
class LoadOptions:
    """How a checkpoint is loaded; CompiledStep.load_checkpoint documents the options."""

    strict: bool
    objects: Mapping[str, Any]
    map_location: Any
    revise_keys: Sequence[tuple[str, str]]
    callback: Callable[[Any], Any] | None


def save_checkpoint(training: TrainingState, folder: str | Path, kind: str, mode: str, keep: int,
                    objects: Mapping[str, Any]) -> Path:
    """See CompiledStep.save_checkpoint."""
    with training.lock:
        program, live, checkpoints = training.current_program(), training.live, training.checkpoints
        check_counted(training)
        if live.is_replaced():
            raise RuntimeError(f"parameters or optimizer state were replaced since the last call of {training.name}\n"
                               "  hint: save before that, or after the next call")
        checkpoints.finish(waits=True)
        live.before_save()
        processes = training.processes
        files = dict([objects_file(objects, processes.rank)] if objects else [])
        untrained = untrained_states(live)
        if untrained and processes.rank == 0:
            files[NAME] = untrained_file(untrained)
        live.trainer.save_checkpoint(
            folder, kind=kind, mode=mode, step=training.steps, keep=keep, files=files,
            notes=notes_of(program.call.optimizers, live.names, processes.world, list(objects), bool(untrained)))
        checkpoints.saving = live.trainer if mode == "beside" else None
        return Path(folder) / f"step-{training.steps:08d}"


def load_checkpoint(training: TrainingState, folder: str | Path, options: LoadOptions) -> int:
    """See CompiledStep.load_checkpoint."""
    with training.lock:
        live, checkpoints = training.live, training.checkpoints
        if live is None or not live.lost:
            checkpoints.finish(waits=True)
        if live is not None and (live.lost or live.is_replaced()):  # the next call starts from model and optimizer
            training.forget()
        training.join()
        processes = training.processes
        source = processes.together(lambda: opened(folder, options.map_location, options.revise_keys, options.callback,
                                                   lambda: Checkpoint(folder)))
        states = processes.together(lambda: read_objects(source, options.objects, processes.rank, processes.world))
        checkpoints.source, checkpoints.is_strict = source, options.strict
        if training.live is not None:
            _resume_now(training)
        else:
            training.randomness.given = drawn_of(source)
        for name, value in options.objects.items():
            value.load_state_dict(states[name])
        training.steps = source.step
        return source.step


def _resume_now(training: TrainingState) -> None:
    checkpoints, call = training.checkpoints, training.current.call
    source = checkpoints.source
    try:
        check_groups(source.notes, call.optimizers, source.describe())
        check_counted(training, source)
        checkpoints.had_state = any(state for _, state in call.optimizers.states)
        take_checkpoint(training)
    finally:
        checkpoints.source = None
    take_groups(source.notes, call.optimizers)


def check_counted(training: TrainingState, source: Source | None = None) -> None:
    """Raises where the optimizer has Python numbers that a checkpoint lacks: it has those of param groups. `source`: what is
    loaded; weights alone change no optimizer."""
    if source is not None and not source.has_optimizer and "param_groups" not in source.notes:
        return
    for number in (number for program in training.programs for number in program.counted.by_input.values()):
        if not number.is_in_groups:
            raise RuntimeError(f"the optimizer counts in '{number}', and checkpoints have Python numbers of param groups only\n"
                               "  hint: save optimizer.state_dict() with torch.save, and load that")


def check_resumed_first(program: Program, batch: Sequence[torch.Tensor]) -> None:
    """Raises where a checkpoint takes the place of the first step and the optimizer decides by its numbers what the next step
    computes: the program was traced for the numbers that a first step leaves."""
    if program.counted.by_input and program.package.first_step is not None and not program.package.guards.hold(batch):
        raise RuntimeError(f"the optimizer's computation depends on '{next(iter(program.counted.by_input.values()))}', so a "
                           "checkpoint cannot replace its first step\n  hint: call the compiled step once, then load the "
                           "checkpoint")


def take_checkpoint(training: TrainingState) -> None:
    """The ranks, which are there, take the checkpoint that is to be loaded, if there is one."""
    checkpoints, live, call = training.checkpoints, training.live, training.current.call
    if checkpoints.source is None:
        return
    everything = whole(call.model, training.current.held)
    checkpoints.name_by(everything, call.optimizers)
    source = checkpoints.source
    live.before_load()
    if not isinstance(source, Checkpoint) or is_elsewhere(live, source):
        _load_into_tensors(training, source, everything)
        checkpoints.source = None
        return
    try:
        live.trainer.load_checkpoint(source.folder, strict=checkpoints.is_strict)
    except RunError as error:
        if error.code == FAILED:
            live.lose(error, training.steps)
        raise
    if checkpoints.is_strict:
        drop_frozen_states(source, live.named, call.optimizers)
    live.after_load()
    training.randomness.put(live.trainer)
    checkpoints.source = None


def _load_into_tensors(training: TrainingState, source: Source, everything: torch.nn.Module) -> None:
    """What a file has, or a checkpoint under other names, goes the way of what a user writes. `everything`: all modules of
    the step."""
    program, call, checkpoints = training.current, training.current.call, training.checkpoints
    states = [key_of(slot.info) for slot in training.live.states if slot.info.state != MASTER]
    load_into(source, Target(everything, call.model, call.optimizers, checkpoints.had_state, states), checkpoints.is_strict)
    counts = step_counts(call.optimizers) if source.has_optimizer else []
    follow_counters(program, counts or [source.step * program.package.updates])
    training.randomness.put(program.home, drawn_of(source))
