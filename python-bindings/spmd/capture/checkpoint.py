"""Activation checkpointing under capture: run inline.

It changes memory, never values; what to recompute is the compiler's choice. Traced as it runs, the random ops of the
recomputation would be new draws, because saving and restoring the generator's state leaves no trace in a graph.
"""
from __future__ import annotations

import contextlib
import sys
from typing import Iterator

import torch.utils.checkpoint

_OPTIONS = ("use_reentrant", "context_fn", "determinism_check", "debug", "early_stop", "preserve_rng_state")


def _inline(function, *args, **kwargs):
    return function(*args, **{k: v for k, v in kwargs.items() if k not in _OPTIONS})


@contextlib.contextmanager
def inline_checkpoints() -> Iterator[None]:
    """Replaces torch.utils.checkpoint.checkpoint, in every module that imported it by name too."""
    original = torch.utils.checkpoint.checkpoint
    places = [(module, name) for module in list(sys.modules.values())
              for name, value in list(getattr(module, "__dict__", {}).items()) if value is original]
    for module, name in places:
        setattr(module, name, _inline)
    try:
        yield
    finally:
        for module, name in places:
            setattr(module, name, original)
