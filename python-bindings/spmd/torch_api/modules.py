"""Modules: their tables of tensors and children, hooks of modules and tensors, and modules that torch.compile makes."""
from __future__ import annotations

import sys
from operator import attrgetter
from typing import Any

import torch
from torch.nn.modules import module as _nn_module
# The base class of all batch normalizations.
from torch.nn.modules.batchnorm import _BatchNorm as BatchNorm

# The tables of a module by name. named_parameters() and its siblings omit entries of None and second names of a tensor,
# and cannot replace an entry.
parameters_of = attrgetter("_parameters")
buffers_of = attrgetter("_buffers")
children_of = attrgetter("_modules")
TABLES = ("_parameters", "_buffers", "_modules")
TENSOR_TABLES = ("_parameters", "_buffers")
# The names of the buffers that state_dict() omits; there is no public query.
non_persistent_buffers_of = attrgetter("_non_persistent_buffers_set")

# Parses the arguments of Module.to(): device, dtype, non_blocking, memory_format.
parse_to = torch._C._nn._parse_to


def initialized_children_of(module: torch.nn.Module) -> dict[str, torch.nn.Module | None]:
    """children_of(), or an empty dict if Module.__init__ has not run. Runs no code of the module's class."""
    return module.__dict__.get("_modules", {})


def set_children(module: torch.nn.Module, children: dict[str, torch.nn.Module | None]) -> None:
    """Gives a module another table of children; add_module() would change the table that it shares."""
    module.__dict__["_modules"] = children


def refresh_flat_weights(module: torch.nn.RNNBase) -> None:
    """Updates the list of weights that a recurrent module keeps beside its parameters, after these were replaced."""
    module._flat_weights = [module._parameters.get(name) for name in module._flat_weights_names]


def check_sync_batch_norm(module: torch.nn.SyncBatchNorm, input: torch.Tensor) -> None:
    """Raises the errors of SyncBatchNorm.forward for inputs of a wrong shape."""
    module._check_input_dim(input)
    module._check_non_zero_input_channels(input)


# ---- Wrappers ----

# What checkpoint_wrapper(), torch.compile and FSDP add to the names of a wrapped module's tensors.
WRAPPER_NAMES = ("_checkpoint_wrapped_module", "_orig_mod", "_fsdp_wrapped_module")


# ---- Hooks ----
#
# PyTorch has public functions to register and to remove hooks, and no query for registered hooks.

MODULE_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
TENSOR_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")
# The hooks that run in backward(): of a module, of a tensor, and of all modules (in torch.nn.modules.module).
BACKWARD_HOOKS = ("_backward_hooks", "_backward_pre_hooks", "_post_accumulate_grad_hooks", "_global_backward_hooks",
                  "_global_backward_pre_hooks")
module_hooks_of = attrgetter(*MODULE_HOOKS)
all_tensor_hooks_of = attrgetter(*TENSOR_HOOKS)  # None instead of an empty table


class OwnHook:
    """A hook of this package on a user's tensor. It only looks; a trace does not run it."""


def tensor_hooks_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    """The tables of the user's hooks of a tensor; None, or an empty table, where there is no hook."""
    tables = all_tensor_hooks_of(tensor)
    if tables == (None, None):
        return tables
    return tuple(table and {number: hook for number, hook in table.items() if not isinstance(hook, OwnHook)} for table in tables)



# The tables of hooks that each call of a module runs. PyTorch never replaces these dicts.
GLOBAL_HOOKS = (_nn_module._global_forward_hooks, _nn_module._global_forward_pre_hooks,
                _nn_module._global_backward_hooks, _nn_module._global_backward_pre_hooks)


# ---- torch.compile ----
#
# Importing torch._dynamo takes a second; while it is not imported, nothing is compiled.


def is_dynamo_loaded() -> bool:
    """Whether torch.compile may have compiled anything."""
    return "torch._dynamo" in sys.modules


def dynamo_config() -> Any:
    """The settings of torch.compile. Requires is_dynamo_loaded()."""
    return torch._dynamo.config


def compiler_stance() -> str:
    """The value of torch.compiler.set_stance(), which has no public query. Requires is_dynamo_loaded()."""
    return torch._dynamo.eval_frame._stance.stance


def is_compiled_module(module: torch.nn.Module) -> bool:
    """Whether torch.compile made the module."""
    eval_frame = sys.modules.get("torch._dynamo.eval_frame")
    return eval_frame is not None and isinstance(module, eval_frame.OptimizedModule)


original_of = attrgetter("_orig_mod")  # the module that torch.compile received
