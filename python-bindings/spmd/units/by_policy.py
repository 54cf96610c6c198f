"""fully_shard of all that a policy chooses, as PyTorch's composable fully_shard(policy=) does it."""
from __future__ import annotations

from typing import Any, Iterable

from torch import nn

from .. import annotations
from ..annotations import annotation_of
from .assign import shard_units


def fully_shard(module: nn.Module | list[nn.Module], *, policy: Any = None, ignored_modules: Iterable[nn.Module] | None = None,
                mesh: Any = None, reshard_after_forward: bool | int | None = None, mp_policy: Any = None,
                ignored_params: Iterable[nn.Parameter] | None = None, **others: Any) -> Any:
    """Makes a module, or several modules together, one shard unit, as PyTorch's fully_shard does; changes nothing else.

    Call it bottom-up: a unit holds the parameters below its modules that are in no unit of an earlier call.

    Args:
      module: the module, or a list of modules that are one unit.
      policy: what `spmd.shard_units` takes: modules below that are units, too, with the options of this call unless the
        policy says others.
      ignored_modules: for the policy: modules below whose parameters stay whole on every rank.
      mesh, reshard_after_forward, mp_policy, ignored_params, others: see spmd.annotations.fully_shard.

    Returns:
      `module`.

    Raises:
      ValueError: for what PyTorch refuses: a container without forward, a module that is a unit already.
    """
    ignored_params = list(ignored_params or ())
    options = {"mesh": mesh, "reshard_after_forward": reshard_after_forward, "mp_policy": mp_policy, **others}
    if policy is None:
        if ignored_modules is not None:
            raise ValueError("fully_shard: ignored_modules is for a policy; ignored_params leaves parameters out")
        return annotations.fully_shard(module, ignored_params=ignored_params, **options)
    if not isinstance(module, nn.Module):
        raise ValueError("fully_shard: a policy chooses below one module, not a list")
    for below, inner in module.named_modules():
        if annotation_of(inner) is not None:
            raise ValueError(f"fully_shard: module '{below}' is a unit already, and a policy chooses for a model without")
    ignored_modules = list(ignored_modules or ())
    ignored_params += [p for one in ignored_modules for p in one.parameters()]
    by_path = dict(module.named_modules())
    for unit in shard_units(module, policy, ignored_modules=ignored_modules):
        modules = [by_path[path] for path in unit.modules]
        inside = {id(p) for one in modules for p in one.parameters()}
        own = {id(p): p for p in ignored_params if id(p) in inside}
        annotations.fully_shard(modules[0] if len(modules) == 1 else modules, ignored_params=own.values(), **options)
        annotations.override(modules[0], unit.given_options)
    return module
