"""A model, its optimizers and the random generators as they were before a run of the real step: for the reference,
which trains the user's own model. A copy need not be one: what a module keeps in a lambda or as a bound method still
calls the modules that the copy was made from."""
from __future__ import annotations

import contextlib
import random
import sys
from typing import Any, Callable, Iterator

import torch

from ...torch_api.modules import buffers_of, children_of, parameters_of
from ...torch_api.tensors import unsafe_preserve_version_counter
from ..optimizer.optimizers import Optimizers


@contextlib.contextmanager
def put_back(model: torch.nn.Module, view: torch.nn.Module, optimizers: Optimizers) -> Iterator[None]:
    """While entered, the modules of `view` (held.whole) may be trained, from gradients that are not set. When it is
    left, by an exception too, values, gradients, optimizer state and options, attributes of modules, and the generators
    are what they were, and no tensor's version shows that it was written."""
    modules = [model if module is view else module for module in view.modules()]
    tensors = [*view.parameters(), *view.buffers(), *_tensors_in([state for _, state in optimizers.states]),
               *_tensors_in(optimizers.param_groups)]
    tensors = list({id(t): t for t in tensors}.values())
    with contextlib.ExitStack() as undo:
        undo.enter_context(unsafe_preserve_version_counter(tuple(tensors)))
        for restore, state in _generators():
            undo.callback(restore, state)
        undo.callback(_copy_all, [(t, t.detach().clone()) for t in tensors])
        tables = [*optimizers.param_groups, *optimizers.groups_of_holders]
        for part in (*optimizers.parts, *optimizers.holders):
            tables += [vars(part), part.state, *part.state.values()]
        for module in modules:
            tables += [vars(module), parameters_of(module), buffers_of(module), children_of(module)]
        for table in tables:
            undo.callback(_refill, table, dict(table))
        for parameter in tensors:
            if parameter.is_leaf and parameter.requires_grad:
                undo.callback(setattr, parameter, "grad", parameter.grad)
                parameter.grad = None
        yield


def _copy_all(saved: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    with torch.no_grad():
        for tensor, value in saved:
            tensor.copy_(value)


def _refill(table: dict, saved: dict) -> None:
    table.clear()
    table.update(saved)


def _tensors_in(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (dict, list, tuple)):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from _tensors_in(entry)


def _generators() -> Iterator[tuple[Callable[[Any], None], Any]]:
    yield torch.set_rng_state, torch.get_rng_state()
    yield random.setstate, random.getstate()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        yield numpy.random.set_state, numpy.random.get_state()
