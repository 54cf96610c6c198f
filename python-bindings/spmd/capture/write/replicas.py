"""Eager data-parallel training of several ranks in one process: each on its rows, gradients averaged, as FSDP does.

The step runs unmodified, once for each rank, in threads that take turns: a rank runs until a gradient of it is there,
and then the next one does; the last one averages. Only one thread runs at any time, so that everything, random numbers
too, is the same in every run.
"""
from __future__ import annotations

import contextlib
import copy
import threading
from typing import Any, Callable, Iterator

import torch

from ...torch_api.tensors import version_of
from ..errors import CaptureError
from ..model.hooks import copy_hooks
from ..observe.dispatch_mode import DispatchMode, Handler, OpCall, Phase
from ..ops.collectives import Exchange
from ..optimizer.optimizers import Optimizers


class Original:
    """The user's own model and optimizer, as the one member."""

    def __init__(self, model: torch.nn.Module, optimizers: Optimizers):
        self.members = [(model, optimizers)]

    def step(self, run: Callable[[int, torch.nn.Module, Optimizers], Any]) -> list[Any]:
        """run(0, model, optimizers)."""
        return [run(0, *self.members[0])]

    def find_drift(self) -> None:
        """There is one rank."""


@contextlib.contextmanager
def untouched(view: torch.nn.Module) -> Iterator[None]:
    """Refuses a training of copies that gets at the modules of `view`, the model that they were made from and what the
    step reaches besides: those are there once, and each rank would change them."""
    names = {id(t): n for n, t in (*view.named_parameters(), *view.named_buffers())}
    tensors = [*view.parameters(), *view.buffers()]
    before = [(t, version_of(t), t.grad if t.is_leaf else None) for t in tensors]
    wrong = []
    try:
        yield
    finally:
        for tensor, version, gradient in before:
            if version_of(tensor) != version or tensor.is_leaf and tensor.grad is not gradient:
                wrong.append(names[id(tensor)])
            if tensor.is_leaf:
                tensor.grad = gradient
    if wrong:
        raise _not_a_copy(wrong[0], "writes")


def _not_a_copy(name: str, does: str) -> CaptureError:
    return CaptureError(f"the reference of several ranks trains a copy of the model for each, and a copy {does} "
                        f"{name!r} of the original\n  hint: keep no lambda and no bound method in a module that calls "
                        "another, and no trained or moving module outside of the model; or capture without "
                        "reference_ranks")


class _Originals(Handler):
    """Refuses to read tensors of the model that copies were made from."""

    phase = Phase.OPTION  # before collectives, whose arguments are read, too

    def __init__(self, model: torch.nn.Module):
        self._names = {id(t): n for n, t in (*model.named_parameters(), *model.named_buffers())}

    def answer(self, call: OpCall) -> Any:
        for leaf in call.leaves:
            if id(leaf) in self._names:
                raise _not_a_copy(self._names[id(leaf)], "reads")
        return NotImplemented


class Replicas:
    """Copies of a model and its optimizer, one for each rank."""

    def __init__(self, model: torch.nn.Module, optimizers: Optimizers, ranks: int, divide_factor: float | None = None):
        self._divide_factor = divide_factor or ranks
        self.members = [copy.deepcopy((model, optimizers)) for _ in range(ranks)]
        self._model = model
        self._collectives = [0] * ranks  # that each has called
        self._given: dict[int, list[torch.Tensor]] = {}
        self._condition = threading.Condition()
        self._turn = 0
        self._error: BaseException | None = None
        for rank, (replica, _) in enumerate(self.members):
            for parameter, original in zip(replica.parameters(), model.parameters(), strict=True):
                copy_hooks(original, parameter)
                if parameter.requires_grad:
                    parameter.register_post_accumulate_grad_hook(lambda p, rank=rank: self._average(rank, p.grad))

    def step(self, run: Callable[[int, torch.nn.Module, Optimizers], Any]) -> list[Any]:
        """run(rank, model, optimizers) for each rank, with gradients averaged as soon as they are there."""
        results: list[Any] = [None] * len(self.members)

        def run_rank(rank: int) -> None:
            try:
                self._wait(rank)
                # A mode holds for its thread.
                with DispatchMode([_Originals(self._model), Exchange(rank, lambda value: self._exchange(rank, value))]):
                    results[rank] = run(rank, *self.members[rank])
                self._pass_on(rank)
            except BaseException as error:  # the others must not wait for ever
                with self._condition:
                    self._error = self._error or error
                    self._condition.notify_all()

        threads = [threading.Thread(target=run_rank, args=(rank,)) for rank in range(len(self.members))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._error is not None:
            raise self._error
        return results

    def find_drift(self) -> str | None:
        """A parameter that is another on each rank. What no gradient was averaged for drifts apart, and there is no one
        result of such training."""
        first, *others = (dict(model.named_parameters()) for model, _ in self.members)
        return next((name for name, parameter in first.items() if not all(
            torch.equal(parameter.nan_to_num(), other[name].nan_to_num()) for other in others)), None)

    def _exchange(self, rank: int, value: torch.Tensor) -> list[torch.Tensor]:
        """What each rank gives to its collective that is as far on as this one."""
        number = self._collectives[rank]
        self._collectives[rank] += 1
        self._given.setdefault(number, []).append(value)
        self._pass_on(rank)
        self._wait(rank)
        values = self._given[number]
        if rank == len(self.members) - 1:
            del self._given[number]
        return values

    def _average(self, rank: int, gradient: torch.Tensor) -> None:
        values = self._exchange(rank, gradient.clone())
        with torch.no_grad():
            gradient.copy_(sum(values[1:], values[0]) / self._divide_factor)

    def _pass_on(self, rank: int) -> None:
        with self._condition:
            self._turn = (rank + 1) % len(self.members)
            self._condition.notify_all()

    def _wait(self, rank: int) -> None:
        with self._condition:
            self._condition.wait_for(lambda: self._turn == rank or self._error is not None)
            if self._error is not None:
                raise RuntimeError("another rank failed") from self._error
