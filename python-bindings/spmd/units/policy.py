"""PyTorch's wrap policies for the library: what it knows is named, anything else is asked through a callback."""
from __future__ import annotations

import functools
import math
from typing import Any, Callable

import torch
from torch.distributed.fsdp import wrap as fsdp

from ..torch_api.fsdp import Policy, lambda_of, module_classes_of, or_policy, run_policy
from ..unit_options import encode_options
from .describe import ModelDescription


class PolicyRequest:
    """A policy in the library's JSON, and the Python that it calls. `root_kwargs`: what was said of all units, which a
    user's subclass of _Policy gets.

    Raises:
      TypeError: for what is no policy.
    """

    def __init__(self, policy: Any, model: torch.nn.Module | None, description: ModelDescription,
                 ignored: set[torch.nn.Module], root_kwargs: dict[str, Any] | None = None):
        self._model, self._description, self._ignored = model, description, ignored
        self._root_kwargs = root_kwargs or {}
        self._callables: list[Callable] = []
        self.json = self._encode(policy)

    def decide(self, number: int, module: int, recurse: bool, numel: int) -> tuple[bool, dict | None]:
        return self._callables[number](self._description.modules[module], recurse, numel)

    def _encode(self, policy: Any) -> Any:
        policy = unwrapped(policy)
        if isinstance(policy, str):
            return policy
        if type(policy) is fsdp.ModuleWrapPolicy:
            return self._classes(module_classes_of(policy))
        if type(policy) is fsdp.CustomPolicy:
            return {"custom": self._add(functools.partial(self._ask_custom, lambda_of(policy)))}
        if isinstance(policy, Policy):
            return {"modules": self._run(policy)}
        known = self._encode_known(policy)
        if known is not None:
            return known
        if not callable(policy):
            raise TypeError(f"policy is {policy!r}; expected one of torch.distributed.fsdp.wrap's, a callable "
                            "(module, recurse, nonwrapped_numel), or text as for spmd-compile --policy")
        return {"callable": self._add(lambda module, recurse, numel: (
            bool(policy(module=module, recurse=recurse, nonwrapped_numel=numel)), None))}

    def _encode_known(self, policy: Any) -> Any:
        """PyTorch's own functions with keywords that the library understands; None for anything else."""
        function, given = policy, {}
        if isinstance(policy, functools.partial):
            if policy.args:
                return None
            function, given = policy.func, policy.keywords
        if function is fsdp.always_wrap_policy:
            return "always"
        if function is fsdp.transformer_auto_wrap_policy and set(given) == {"transformer_layer_cls"}:
            return self._classes(given["transformer_layer_cls"])
        if function is or_policy and isinstance(given.get("policies"), (list, tuple)):
            return {"or": [self._encode(part) for part in given["policies"]]}
        if (function is fsdp.size_based_auto_wrap_policy
                and set(given) <= {"min_num_params", "force_leaf_modules", "exclude_wrap_modules"}):
            defaults = {"force_leaf_modules": function.FORCE_LEAF_MODULES,
                        "exclude_wrap_modules": function.EXCLUDE_WRAP_MODULES}
            leaf, exclude = (defaults[n] if given.get(n) is None else given[n] for n in defaults)
            return {"size": math.ceil(given.get("min_num_params", 1e8)), "force_leaf": self._classes(leaf)["class"],
                    "exclude": self._classes(exclude)["class"], "exact": True}
        return None

    def _classes(self, classes: Any) -> dict:
        return {"class": sorted(self._description.class_name(c) for c in classes), "exact": True}

    def _add(self, function: Callable) -> int:
        self._callables.append(function)
        return len(self._callables) - 1

    def _path(self, module: torch.nn.Module) -> str:
        return self._description.paths[id(module)]

    def _ask_custom(self, function: Callable, module: torch.nn.Module, _recurse: bool, _numel: int):
        result = function(module)
        if not isinstance(result, (dict, bool)):
            raise ValueError(f"CustomPolicy's function returned {result!r} for module '{self._path(module)}'; expected "
                             "True, False or a dict of options of the unit")
        if not isinstance(result, dict):
            return result, None
        return bool(result), encode_options(result, f"CustomPolicy at module '{self._path(module)}'")

    def _run(self, policy: Any) -> dict[str, dict]:
        """What a user's subclass of _Policy wants: options by path."""
        if self._model is None:
            raise KeyError("a policy that sees the model")
        targets = run_policy(policy, self._model, self._ignored, dict(self._root_kwargs))
        if not isinstance(targets, dict):
            raise ValueError(f"{type(policy).__name__}._run_policy returned {targets!r}; expected a dict from modules "
                             "to options")
        for module in targets:
            if id(module) not in self._description.paths:
                raise ValueError(f"{type(policy).__name__}._run_policy chose {module!r}, which is not in the model")
        return {self._path(m): encode_options(dict(options), f"{type(policy).__name__} at module '{self._path(m)}'")
                for m, options in targets.items() if m not in self._ignored}


def unwrapped(policy: Any) -> Any:
    """The policy itself, of an object that has it as `policy`, as PyTorch's _FSDPPolicy has had it."""
    known = isinstance(policy, (str, Policy)) or callable(policy)
    return policy if known or getattr(policy, "policy", None) is None else unwrapped(policy.policy)


def classes_of(policy: Any) -> set[type]:
    """The classes that a policy names."""
    policy = unwrapped(policy)
    if isinstance(policy, fsdp.ModuleWrapPolicy):
        return set(module_classes_of(policy))
    if not isinstance(policy, functools.partial):
        return _defaults() if policy is fsdp.size_based_auto_wrap_policy else set()
    found: set[type] = _defaults() if policy.func is fsdp.size_based_auto_wrap_policy else set()
    for name in ("transformer_layer_cls", "force_leaf_modules", "exclude_wrap_modules"):
        found |= set(policy.keywords.get(name) or ())
    parts = policy.keywords.get("policies")
    for part in parts if isinstance(parts, (list, tuple)) else ():
        found |= classes_of(part)
    return found


def _defaults() -> set[type]:
    function = fsdp.size_based_auto_wrap_policy
    return set(function.FORCE_LEAF_MODULES) | set(function.EXCLUDE_WRAP_MODULES)
