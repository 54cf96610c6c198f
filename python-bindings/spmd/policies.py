"""PyTorch's FSDP wrap policies in the words of spmd-compile --policy."""
from __future__ import annotations

import functools
import inspect
from typing import Any

from .capture.modules import class_name


def policy_option(policy: Any) -> str:
    """The --policy value of a policy.

    Accepts a string ("none", "always", "class:Block,Head", "size:100000"), None, ModuleWrapPolicy({Block, ...}),
    always_wrap_policy, and size_based_auto_wrap_policy or transformer_auto_wrap_policy, with their arguments bound by
    functools.partial.

    Raises:
      ValueError: for anything else; a Python function cannot be asked while compiling.
    """
    if policy is None:
        return "none"
    if isinstance(policy, str):
        return policy
    from torch.distributed.fsdp import wrap
    if isinstance(policy, wrap.ModuleWrapPolicy):
        return _classes(policy._module_classes)
    function, bound = policy, {}
    if isinstance(policy, functools.partial):
        function, bound = policy.func, policy.keywords
    if function is wrap.always_wrap_policy:
        return "always"
    if function is wrap.size_based_auto_wrap_policy and set(bound) <= {"min_num_params"}:
        default = inspect.signature(function).parameters["min_num_params"].default
        return f"size:{int(bound.get('min_num_params', default))}"
    if function is wrap.transformer_auto_wrap_policy and set(bound) == {"transformer_layer_cls"}:
        return _classes(bound["transformer_layer_cls"])
    raise ValueError(f"policy is {policy!r}; allowed: none, always, class:A,B, size:N, ModuleWrapPolicy, "
                     "always_wrap_policy, size_based_auto_wrap_policy, transformer_auto_wrap_policy")


def _classes(classes: Any) -> str:
    return "class:" + ",".join(sorted(class_name(c) for c in classes))
