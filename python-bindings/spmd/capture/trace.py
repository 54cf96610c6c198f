"""Traces one call of a training step (forward, backward, optimizer) into one graph of ATen ops, on fake tensors."""
from __future__ import annotations

from typing import Collection, Sequence

import torch.distributed

from ..models import tensor_names
from ..offloaded import fetch_tensors
from ..torch_api.distributed import next_rank
from .call import StepCall
from .errors import CaptureError, error_at
from .model.fakes import ReplacedGradient
from .model.run import Run
from .observe import patches
from .ops import custom_ops
from .ops.complex_numbers import reach_pairs
from .optimizer.counted import CountedNumber, CountsInPython
from .optimizer.gradients import Gradients, has_values, names_of
from .optimizer.scheduled import Scheduled
from .session import Findings, TraceSession
from .world.unfollowed_hooks import AccumulationHooks, refuse_comm_hooks, refuse_hooks_with_nodes
from .world.code_names import users_hooks
from .world.environment import Environment
from .world.held import candidates, whole
from .world.no_sync import tell_if_within, told_of_no_sync
from .write.graph import Trace, gradients_of


def trace(call: StepCall, keep_grads: bool = False, scheduled: Scheduled = Scheduled(), gradients: Collection[int] = (),
          counted: Sequence[CountedNumber] = ()) -> Trace:
    """Traces the call; the model, the optimizers and the batch are left as they were. `keep_grads`: gradients that the
    step leaves behind are part of its state also where it clears them before it computes them anew, and those that it
    clears once they are used, as the optimizer got them. `gradients`: the ids of parameters whose gradients are there when
    the step begins. `counted`: Python numbers of optimizers that are inputs, beside those that the step changes."""
    _refuse_hooks(call, call.model)
    functions = [call.train_step, *users_hooks(call.model, call.optimizers.tables_of_hooks()), *custom_ops.functions()]
    known = [call.model, *call.optimizers.parts, *call.optimizers.holders, *call.batch, *call.model.parameters(), *call.model.buffers()]
    environment = Environment(*candidates(functions, call.model, call.others, known), counted=list(counted))
    reach_pairs(environment.reached, call.model)
    fetch_tensors(tensor for _, tensor in environment.reached.tensors.values())
    tell_if_within(call.model)
    with told_of_no_sync():
        plain, leftover = _trace(call, environment, Run(scheduled=scheduled))
    _refuse_hooks(call, whole(call.model, environment.held))
    given = names_of(gradients, tensor_names(whole(call.model, environment.held)))
    taken = tuple(dict.fromkeys([*leftover, *given]))
    if taken:  # these gradients outlive calls: they are part of the state. All others begin as they do: with none
        accumulates = has_values(gradients, call.model, call.optimizers) or not _has_updated(call, plain, leftover)
        copied = tuple(n for n in plain.stepped_gradients if n not in taken) if keep_grads and not accumulates else ()
        try:
            traced, leftover = _trace(call, environment, Run(taken, copied, keep_grads or accumulates, accumulates, scheduled=scheduled))
        except ReplacedGradient:
            traced, leftover = _trace(call, environment, Run(taken, copied, True, accumulates, scheduled=scheduled))
        traced.gradients = found = gradients_of(traced, leftover)
        fetch_tensors(p.grad for name, p in whole(call.model, traced.held).named_parameters() if name in found.read)
        if found.left or found.cleared or found.unkept:
            return traced
        plain.gradients = Gradients(ignored=True)
    elif keep_grads and plain.stepped_gradients:
        copied = tuple(plain.stepped_gradients)
        traced, _ = _trace(call, environment, Run((), copied, True, scheduled=scheduled))
        traced.gradients = Gradients(copied=copied)
        return traced
    return plain


def _refuse_hooks(call: StepCall, model: torch.nn.Module) -> None:
    """Raises for hooks that a trace would not run."""
    parameters = list(model.named_parameters())
    AccumulationHooks(parameters).refuse(call.train_step)
    refuse_hooks_with_nodes(parameters)
    refuse_comm_hooks(model, call.train_step)


def trace_first_step(call: StepCall, traced: Trace) -> Trace:
    """Traces the first call of an optimizer that computes it otherwise than all later ones, which `traced` has."""
    waiting = {id(p) for part in call.optimizers.parts if id(part) not in traced.stepped
               for group in part.param_groups for p in group["params"]}
    if traced.run.accumulates and any(id(i.real) in waiting for i, _ in traced.inputs
                                      if i.kind == "param" and i.name in traced.gradients.left):
        raise CaptureError("the optimizer computes its first step differently from later steps, as SGD with dampening does, "
                           "but the step leaves its gradients to another call: that call would be the first step\n  hint: "
                           "take one step in eager PyTorch before the first compiled one")
    copied = traced.gradients.copied
    kept = tuple(i.name for i, _ in traced.inputs if i.state == "grad" and i.name not in copied)
    states = frozenset((i.name, i.state) for i, _ in traced.inputs if i.kind == "state" and i.state != "grad")
    run = Run(kept, copied, traced.run.keeps_gradients, is_first=True, states=states, scheduled=traced.run.scheduled)
    first, _ = TraceSession(call, traced.environment, run, Findings()).trace()
    own, later = ([(i.kind, i.name, i.state) for i, _ in one.inputs if i.kind != "constant"] for one in (first, traced))
    if own != later:
        other = next(one for one in (*own, *later) if (one in own) != (one in later))
        raise CaptureError(f"only {'the first step' if other in own else 'a step after the first'} of the optimizer reads "
                           f"{' '.join(filter(None, other))!r}\n  hint: take one step in eager PyTorch before the first compiled one")
    return first


def _trace(call: StepCall, environment: Environment, run: Run) -> tuple[Trace, list[str]]:
    """Until the held modules that have fakes are those that the step reaches as modules. One whose tensors it reads
    through a list of them, made before, has none: its tensors are read as any other tensor is. And until what earlier
    calls have left is blank where the step does not read it."""
    while True:
        findings = Findings()
        try:
            session = TraceSession(call, environment, run, findings)
            traced, leftover = session.trace()
        except CountsInPython as found:
            if not call.options.counts or set(found.numbers) <= set(environment.counted):
                raise
            environment.counted += (one for one in found.numbers if one not in environment.counted)
            continue
        except CaptureError:
            if not findings:
                raise
            environment.read_left.update(findings.left)
            environment.held = environment.held.only(name for name in environment.held.modules if name not in findings.modules)
            continue
        if not findings.unstepped <= environment.unstepped:
            environment.unstepped |= findings.unstepped
            continue
        environment.held = traced.held.only(traced.held.modules)
        _check_rank(call, environment, run, traced, session)
        return traced, leftover


def _check_rank(call: StepCall, environment: Environment, run: Run, traced: Trace, session: TraceSession) -> None:
    """Raises where the graph follows from torch.distributed.get_rank(): all ranks run one graph. A step that only logs there may ask."""
    place = session.observer.records.rank
    if place is None or torch.distributed.get_world_size() == 1:
        return
    with patches.replaced({patches.GET_RANK: next_rank.__code__}):
        other, _ = TraceSession(call, environment, run, Findings()).trace()
    if str(other.graph) != str(traced.graph) or _constants(other) != _constants(traced):
        raise error_at([place], "the graph of the step depends on torch.distributed.get_rank(), and all ranks run one graph",
                       "pass rank-dependent values as a batch input: torch.arange(n) of the whole batch for labels")


def _constants(traced: Trace) -> list[list[float]]:
    """The values of the tensors that the graph holds."""
    return [i.real.tolist() for i, _ in traced.inputs if i.kind == "constant" and i.real is not None]


def _has_updated(call: StepCall, traced: Trace, leftover: list[str]) -> bool:
    """Whether every gradient that the step leaves is one that an optimizer has used: else it is for a later call. Those of
    a held module that is not trained here are whoever's who clears them."""
    owners = {id(p): id(part) for part in call.optimizers.parts for group in part.param_groups for p in group["params"]}
    own = {name for name in leftover if name.split(".")[0] not in traced.held.modules}
    return all(owners.get(id(i.real)) in traced.stepped for i, _ in traced.inputs
               if i.kind == "param" and i.name in leftover and (i.name in own or id(i.real) in owners))
