"""Activation checkpointing under capture: run inline.

It changes memory; what to recompute is the compiler's choice. Traced as it runs, the random ops of the recomputation would be
new draws, because saving and restoring the generator's state leaves no trace in a graph. One value tells that something
is computed again: running statistics of batch norms, which eager updates once more in the backward. So does the trace.
"""
from __future__ import annotations

import contextlib
from typing import Iterator

import torch
import torch.utils.checkpoint
from torch.nn.modules.module import register_module_forward_hook

from ...torch_api.modules import BatchNorm
from ...torch_api.tracing import pytree

from ..observe import patches

_OPTIONS = ("use_reentrant", "context_fn", "determinism_check", "debug", "early_stop", "preserve_rng_state")


def _inline(function, *args, **kwargs):
    norms: list[tuple[BatchNorm, torch.Tensor]] = []

    def note(module, inputs, output):
        if isinstance(module, BatchNorm) and module.training and module.track_running_stats:
            norms.append((module, inputs[0].detach()))

    with register_module_forward_hook(note):
        result = function(*args, **{k: v for k, v in kwargs.items() if k not in _OPTIONS})
    if norms and torch.is_grad_enabled():
        _update_again(norms, [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad])
    return result


def _update_again(norms: list[tuple[BatchNorm, torch.Tensor]], results: list[torch.Tensor]) -> None:
    """When the first of `results` has a gradient, which is when eager computes them again."""

    def update(gradient: torch.Tensor) -> None:
        with torch.no_grad():
            for module, given in norms:
                type(module).forward(module, given)
        norms.clear()

    for result in results:
        result.register_hook(update)


@contextlib.contextmanager
def inline_checkpoints() -> Iterator[None]:
    """Replaces torch.utils.checkpoint.checkpoint, in every module that imported it by name too."""
    with patches.replaced({name: _inline for name in patches.checkpoint_names()}):
        yield
