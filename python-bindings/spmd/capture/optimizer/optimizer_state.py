"""The optimizer under capture: which implementation is recorded, its state before the first step, its learning rate."""
from __future__ import annotations

import contextlib
from collections import defaultdict
from typing import Any, Collection, Iterator

import torch

from ...torch_api.tracing import FakeTensor, FakeTensorMode, disable_current_modes
from ..errors import CaptureError
from ..observe import patches
from ..observe.dispatch_mode import DispatchMode, Handler, OpCall, Phase
from .masters import MASTER
from .optimizers import Optimizers

aten = torch.ops.aten

# Optimizers whose default implementation (foreach=None, fused=None) is recorded as the fused one: two nodes a group,
# and closest to what eager computes.
_FUSED_BY_DEFAULT = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)

# Optimizers that have no program here, by class name, and why.
UNSUPPORTED = {
    "LBFGS": "it calls a closure as often as values make it",
    "SparseAdam": "its gradients are sparse tensors",
}


def check_supported(optimizer: torch.optim.Optimizer) -> None:
    """Refuses what no sharded optimizer state can do."""
    kind = type(optimizer)
    for name in (base.__name__ for base in kind.__mro__):
        why = UNSUPPORTED.get(name) or UNSUPPORTED.get(name.upper())
        if why:
            raise CaptureError(f"{kind.__module__}.{kind.__qualname__} is not supported: {why}\n"
                               "  cure: train with SGD, Adam, AdamW or another optimizer of docs/optimizers.md")
    for group in optimizer.param_groups:
        if group.get("differentiable"):
            raise CaptureError("an optimizer with differentiable=True is not supported: its step is part of no "
                               "gradient in a training step\n  cure: leave differentiable out")


def choose_implementation(optimizer: torch.optim.Optimizer, one_by_one: bool = False, fuses: bool = True) -> None:
    """Sets each group's flags (on the caller's copy of the groups) so that step() can be traced; `one_by_one`: as
    arithmetic on one parameter after the other, in which each number of the group's options can be seen; `fuses`: a fused
    implementation takes the gradients as they are."""
    check_supported(optimizer)
    for group in optimizer.param_groups:
        unspecified = group.get("foreach") is None and group.get("fused") is None
        if not fuses and not group.get("fused") and "foreach" in group:
            group["foreach"] = False  # in lists, a gradient times the learning rate would be rounded to its type
        if one_by_one:
            group.update((name, False) for name in ("fused", "foreach") if name in group)
        if type(optimizer) in _FUSED_BY_DEFAULT and unspecified and fuses and not one_by_one:
            group["fused"], group["foreach"] = True, False
        elif "capturable" in group and not group.get("fused"):
            group["capturable"] = True  # else the bias corrections would be Python numbers read from the step counter


def first_step_differs(optimizers: Optimizers) -> bool:
    """True where an optimizer has taken no step and computes its first one otherwise than all later ones.

    SGD with dampening does: its momentum starts as the gradient, not as (1 - dampening) times the gradient.
    """
    return any(isinstance(part, torch.optim.SGD) and not part.state and any(
        group["dampening"] and group["momentum"] for group in part.param_groups) for part in optimizers.parts)


@contextlib.contextmanager
def traceable_step(optimizers: Optimizers) -> Iterator[None]:
    """Lets step() of the implementations that are not fused run on fake tensors.

    They accept a tensor learning rate and capturable=True on the CPU only while torch.compiler.is_compiling(); the flag
    is raised around optimizer.step() alone, so that the model's own code sees nothing of it.
    """
    needed = not all(group.get("fused") for group in optimizers.param_groups)
    raised = contextlib.ExitStack()

    def raise_flag(*unused: Any) -> None:
        raised.enter_context(patches.replaced({patches.IS_COMPILING: True}))

    def lower_flag(*unused: Any) -> None:
        raised.close()

    handles = optimizers.register_step_hooks(raise_flag, lower_flag) if needed else []
    try:
        yield
    finally:
        raised.close()
        for handle in handles:
            handle.remove()


class _InitialValues(Handler):
    """Watches a first step() and remembers the constant that each tensor it makes starts with."""

    _CONSTANTS = {"zeros_like": 0.0, "zeros": 0.0, "new_zeros": 0.0, "ones_like": 1.0, "ones": 1.0, "new_ones": 1.0,
                  # SGD's momentum starts as a copy of the first gradient, which is what 0 * momentum + grad gives
                  "clone": 0.0, "empty_like": 0.0}

    phase = Phase.RECORD

    def __init__(self):
        self._values: dict[int, float] = {}
        self._alive: list[torch.Tensor] = []

    def of(self, tensor: torch.Tensor) -> float | None:
        return self._values.get(id(tensor))

    def note(self, call: OpCall, result: Any) -> None:
        func, args = call.func, call.args
        name, value = func.overloadpacket.__name__, None
        if func is aten.lift_fresh.default and not isinstance(args[0], FakeTensor) and args[0].numel() == 1:
            with disable_current_modes():
                value = float(args[0])
        if name in ("full", "full_like"):
            value = float(args[1])
        elif name in ("_to_copy", "detach", "alias", "clone"):
            value = self._values.get(id(args[0]))
        if value is None and name in self._CONSTANTS:
            value = self._CONSTANTS[name]
        if value is not None and isinstance(result, torch.Tensor) and id(result) not in self._values:
            self._values[id(result)] = value
            self._alive.append(result)


def materialize(optimizer: torch.optim.Optimizer, mode: FakeTensorMode,
                masters: Collection[int] = ()) -> dict[int, float | None]:
    """Creates the state of an optimizer that has taken no step, by one step() on fakes; nothing is computed. `masters`: the
    ids of parameters that have a master (masters.py).

    Returns the value every state tensor starts with, by id; of a master None.
    """
    optimizer.state = defaultdict(dict)
    parameters = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    watch = _InitialValues()
    with mode, torch.no_grad(), traceable_step(Optimizers([optimizer])):
        for p in parameters:
            p.grad = torch.zeros_like(p, dtype=p.grad_dtype)
        try:
            with DispatchMode([watch]):
                optimizer.step()
        except CaptureError:
            raise
        except Exception as error:  # of torch's own: what the optimizer does is not known before it has run
            if any(p.grad.dtype != p.dtype for p in parameters):  # the traced step says where (kept_gradients.py)
                optimizer.state = defaultdict(dict)
                return {}
            raise CaptureError(f"{type(optimizer).__qualname__} decides by values how its state begins "
                               f"({type(error).__name__})\n  cure: run one eager step before capturing, so that the state "
                               "exists") from error
        for p in parameters:
            p.grad = None
    initial = {}
    for parameter, state in optimizer.state.items():
        for name, value in state.items():
            if name == MASTER and id(parameter) in masters:
                initial[id(value)] = None  # its parameter
            elif isinstance(value, torch.Tensor):
                initial[id(value)] = watch.of(value)
                if initial[id(value)] is None:
                    raise CaptureError(f"{type(optimizer).__qualname__} state {name!r} does not start from a constant\n"
                                       "  cure: run one eager step before capturing, so that the state exists")
    return initial
