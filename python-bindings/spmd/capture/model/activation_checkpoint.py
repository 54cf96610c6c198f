"""Activation checkpointing under capture: run inline.

It changes memory; what to recompute is the compiler's choice. Two things tell that something is computed again: running statistics
of batch norms, which eager updates once more in the backward, and reentrant checkpoints without an input that requires a gradient,
whose results have none. The trace does both as eager does. Within hooks of saved tensors, which may change the inputs of the second
computation, a checkpoint is traced as it runs.

Recomputation in other forms (a torch.autograd.Function of the user's) is traced as it runs; ops/draws.py gives its random operators
the numbers of the forward.
"""
from __future__ import annotations

import contextlib
from typing import Iterator

import torch
import torch.utils.checkpoint
from torch.nn.modules.module import register_module_forward_hook

from ...torch_api.autograd import top_saved_tensors_default_hooks
from ...torch_api.modules import BatchNorm
from ...torch_api.tracing import pytree
from ..observe import patches

_OPTIONS = ("context_fn", "determinism_check", "debug", "early_stop", "preserve_rng_state")


def _inline(function, *args, use_reentrant=None, **kwargs):
    if top_saved_tensors_default_hooks(False) is not None:
        return torch.utils.checkpoint.checkpoint.__wrapped__(function, *args, use_reentrant=use_reentrant, **kwargs)
    if use_reentrant is not False and not any(isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args):
        with torch.no_grad():  # as in a reentrant checkpoint, which is PyTorch's default
            return _run(function, *args, **kwargs)
    return _run(function, *args, **kwargs)


def _run(function, *args, **kwargs):
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
    """Replaces torch.utils.checkpoint.checkpoint under all its names, in partials and in wrappers of libraries."""
    with patches.replaced({patches.CHECKPOINT: _inline}):
        yield
