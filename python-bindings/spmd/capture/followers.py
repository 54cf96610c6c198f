"""What follows the functions and operators of one trace: the handlers of its modes, and replaced functions of PyTorch."""
from __future__ import annotations

import dataclasses
from typing import Any

import torch

from .call import StepCall
from .loops.microbatches import Microbatches, TracedOperators
from .model.data_assignments import DataAssignments
from .model.fakes import FakeStep
from .model.run import Run
from .model.traced_device import OnTheCpu
from .observe.dispatch_mode import DispatchMode
from .observe.function_mode import FunctionMode
from .observe.op_recorder import LastOperator, OpRecorder
from .observe.operator_forms import OperatorForms
from .observe.stacks import user_stack
from .ops.complex_numbers import ComplexNumbers
from .ops.custom_ops import KernelArguments
from .ops.draws import Draws
from .ops.embeddings import FrequencyScaling
from .ops.replacements import MixedProducts, Replacements, rules
from .ops.views import BitViews, SameShape
from .values.chosen_rows import ChosenRows
from .values.known_values import KnownValues
from .values.number import mark_number
from .values.python_numbers import PythonNumbers
from .values.read_values import ReadValues
from .values.segments import Segments
from .values.step_checks import StepChecks
from .values.value_guards import ValueGuards
from .world.environment import Environment
from .world.foreign import ForeignTensors
from .world.held import named_modules
from .world.paths import Place

_SMALL = 64  # elements of a buffer that a call reads before it begins


@dataclasses.dataclass(frozen=True)
class Followers:
    """Those of one trace. `operators` and `functions` are the modes with the other handlers; `numbers` is a mode for functions that
    backward() runs, where `functions` is not active."""

    foreign: ForeignTensors
    known: KnownValues
    guards: ValueGuards
    recorder: OpRecorder
    draws: Draws
    last: LastOperator
    iterations: Microbatches
    values: ReadValues
    operators: DispatchMode
    functions: FunctionMode
    numbers: FunctionMode
    assigned: DataAssignments
    chosen: ChosenRows
    segments: Segments
    checks: StepChecks


def follow(call: StepCall, environment: Environment, run: Run, fakes: FakeStep) -> Followers:
    """Makes the followers of a trace whose fakes are installed."""
    reached, modules = environment.reached.tensors, list(named_modules(call.model, fakes.whole))
    foreign = ForeignTensors(fakes.foreign, reached, environment.excluded)
    roots = (_known_roots(fakes) if call.options.asks_batch else {}) | (fakes.counted.places(fakes.inputs) if call.options.counts else {})
    for i in fakes.inputs if call.options.counts else ():
        if i.kind == "hyper" and id(i.fake) in fakes.numbers:
            mark_number(i.fake)
    known = KnownValues(roots, reached)
    guards = ValueGuards(call.batch, fakes.counted.moving())
    recorder, last = OpRecorder(modules, fakes.parameters()), LastOperator()
    forms, draws = OperatorForms(fakes.mode, foreign.is_watched), Draws(*fakes.rng())
    iterations = Microbatches(fakes.parameters(), [module for _, module in modules],
                              TracedOperators(forms, draws, known, recorder.stamped_as), call.may_repeat)
    values = ReadValues(known, guards, lambda: iterations.note_operator(False))

    def note_replaced(operator: Any) -> None:
        recorder.stamp(operator)  # what the operator's backward computes belongs to the line of the call
        iterations.note_operator(False)

    numbers = PythonNumbers(iterations.is_computed)
    checks = StepChecks(lambda: iterations.note_operator(False), lambda: user_stack()[0])
    fakes.refusals.where = lambda: user_stack()[0]
    fakes.refusals.tell = lambda expression: guards.tell(expression, user_stack()[0])
    return Followers(
        foreign, known, guards, recorder, draws, last, iterations, values,
        # Phases order the handlers; where two have one phase, this list does.
        DispatchMode([draws, *run.scheduled.handlers(), OnTheCpu(), SameShape(), last, iterations, forms, fakes.refusals,
                      MixedProducts(), BitViews(), foreign, KernelArguments(), values, checks, FrequencyScaling(),
                      Replacements(rules(known.knows, ComplexNumbers(fakes.real_of)), note_replaced), recorder]),
        FunctionMode([numbers, iterations]), FunctionMode([numbers]),
        DataAssignments(fakes.inputs, known), ChosenRows(known),
        Segments(lambda size: guards.tell(size, ()), lambda: user_stack()[0]), checks)


def _known_roots(fakes: FakeStep) -> dict[int, int | Place]:
    """Inputs whose values a call knows when it begins, by the ids of their fakes: the tensors of the batch, by their number,
    and small buffers (a flag, a count of calls), which the ranks are asked for."""
    batch: list[torch.Tensor] = [i.fake for i in fakes.inputs if i.kind == "batch"]
    buffers = {id(i.fake): Place.always(i.name, i.real) for i in fakes.inputs
               if i.kind == "buffer" and i.real is not None and i.real.numel() <= _SMALL}
    return {**buffers, **{id(fake): number for number, fake in enumerate(batch)}}
