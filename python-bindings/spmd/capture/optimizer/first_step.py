"""How the state of an optimizer begins, observed: two calls of step() on fakes, where it has taken no step.

The first step() creates the state. If the remaining operators of the first step are those of the second step, and each
tensor of the state begins as a constant, the first step is a later one that begins with these constants. Otherwise (the
state begins as a copy of the parameter, or from the first gradient; the first step counts, or computes something else)
the first step is a program of its own. It is traced with an optimizer that has no state (trace_first_step in trace.py).
"""
from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from typing import Any, Collection, Iterable, Sequence

import torch

from ...torch_api.operators import OpOverload
from ...torch_api.tracing import FakeTensor, FakeTensorMode, disable_current_modes, pytree
from ..errors import CaptureError, Frame, error_at, explain
from ..observe.dispatch_mode import DispatchMode, Handler, OpCall, Phase
from ..observe.memory import memory_of
from .masters import MASTER
from .number_snapshot import Numbers
from .optimizer_numbers import Change, own_attributes
from .optimizer_state import traceable_step
from .optimizers import Optimizers

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
_NUMBERS = {"zeros_like": 0.0, "zeros": 0.0, "new_zeros": 0.0, "ones_like": 1.0, "ones": 1.0, "new_ones": 1.0}
_COPIES = ("clone", "_to_copy", "lift_fresh", "expand", "repeat")


@dataclasses.dataclass(frozen=True)
class Beginning:
    """How the state of one optimizer begins.

    `values`: by the ids of the state's tensors, the constant of each; None for a master, which begins as its parameter,
    and for a tensor that does not begin as a constant. `differs`: the first step is not a later one. `masters`: the ids
    of masters. `changes`: what the first step changes in Python.
    """

    values: dict[int, float | None] = dataclasses.field(default_factory=dict)
    differs: bool = False
    masters: frozenset[int] = frozenset()
    changes: tuple[Change, ...] = ()

    def undo(self) -> None:
        """The numbers are those before the first step."""
        for change in self.changes:
            change.undo()


def is_of_torch(optimizer: torch.optim.Optimizer) -> bool:
    """True where the optimizer creates its state and updates as one of torch.optim does."""
    return all(getattr(getattr(type(optimizer), name, None), "__module__", "torch.optim.").startswith("torch.optim.")
               for name in ("step", "_init_group"))


def materialize(optimizer: torch.optim.Optimizer, mode: FakeTensorMode, masters: Collection[int] = (),
                made_capturable: Sequence[dict[str, Any]] = ()) -> Beginning:
    """Creates the state of an optimizer that has taken no step: step() runs on fakes, so no value is computed. `masters`:
    the ids of parameters that have a master (masters.py). `made_capturable`: param groups whose `capturable` the
    optimizer may reject."""
    optimizer.state = defaultdict(dict)
    parameters = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    before, seen = Numbers.of(optimizer), None
    with mode, torch.no_grad(), traceable_step(Optimizers([optimizer])):
        gradients = [torch.zeros_like(p, dtype=p.grad_dtype) for p in parameters]
        try:
            try:
                first = _run(optimizer, parameters, gradients)
            except AssertionError:
                if not made_capturable:
                    raise
                before.put()
                for group in made_capturable:
                    group["capturable"] = False
                before = Numbers.of(optimizer)
                first = _run(optimizer, parameters, gradients)
        except CaptureError:
            raise
        except Exception as error:  # of torch's own: what the optimizer does is not known before it has run
            if any(gradient.dtype != p.dtype for gradient, p in zip(gradients, parameters)):
                optimizer.state = defaultdict(dict)  # the traced step says where (kept_gradients.py)
                return Beginning()
            raise explain(error, "", None, ()) from error
        _check_places(optimizer, first)
        after = Numbers.of(optimizer)
        if not is_of_torch(optimizer):
            _check_memory(optimizer, first)
            seen = _Observation(first, _later(optimizer, parameters, gradients), before, after)
            after.put()
    states = {id(value): (parameter, name) for parameter, state in optimizer.state.items()
              for name, value in state.items() if isinstance(value, torch.Tensor)}
    own = frozenset(number for number, (parameter, name) in states.items()
                    if name == MASTER and id(parameter) in masters)
    found, differs = _of_torch(optimizer, first, states) if seen is None else seen.beginning(states)
    differs = differs or any(number not in found for number in states if number not in own)
    return Beginning({number: None if number in own else found.get(number) for number in states}, differs, own,
                     tuple(before.changes(after)))


def _later(optimizer: torch.optim.Optimizer, parameters: list[torch.Tensor],
           gradients: list[torch.Tensor]) -> tuple[_StepOperators, Numbers] | None:
    """The operators of a second step and the numbers after it. None if it fails: the trace of a later step says why."""
    try:
        return _run(optimizer, parameters, gradients), Numbers.of(optimizer)
    except Exception:
        return None


def _of_torch(optimizer: torch.optim.Optimizer, first: _StepOperators,
              states: Collection[int]) -> tuple[dict[int, float], bool]:
    """Constants of the state, and whether the first step differs, of one of torch.optim's."""
    if isinstance(optimizer, torch.optim.SGD):  # the momentum is then the first gradient, as 0 * momentum + gradient
        differs = any(group["dampening"] and group["momentum"] for group in optimizer.param_groups)
        return dict.fromkeys(states, 0.0), differs
    return constants((operator for operator in first.calls if not operator.written), states), False


@dataclasses.dataclass
class _Observation:
    """The first step, the second one and its numbers, and the numbers before and after the first."""

    first: _StepOperators
    later: tuple[_StepOperators, Numbers] | None
    before: Numbers
    after: Numbers

    def beginning(self, states: Collection[int]) -> tuple[dict[int, float], bool]:
        """Constants of the state, and whether the first step differs."""
        if self.later is None or self.before.differ(self.after) or self.after.differ(self.later[1]):
            return {}, True
        creating = creation(self.first, self.later[0])
        return ({}, True) if creating is None else (constants(creating, states), False)


@dataclasses.dataclass
class _Operator:
    """One operator of a step: its arguments, what it made and what it wrote to."""

    func: OpOverload
    args: tuple
    kwargs: dict[str, Any]
    made: list[torch.Tensor]
    written: list[torch.Tensor]
    stack: tuple[Frame, ...]

    @property
    def given(self) -> list[torch.Tensor]:
        return [x for x in pytree.tree_leaves((self.args, self.kwargs)) if isinstance(x, torch.Tensor)]


class _StepOperators(Handler):
    """Keeps the operators of a step(), and with them all tensors: ids and memory stay theirs."""

    phase = Phase.RECORD

    def __init__(self) -> None:
        self.calls: list[_Operator] = []

    def note(self, call: OpCall, result: Any) -> None:
        if not str(call.func).startswith("profiler."):
            self.calls.append(_Operator(call.func, call.args, call.kwargs, call.made, call.written, call.stack))


def _run(optimizer: torch.optim.Optimizer, parameters: list[torch.Tensor],
         gradients: list[torch.Tensor]) -> _StepOperators:
    """One step() with these gradients."""
    seen = _StepOperators()
    try:
        for p, gradient in zip(parameters, gradients):
            p.grad = gradient
        with DispatchMode([seen]):
            optimizer.step()
    finally:
        for p in parameters:
            p.grad = None
    return seen


def creation(first: _StepOperators, later: _StepOperators) -> list[_Operator] | None:
    """The operators of the first step that create state. None if the remaining ones are not those of the later step, or
    if the creation reads what the step has computed."""
    pairs: dict[int, torch.Tensor] = {}  # a tensor of the first step, by the id of its counterpart in the later one
    creating: list[_Operator] = []
    computed: set[int] = set()  # memory that operators of the later step have made or written
    created: set[int] = set()  # memory of what is created
    left = iter(later.calls)
    expected = next(left, None)
    for operator in first.calls:
        if expected is not None and _are_equal(operator, expected, pairs):
            pairs.update((id(theirs), own) for own, theirs in zip(operator.made, expected.made))
            outside = set(map(memory_of, operator.given))
            computed |= {memory_of(x) for x in operator.made if memory_of(x) not in outside}
            computed |= set(map(memory_of, operator.written))
            expected = next(left, None)
            continue
        if computed & set(map(memory_of, operator.given)):
            return None
        created |= set(map(memory_of, operator.made)) - set(map(memory_of, operator.given))
        if not set(map(memory_of, operator.written)) <= created:
            return None
        creating.append(operator)
    return creating if expected is None else None


def _are_equal(operator: _Operator, later: _Operator, pairs: dict[int, torch.Tensor]) -> bool:
    if operator.func is not later.func or len(operator.made) != len(later.made):
        return False
    own, own_form = pytree.tree_flatten((operator.args, operator.kwargs))
    others, form = pytree.tree_flatten((later.args, later.kwargs))
    return own_form == form and all(_is_same(a, pairs.get(id(b), b)) for a, b in zip(own, others))


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        if a is b:
            return True
        are_numbers = all(isinstance(x, torch.Tensor) and not isinstance(x, FakeTensor) and x.numel() == 1
                          for x in (a, b))
        return are_numbers and a.dtype == b.dtype and _value_of(a) == _value_of(b)
    if isinstance(a, _SYMBOLS) or isinstance(b, _SYMBOLS):
        return False  # a value that Python has read
    return type(a) is type(b) and (a == b or a != a and b != b)


def _value_of(tensor: torch.Tensor) -> float:
    with disable_current_modes():
        return float(tensor)


def constants(creating: Iterable[_Operator], states: Collection[int]) -> dict[int, float]:
    """By the ids of the state's tensors, those that begin as a constant, and the constant."""
    values: dict[int, float | None] = {}  # by memory
    found: dict[int, float | None] = {}
    for operator in creating:
        name = operator.func.overloadpacket.__name__
        own = set(map(memory_of, operator.given))
        for tensor in operator.written:
            values[memory_of(tensor)] = _written(name, operator, values)
        for tensor in operator.made:
            if memory_of(tensor) not in own:
                values[memory_of(tensor)] = _made(name, operator, values)
            found[id(tensor)] = memory_of(tensor)
    return {number: values[found[number]] for number in states
            if number in found and values.get(found[number]) is not None}


def _made(name: str, operator: _Operator, values: dict[int, float | None]) -> float | None:
    if name in _NUMBERS:
        return _NUMBERS[name]
    if name in ("full", "full_like", "new_full", "scalar_tensor"):
        place = {"scalar_tensor": 0, "new_full": 2}.get(name, 1)
        value = operator.args[place] if len(operator.args) > place else None
        return float(value) if isinstance(value, (int, float)) else None
    if name not in _COPIES:
        return None
    source = operator.args[0]
    if not isinstance(source, FakeTensor):
        return _value_of(source) if source.numel() == 1 else None
    return values.get(memory_of(source))


def _written(name: str, operator: _Operator, values: dict[int, float | None]) -> float | None:
    if name == "zero_":
        return 0.0
    value = operator.args[1] if len(operator.args) > 1 else None
    if name in ("fill_", "copy_") and isinstance(value, torch.Tensor):
        return values.get(memory_of(value)) if isinstance(value, FakeTensor) else \
            _value_of(value) if value.numel() == 1 else None
    return float(value) if name == "fill_" and isinstance(value, (int, float)) and math.isfinite(value) else None


def _check_places(optimizer: torch.optim.Optimizer, first: _StepOperators) -> None:
    """Refuses tensors that the first step has made and that no entry of a parameter's state is."""
    kind, stack = type(optimizer).__qualname__, first.calls[-1].stack[-1:] if first.calls else ()
    check_keys(optimizer)
    places = [(f"state[...][{name!r}]", value) for state in optimizer.state.values() for name, value in state.items()
              if not isinstance(value, torch.Tensor)]
    places += [(f"param_groups[{number}][{name!r}]", value) for number, group in enumerate(optimizer.param_groups)
               for name, value in group.items() if name != "params"]
    places += list(own_attributes(optimizer).items())
    made = {id(tensor) for operator in first.calls for tensor in operator.made}
    for place, value in places:
        if any(id(leaf) in made or isinstance(leaf, _SYMBOLS) for leaf in pytree.tree_leaves(value)):
            raise error_at(stack, f"{kind} stores a tensor in {place}: a compiled optimizer may only store tensors in "
                                  "entries of state[p], one for each parameter",
                           "store it in an entry of its own: state[p]['name']")


def check_keys(optimizer: torch.optim.Optimizer) -> None:
    """Refuses state that belongs to no parameter.

    Raises:
      CaptureError: the optimizer has such state.
    """
    for key, state in optimizer.state.items():
        if not isinstance(key, torch.Tensor):
            raise CaptureError(f"{type(optimizer).__qualname__} stores state[{key!r}], which belongs to no parameter: a "
                               "compiled optimizer may only store tensors in entries of state[p]\n  hint: store it in the "
                               "state of each parameter, or as a buffer of the model")


def _check_memory(optimizer: torch.optim.Optimizer, first: _StepOperators) -> None:
    """Refuses a state whose memory is that of a parameter, a gradient or another state: a program has a copy of it."""
    owners: dict[int, str] = {memory_of(p): "its parameter" for p in optimizer.state if isinstance(p, torch.Tensor)}
    stack = first.calls[-1].stack[-1:] if first.calls else ()
    for state in optimizer.state.values():
        for name, value in state.items() if isinstance(state, dict) else ():
            if isinstance(value, torch.Tensor) and value.numel():
                other = owners.setdefault(memory_of(value), f"state {name!r}")
                if other != f"state {name!r}":
                    raise error_at(stack, f"state {name!r} of {type(optimizer).__qualname__} has the memory of {other}",
                                   f"begin it as a copy: state[{name!r}] = p.detach().clone()")
