"""FSDP's wrap policies and annotations."""
from __future__ import annotations

from operator import attrgetter
from typing import Any

import torch
# Checkpoints the modules that a function chooses; PyTorch documents no public path to it.
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing
# The base class of wrap policies, from which users derive, and the policy that combines policies. Other policies are
# public.
from torch.distributed.fsdp.wrap import _or_policy as or_policy
from torch.distributed.fsdp.wrap import _Policy as Policy

module_classes_of = attrgetter("_module_classes")  # the argument of ModuleWrapPolicy
lambda_of = attrgetter("_lambda_fn")  # the argument of CustomPolicy


class UnitsPolicy(Policy):
    """A base class of wrap policies: `units` has the contract of a policy's _run_policy."""

    def units(self, root_module: torch.nn.Module, ignored_modules: set[torch.nn.Module],
              root_kwargs: dict[str, Any]) -> dict[torch.nn.Module, dict[str, Any]]:
        raise NotImplementedError

    def _run_policy(self, root_module: torch.nn.Module, ignored_modules: set[torch.nn.Module],
                    root_kwargs: dict[str, Any]) -> dict[torch.nn.Module, dict[str, Any]]:
        return self.units(root_module, ignored_modules, root_kwargs)


def run_policy(policy: Policy, root_module: torch.nn.Module, ignored_modules: set[torch.nn.Module],
               root_kwargs: dict[str, Any]) -> dict[torch.nn.Module, dict[str, Any]]:
    """The units of a policy: the options of each module."""
    return policy._run_policy(root_module, ignored_modules, root_kwargs)
