"""Which program serves a call of a training: one that is there, or a new one."""
from __future__ import annotations

from typing import Callable

import torch

from ..capture.call import StepCall
from ..capture.optimizer.gradients import with_gradient
from ..remarks import remark
from .group_options import options_of
from .live_state import RanksState
from .make_program import make_program, served_too
from .programs import Need, Program, key_of, look_at
from .randomness import read_draws, step_counts, write_draws
from .training_state import TrainingState


def find_need(training: TrainingState, call: StepCall) -> Need:
    """What a call needs, as this process sees it."""
    current, live = training.current, training.live
    training.options.compile.overrides.replace_modules(call.model)
    look, options = look_at(call.model), options_of(call.optimizers)
    key, structure = key_of(call, look), look.ids
    replaced = live.replaced_states() if current is not None and live is not None else None
    restarts = current is not None and (structure != training.structure or live.is_replaced(replaced)
                                        or live.trains_other(current.held.now()) or _lacks_states(training))
    gradients = with_gradient([*look.parameters, *call.optimizers.parameters])
    need = Need(key, options, structure, gradients, call.batch, live is None, restarts, None, replaced)
    for program in training.programs if training.view == "global" else []:  # a local view does not read what calls have left
        program.note_what_stands_in_places()
    if not restarts:  # a program on the state that is there first
        programs = sorted(training.programs, key=lambda p: p.home is not live.trainer)
        need.program = next((p for p in programs if p.serves(need)), None)
    return need


def _lacks_states(training: TrainingState) -> bool:
    """Whether the optimizer has lost states that ranks of an earlier program still have, with old values: parameters that
    were frozen since, and whose state somebody has removed, begin anew."""
    live = training.live
    others = {program.home: program.states for program in training.programs if program.home is not live.trainer}
    return any(state != "grad" and name in live.named and state not in live.optimizers.state_of(live.named[name])
               for states in others.values() for state, name in states.names)


def agree(training: TrainingState, make_call: Callable[[], StepCall]) -> tuple[StepCall, StepCall, Need]:
    """The processes compare what they call the step with.

    Returns:
      The call on the batch of all processes, the call with the rows of this process, and what all processes need.
    """
    agreement, call, need, state, choice, error = training.agreement, None, None, {}, 0, None
    try:
        call = make_call()
        check_objects(training, call)
        need = find_need(training, agreement.global_call(call))
        state, choice = _compared(call, need.gradients), need.choice(training.programs)
    except Exception as problem:
        error = problem
    shapes, choice = agreement.meet(call, state, choice, error)
    training.unequal_batches = "" if shapes is None else ", ".join(sorted({str(list(map(list, one))) for one in shapes}))
    everyones = agreement.global_call(call, shapes)
    if shapes is not None:  # the need is that of another batch
        need = find_need(training, everyones)
        choice = min(training.processes.gather_objects(need.choice(training.programs)))
    need.take(choice)
    if training.steps == 0:
        agreement.check_equal_rows(call, training.refuses_equal_rows)
    return everyones, call, need


def check_objects(training: TrainingState, call: StepCall) -> None:
    """Checks that a call has the model and the optimizers of the calls before.

    Raises:
      ValueError: it has others.
      StateLostError: the state is lost.
    """
    if training.current is None:
        return
    first = training.current.call
    if call.model is not first.model or not call.optimizers.is_same(first.optimizers):
        raise ValueError(f"{training.name} was compiled for another model or optimizer; call reset() first, or "
                         "compile the function once for each")
    training.live.check()


def program_for(training: TrainingState, call: StepCall, rows: StepCall, need: Need) -> Program:
    """The program that serves this call, compiled if there is none; its trainer has the state. `rows` is the call with
    the batch of this process."""
    if need.program is None and not need.restarts:
        need.program = served_too(training, call, need)
    program, drawn = need.program, None
    if program is None:
        need.replaced = None  # a capture may put other tensors there
    if need.restarts:
        remark(f"{training.name}: parameters or optimizer state were replaced; starting from the new ones")
        drawn = read_draws(training.live.trainer)
        training.forget()
    if program is None:
        program = _add_program(training, call, rows, need, drawn)
    if training.live is not None and training.live.trainer is not program.home:
        training.live.fetch_all()
        write_draws(read_draws(training.live.trainer), program.home)
        training.live.release()
        training.hand_over(call, program.held, RanksState(program.home, program.states, training.view == "local",
                                                          is_fresh=False))
    training.live.take(program.held)
    training.current = program
    if need.program is None:
        training.drop(other for other in training.programs if program.replaces(other))
    return program


def _add_program(training: TrainingState, call: StepCall, rows: StepCall, need: Need,
                 drawn: dict[str, torch.Tensor] | None) -> Program:
    """A new program. `drawn`: where the random numbers of a training that restarts go on."""
    starts, known = training.live is None, [state for _, state in call.optimizers.states if state]
    counts = step_counts(call.optimizers) if starts else []
    program = make_program(training, call, rows, need)
    if starts:
        training.randomness.start(program, drawn, counts, bool(known), training.checkpoints.source is not None,
                                  training.steps)
    training.programs.append(program)
    training.structure = need.structure
    return program


def _compared(call: StepCall, gradients: frozenset[int]) -> dict[str, str]:
    """What the processes of a job must call a step with alike, as text."""
    state = {}
    if call.takings:
        taken = [f"{values} value{'s' * (values != 1)}{' and the end' * ends}" for values, ends in (t.count for t in call.takings)]
        state["what the step takes of its iterators"] = ", ".join(taken)
    state |= {"the number of tensors": str(len(call.batch)), "the default dtype": str(torch.get_default_dtype())}
    if gradients:
        names = [name for name, parameter in call.model.named_parameters() if id(parameter) in gradients]
        state["which parameters have a gradient"] = f"{len(gradients)} ({', '.join(names)})"
    for number, group in enumerate(options_of(call.optimizers)):
        state |= {f"{name} of param group {number}": value for name, value in group.items()}
    state |= {f"the dtype of batch input {name!r}": str(t.dtype) for name, t in zip(call.batch_names, call.batch)}
    return state | call.values() | {"train() of the model": str(call.model.training)}
