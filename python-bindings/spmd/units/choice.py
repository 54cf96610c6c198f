"""What spmd.compile is told about shard units, in the words of spmd-compile."""
from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from torch import nn

from ..meshes import count_ranks, without_tensor
from ..models import class_name
from ..precision import Precision
from .assign import ShardUnits, overrides_of, shard_units, split_ignored
from .describe import ModelDescription
from .policy import PolicyRequest


@dataclasses.dataclass(frozen=True)
class UnitChoice:
    """A policy and what is ignored. Text, and no policy at all, are for spmd-compile; objects become a plan file."""

    policy: Any
    ignored_modules: tuple[nn.Module, ...] = ()
    ignored_states: tuple[Any, ...] = ()
    mode: str | None = None
    mesh: str | None = None

    def _is_for_python(self, model: nn.Module) -> bool:
        """The compiler knows text; neither objects nor what modules say of themselves."""
        return self.policy is not None and (not isinstance(self.policy, str) or bool(overrides_of(model)))

    def words(self, model: nn.Module) -> list[str]:
        if self._is_for_python(model):
            return []
        words = [] if self.policy is None else [f"--policy={self.policy}"]
        if self.ignored_modules or self.ignored_states:
            modules, parameters = split_ignored(self.ignored_modules, self.ignored_states)
            description = ModelDescription(model)
            words += [f"--ignored-module={description.path_of(m)}" for m in modules]
            words += [f"--ignored-parameter={description.name_of(p)}" for p in parameters]
        return words

    def plan(self, model: nn.Module, ranks: int, precision: Precision | None = None) -> dict[str, Any] | None:
        """`precision`: of units for which the policy says nothing else."""
        if not self._is_for_python(model):
            return None
        # What is a unit does not depend on parts of parameters.
        mesh = None if self.mesh is None else without_tensor(self.mesh)
        return shard_units(model, self.policy, ignored_modules=self.ignored_modules, ignored_states=self.ignored_states,
                           ranks=ranks if mesh is None else count_ranks(mesh),
                           options={} if precision is None else {"precision": precision},
                           root_kwargs={"mode": self.mode or "fully_shard"}, mesh=mesh).plan()


class _ByName:
    """Stands for a model that is not there: classes are known by their names."""

    class_name = staticmethod(class_name)


def policy_words(policy: Any, folder: Path) -> list[str]:
    """A policy for a captured step, whose model is not at hand; a plan file is written into `folder`.

    Raises:
      TypeError: for a policy that has to be asked about modules.
    """
    if policy is None:
        return []
    if isinstance(policy, ShardUnits):
        policy.save(folder / "plan.json")
        return [f"--policy-file={folder / 'plan.json'}"]
    try:
        return [f"--policy={_text(PolicyRequest(policy, None, _ByName(), set()).json)}"]
    except KeyError:
        raise TypeError(f"policy {policy!r} needs the model: pass spmd.shard_units(model, policy, ranks=...)") from None


def _text(policy: Any) -> str:
    """The command line's form of a policy in JSON.

    Raises:
      KeyError: when it has none.
    """
    if isinstance(policy, str):
        return policy
    if "or" in policy:
        return f"or({';'.join(_text(part) for part in policy['or'])})"
    if "size" in policy:
        # The defaults need not be in the model; what is named has to be.
        defaults = {"force_leaf": ["torch.nn.modules.activation.MultiheadAttention"],
                    "exclude": ["torch.nn.modules.container.ModuleDict", "torch.nn.modules.container.ModuleList"]}
        return f"size:{policy['size']}" + "".join(f",{name.replace('_', '-')}={'+'.join(policy[name])}"
                                                  for name, default in defaults.items() if policy[name] != default)
    return "class:" + ",".join(policy["class"])
