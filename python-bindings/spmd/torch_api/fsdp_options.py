"""FSDP's options in objects and modules of the user. Does not import torch.distributed."""
from __future__ import annotations

from typing import Any

import torch

HYBRID_SHARD_ZERO2 = "_HYBRID_SHARD_ZERO2"  # the name of a ShardingStrategy


def wrap_overrides_of(module: torch.nn.Module) -> dict[str, Any]:
    """The options of its unit that FSDP's wrapper has stored in a module."""
    return getattr(module, "_wrap_overrides", {})


def has_wrap_overrides(module: torch.nn.Module) -> bool:
    """Whether the module or its class has wrap_overrides_of(). Runs no code of the class."""
    return "_wrap_overrides" in vars(module) or hasattr(type(module), "_wrap_overrides")


def ignored_classes_of(mixed_precision: Any) -> tuple[type, ...]:
    """The classes of modules that MixedPrecision leaves in full precision."""
    return tuple(getattr(mixed_precision, "_module_classes_to_ignore", ()))
