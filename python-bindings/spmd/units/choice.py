"""What spmd.compile is told about shard units, in the words of spmd-compile."""
from __future__ import annotations

import dataclasses
from typing import Any

from torch import nn

from .assign import shard_units, split_ignored
from .describe import ModelDescription


@dataclasses.dataclass(frozen=True)
class UnitChoice:
    """A policy and what is ignored. Text, and no policy at all, are for spmd-compile; objects become a plan file."""

    policy: Any
    ignored_modules: tuple[nn.Module, ...] = ()
    ignored_states: tuple[Any, ...] = ()

    def words(self, model: nn.Module) -> list[str]:
        if self.policy is not None and not isinstance(self.policy, str):
            return []
        words = [] if self.policy is None else [f"--policy={self.policy}"]
        if self.ignored_modules or self.ignored_states:
            modules, parameters = split_ignored(self.ignored_modules, self.ignored_states)
            description = ModelDescription(model)
            words += [f"--ignored-module={description.path_of(m)}" for m in modules]
            words += [f"--ignored-parameter={description.name_of(p)}" for p in parameters]
        return words

    def plan(self, model: nn.Module, ranks: int) -> dict[str, Any] | None:
        if self.policy is None or isinstance(self.policy, str):
            return None
        return shard_units(model, self.policy, ignored_modules=self.ignored_modules, ignored_states=self.ignored_states,
                           ranks=ranks).plan()
