"""One call of a training: the program that serves it runs on the ranks, and the call gives what the step returns."""
from __future__ import annotations

import weakref
from typing import Any, Callable, Sequence

import numpy as np
import torch

from ..arrays import to_torch
from ..capture.call import StepCall
from ..capture.optimizer.scheduled import read_option
from ..capture.write.outputs import Empty, Output
from ..capture.write.result import unwrap
from ..interrupts import uninterrupted
from ..native import FAILED
from ..run.runtime import Trainer
from ..run_error import RunError
from ..torch_api.optimizers import mark_called
from ..torch_api.tracing import pytree
from .batch_sizes import OneSize
from .choose_program import agree, check_objects, find_need, program_for
from .deferred import DeferredOutputs
from .group_options import as_now
from .programs import Need, Program
from .randomness import follow_counters, step_counts
from .resuming import check_counted, check_resumed_first, take_checkpoint
from .training_state import TrainingState


class NonFiniteError(FloatingPointError):
    """The loss of a step is nan or infinite; with check_finite=True."""


def run_step(training: TrainingState, make_call: Callable[[], StepCall]) -> Any:
    """Takes one step. `make_call` gives the call; it is called once.

    Raises:
      OtherTaken: the step takes another number of values from its iterators than the call has.
    """
    training.checkpoints.finish(waits=False)
    if training.processes.world == 1:
        call = rows = make_call()
        check_objects(training, call)
        need = find_need(training, call)
    else:
        call, rows, need = agree(training, make_call)
    program = program_for(training, call, rows, need)
    source = training.checkpoints.source
    is_resumed = source is not None and source.has_optimizer
    if source is not None:
        check_counted(training, source)
    if is_resumed:
        check_resumed_first(program, need.batch)
    size = _prepare(training, program, call, rows, need)
    trainer = program.trainer
    outputs, arrays = _run_on_ranks(training, program, size, call, rows)
    if program.counted.advance(is_resumed):
        program.options = as_now(program.options, call.optimizers)
    device = trainer.device_of(rows.batch)
    if size.rows is not None:
        arrays = program.sizes.outputs(arrays, size)
    if training.check_finite:
        _check_finite(training, arrays, trainer)
    outputs = outputs or [to_torch(array, info.dtype).to(device or "cpu") for array, info in zip(arrays, trainer.outputs)]

    def value(leaf: Any) -> Any:
        if not isinstance(leaf, Output):
            return leaf.make().to(device or "cpu") if isinstance(leaf, Empty) else leaf
        return outputs[leaf.index].item() if leaf.scalar else outputs[leaf.index]

    program.check(value, training.steps - 1)
    program.leave(value, size)
    program.write_batch(value, rows)
    program.package.seeds.put()
    for write in program.package.python_writes:
        write.put()
    return unwrap(pytree.tree_map(value, size.result,
                                  is_leaf=lambda leaf: isinstance(leaf, (Empty, Output))))


def _prepare(training: TrainingState, program: Program, call: StepCall, rows: StepCall, need: Need) -> OneSize:
    """Brings to the ranks what a step begins with: a checkpoint, written tensors, hyper-parameters."""
    if training.checkpoints.source is not None:
        need.replaced = None  # what is loaded may be other tensors
    take_checkpoint(training)
    live, trainer = training.live, program.trainer
    size = program.of_size(need.key)
    program.check_batch(rows, size)
    if size.rows is not None and training.unequal_batches:
        raise ValueError(f"the processes pass batches of different numbers of rows, {training.unequal_batches}, and with "
                         "view='local' each rank has as many\n  hint: drop the last rows of an epoch, or pad them and mask "
                         "the loss")
    live.before_step(program.package.gradients, need.replaced)
    if live.was_loaded:
        follow_counters(program, step_counts(call.optimizers))
    groups = call.optimizers.param_groups
    for name, group in program.hyper:
        counted = program.counted.now(name, group)
        trainer.set_hyper(name, group, float(read_option(groups[group], name)) if counted is None else counted)
    return size


def _run_on_ranks(training: TrainingState, program: Program, size: OneSize, call: StepCall,
                  rows: StepCall) -> tuple[list[torch.Tensor] | None, list[np.ndarray] | None]:
    """The ranks take the step.

    Returns:
      The outputs, either as tensors whose values may come later, or as arrays.
    """
    live, trainer = training.live, program.trainer
    with uninterrupted():
        try:
            trainer.issue(rows.batch if size.rows is None else program.sizes.batch(rows, size))
            outputs = _deferred_outputs(training, program, size, rows.batch)
            arrays = None if outputs else trainer.results()
        except RunError as error:
            if error.code == FAILED:
                live.lose(error, training.steps)
            raise
        training.steps += 1
        live.after_step(program.package.gradients)
        for optimizer in call.optimizers.parts:
            mark_called(optimizer)
    return outputs, arrays


def _deferred_outputs(training: TrainingState, program: Program, size: OneSize,
                      batch: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
    """What the step gives, where nothing looks at it in this call: on the GPU of the batch, where PyTorch waits for it,
    or kept by the runtime for a later look."""
    trainer, package = program.trainer, program.package
    if training.check_finite or size.rows is not None or not trainer.outputs:
        return None
    is_on_device = trainer.device_of(batch) is not None
    if is_on_device and trainer.collectives:  # where ranks fail together, nothing may be given of their step
        return None
    is_kept = not (package.written or size.left or package.grown) \
        and all(trainer.steps_kept(n) > 1 for n in range(len(trainer.outputs)))
    if not (is_on_device or is_kept) or trainer.looks_at_rows:
        return None
    lose = weakref.WeakMethod(training.lose_later)
    trainer.on_failure = lambda error: (method := lose()) and method(error)
    if is_on_device:
        return trainer.torch_results(batch)[0]
    return DeferredOutputs(trainer, training.lock, trainer.on_failure).tensors()


def _check_finite(training: TrainingState, arrays: list[np.ndarray], trainer: Trainer) -> None:
    """Raises when the loss is not finite, which Python sees once the step is over."""
    for array, info in zip(arrays, trainer.outputs):
        value = to_torch(array, info.dtype)
        if info.state == "loss" and not value.isfinite().all():
            raise NonFiniteError(f"the loss of step {training.steps - 1} of {training.name} is {value.tolist()}; "
                                 "parameters and optimizer state are those after its update\n  hint: load a "
                                 "checkpoint of an earlier step, and look at the batch, the learning rate and "
                                 "clipping")
