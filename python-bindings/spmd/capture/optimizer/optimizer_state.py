"""The optimizer under capture: which implementation is recorded, and how its step() is traced."""
from __future__ import annotations

import contextlib
from typing import Any, Iterator

import torch

from ..errors import CaptureError
from ..observe import patches
from .optimizers import Optimizers

# Optimizers whose default implementation (foreach=None, fused=None) is recorded as the fused one: two nodes a group,
# and closest to what eager computes.
_FUSED_BY_DEFAULT = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)

# Optimizers that have no program here, by class name, and why.
UNSUPPORTED = {
    "LBFGS": "the number of its closure calls depends on data",
    "SparseAdam": "its gradients are sparse tensors",
}


def check_supported(optimizer: torch.optim.Optimizer) -> None:
    """Raises CaptureError for an optimizer whose update cannot be compiled."""
    kind = type(optimizer)
    for name in (base.__name__ for base in kind.__mro__):
        why = UNSUPPORTED.get(name) or UNSUPPORTED.get(name.upper())
        if why:
            dense = "make embeddings with sparse=False, and " if name == "SparseAdam" else ""
            raise CaptureError(f"{kind.__module__}.{kind.__qualname__} is not supported: {why}\n"
                               f"  hint: {dense}train with SGD, Adam, AdamW or another optimizer of docs/optimizers.md")
    for group in optimizer.param_groups:
        if group.get("differentiable"):
            raise CaptureError("an optimizer with differentiable=True is not supported: a training step does not "
                               "differentiate through optimizer.step()\n  hint: omit differentiable")


def choose_implementation(optimizer: torch.optim.Optimizer, one_by_one: bool = False, fuses: bool = True) -> list[dict[str, Any]]:
    """Sets each group's flags (on the caller's copy of the groups) so that step() can be traced; `one_by_one`: as
    arithmetic on one parameter after the other, in which each number of the group's options can be seen; `fuses`: a fused
    implementation takes the gradients as they are.

    Returns:
      The groups whose `capturable` was not set and is now.
    """
    check_supported(optimizer)
    made_capturable = []
    for group in optimizer.param_groups:
        unspecified = group.get("foreach") is None and group.get("fused") is None
        if not fuses and not group.get("fused") and "foreach" in group:
            group["foreach"] = False  # in lists, a gradient times the learning rate would be rounded to its type
        if one_by_one:
            group.update((name, False) for name in ("fused", "foreach") if name in group)
        if type(optimizer) in _FUSED_BY_DEFAULT and unspecified and fuses and not one_by_one:
            group["fused"], group["foreach"] = True, False
        elif "capturable" in group and not group.get("fused"):
            made_capturable += [] if group["capturable"] else [group]
            group["capturable"] = True  # else the bias corrections would be Python numbers read from the step counter
    return made_capturable


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
