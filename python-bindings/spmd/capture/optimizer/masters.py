"""f32 masters of parameters in bf16 or f16: state of the optimizer that the step keeps (docs/precision.md).

While step() of an optimizer runs, its param groups and its state are those of the masters, whose gradients are the
parameters' in f32; then each parameter is its master, rounded. So any optimizer computes in f32, from f32 state, and
what the step does with parameters and gradients otherwise stays in their own type. A master begins as its parameter.
"""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from ...annotations import annotation_of
from ...models import DTYPES
from ...precision import Precision
from ...torch_api.modules import parameters_of
from ...torch_api.optimizers import post_step_hooks_of
from ..errors import CaptureError
from .optimizers import Optimizers

MASTER = "master"  # the state's name
_NONE = Precision()


def wanted_masters(model: nn.Module, default: Precision | None) -> dict[int, torch.dtype]:
    """By the ids of parameters, the type of their masters: of the trained ones that are narrower, where a policy says
    so. Modules that are exempt from casts have no other optimizer."""
    wanted: dict[int, torch.dtype] = {}
    seen: set[int] = set()

    def walk(module: nn.Module, around: Precision) -> None:
        if id(module) in seen:
            return
        seen.add(id(module))
        annotation = annotation_of(module)
        if annotation is not None:
            around = (annotation.precision if "precision" in annotation.options else default) or _NONE
        for parameter in parameters_of(module).values():
            if around.master is not None and parameter is not None and parameter.requires_grad \
                    and parameter.is_floating_point() and parameter.itemsize < around.master.itemsize:
                wanted.setdefault(id(parameter), around.master)
        for child in module.children():
            walk(child, around)

    walk(model, default or _NONE)
    return wanted


@contextlib.contextmanager
def stepping_masters(optimizers: Optimizers, wanted: dict[int, torch.dtype]) -> Iterator[None]:
    """While entered, steps of the optimizers update the masters of the `wanted` parameters. What other hooks of step()
    see are the parameters."""
    handles = []
    for part in optimizers.parts:
        if any(id(p) in wanted for group in part.param_groups for p in group["params"]):
            swap = _Swap(part, wanted)
            handles += Optimizers((part,)).register_step_hooks(swap.before, swap.after)
            post_step_hooks_of(part).move_to_end(handles[-1].id, last=False)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


class _Swap:
    """Puts masters in the place of an optimizer's parameters, and takes them out again."""

    def __init__(self, optimizer: torch.optim.Optimizer, wanted: dict[int, torch.dtype]):
        self._optimizer, self._wanted = optimizer, wanted
        self._groups: list[tuple[dict, list]] = []
        self._pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._depth = 0  # step() of a class may call its base's, which has the same hooks

    def before(self, optimizer: torch.optim.Optimizer, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
        def around(closure: Callable[[], Any]) -> Callable[[], Any]:
            def run() -> Any:  # which looks at the optimizer's parameters, and computes their gradients
                self._take_out()
                result = closure()
                self._put_in()
                return result
            return run

        self._depth += 1
        if self._depth > 1:
            return None
        self._put_in()
        args = tuple(around(value) if value is not optimizer and callable(value) else value for value in args)
        return args, {name: around(value) if callable(value) else value for name, value in kwargs.items()}

    def after(self, *unused: Any) -> None:
        self._depth -= 1
        if self._depth:
            return
        updated = [(p, master) for p, master in self._pairs if master.grad is not None]
        self._take_out()
        with torch.no_grad():
            for p, master in updated:
                p.copy_(master)

    def _put_in(self) -> None:
        masters: dict[int, torch.Tensor] = {}
        for group in self._optimizer.param_groups:
            for p in group["params"]:
                if id(p) in self._wanted:
                    masters[id(p)] = self._make(p, self._wanted[id(p)])
            self._groups.append((group, group["params"]))
            group["params"] = [masters.get(id(p), p) for p in group["params"]]

    def _make(self, p: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        state = self._optimizer.state.pop(p, {})
        with torch.no_grad():
            master = state.pop(MASTER) if MASTER in state else p.detach().to(dtype)
            master.grad = None if p.grad is None else p.grad.to(dtype)
        if state:
            self._optimizer.state[master] = state
        self._pairs.append((p, master))
        return master

    def _take_out(self) -> None:
        for group, parameters in self._groups:
            group["params"] = parameters
        for p, master in self._pairs:
            state = self._optimizer.state.pop(master, {})
            if MASTER in state:
                raise CaptureError(f"{type(self._optimizer).__qualname__} has a state {MASTER!r} of its own, and precision= "
                                   f"asks for masters\n  hint: leave {MASTER!r} out of the precision")
            master.grad = None
            self._optimizer.state[p] = state | {MASTER: master}
        self._groups, self._pairs = [], []


def keep_wide_states(optimizers: Optimizers) -> list[RemovableHandle]:
    """load_state_dict() of PyTorch's optimizers rounds all state to the type of the parameters: until the hooks are
    removed, what is of a parameter with a master comes as it was saved."""
    handles: list[RemovableHandle] = []
    for part in optimizers.parts:
        given: list[dict] = []

        def before(optimizer: torch.optim.Optimizer, saved: dict, given: list[dict] = given) -> None:
            given[:] = [saved]

        def after(optimizer: torch.optim.Optimizer, given: list[dict] = given) -> None:
            saved = given.pop()
            numbers = [number for group in saved["param_groups"] for number in group["params"]]
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            for number, p in zip(numbers, parameters, strict=True):
                state = saved["state"].get(number, {})
                for name, value in state.items() if MASTER in state else ():
                    if isinstance(value, torch.Tensor) and value.dtype != optimizer.state[p][name].dtype:
                        optimizer.state[p][name] = value.to(p.device, copy=True)

        if any(MASTER in state for state in part.state.values()):
            handles += [part.register_load_state_dict_pre_hook(before),
                        part.register_load_state_dict_post_hook(after)]
    return handles


def state_in(name: str, value: Any, parameter: torch.Tensor, dtype: torch.dtype) -> Any:
    """An optimizer's state as it goes on with a master of type `dtype`: what it had in the parameter's type is widened.

    Raises:
      CaptureError: it has a master, and that was rounded.
    """
    if not isinstance(value, torch.Tensor) or value.dtype == dtype:
        return value
    if name == MASTER:
        raise CaptureError(f"the optimizer has masters in {DTYPES.get(value.dtype, value.dtype)}: load_state_dict() of "
                           "PyTorch's optimizers rounds all state to the type of the parameters\n  hint: load it with "
                           "spmd.checkpoint.load(FILE, model, optimizer), or with load_checkpoint() of the step")
    is_rounded = value.dtype == parameter.dtype and value.shape == parameter.shape
    return value.detach().to(dtype) if is_rounded else value
