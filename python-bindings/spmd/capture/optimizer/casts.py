"""Mixed precision, as FSDP has it: parameters in one type in forward and backward, their masters in another.

While a module that has a policy runs, the parameters below it are replaced by casts of themselves, one each; the
gradients of all uses add up in the type of the cast, and autograd casts the sum to the master's type. So masters,
gradients and optimizer state stay as they are, and what the compiler finds is a graph with casts (docs/precision.md).
FSDP2: torch/distributed/fsdp/_fully_shard/_fsdp_state.py; FSDP1: torch/distributed/fsdp/_runtime_utils.py.
"""
from __future__ import annotations

import contextlib
from typing import Any, Iterator

import torch
from torch import nn

from ...annotations import annotation_of
from ...precision import Precision
from ...torch_api.modules import buffers_of, parameters_of, refresh_flat_weights
from ...torch_api.tensors import version_of
from ...torch_api.tracing import pytree
from ..errors import CaptureError

_NONE = Precision(cast_inputs=False)


def policies(model: nn.Module, default: Precision | None) -> Iterator[tuple[nn.Module, Precision | None, bool]]:
    """The modules from the root downward, each with its precision, None where it is exempt, and whether that begins there:
    the model's own with `default`, those that fully_shard and wrap name, and exempt modules."""
    default = default or _NONE

    def walk(module: nn.Module, around: Precision | None) -> Iterator[tuple[nn.Module, Precision | None, bool]]:
        if id(module) in seen:
            return
        seen.add(id(module))
        own, annotation = around, annotation_of(module)
        if annotation is not None:
            own = annotation.precision or _NONE if "precision" in annotation.options else default
        elif around is not None and isinstance(module, around.exempt):
            own = None
        yield module, own, own is not around or annotation is not None or module is model
        for child in module.children():
            yield from walk(child, own)

    seen: set[int] = set()
    yield from walk(model, default)


def regions(model: nn.Module, default: Precision | None) -> list[tuple[nn.Module, Precision | None]]:
    """The modules at which a precision begins."""
    return [(module, policy) for module, policy, begins in policies(model, default) if begins]


def is_used(model: nn.Module, default: Precision | None) -> bool:
    """True where a module has a policy."""
    return any(policy is not None and not policy.is_empty for _, policy in regions(model, default))


@contextlib.contextmanager
def computing_in(model: nn.Module, default: Precision | None) -> Iterator[None]:
    """Inside, calls of the model's modules compute in their precision."""
    found = regions(model, default)
    if all(policy is None or policy.is_empty for _, policy in found):
        yield
        return
    with contextlib.ExitStack() as undo:
        beginnings = {id(module) for module, _ in found}
        for module, policy in found:
            region = _Region(module, policy, beginnings)
            undo.callback(module.register_forward_pre_hook(region.enter, prepend=True, with_kwargs=True).remove)
            undo.callback(module.register_forward_hook(region.leave, always_call=True).remove)
        yield


class _Region:
    """A module and those below it that have its precision."""

    def __init__(self, root: nn.Module, policy: Precision | None, beginnings: set[int]):
        self._policy, self._modules = policy, [root]
        for module in self._modules:
            self._modules += (child for child in module.children()
                              if id(child) not in beginnings and child not in self._modules)
        self._entered: list[tuple[list, torch.dtype | None]] = []

    def enter(self, module: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        policy, given = self._policy, None
        swapped: list[tuple[dict, str, torch.Tensor, torch.Tensor, int]] = []
        if policy is None:
            given = next((x.dtype for x in pytree.tree_leaves((args, kwargs)) if _is_floating(x)), None)
            wanted = torch.float32 if given in (torch.bfloat16, torch.float16) else None
        else:
            wanted = policy.param if policy.cast_inputs else None
            casts: dict[int, torch.Tensor] = {}
            for own in self._modules:
                self._swap(parameters_of(own), policy.param, casts, swapped)
                self._swap(buffers_of(own), policy.buffer, casts, swapped)
                _follow(own)
        self._entered.append((swapped, given))
        return _cast((args, kwargs), wanted)

    @staticmethod
    def _swap(tensors: dict, dtype: torch.dtype | None, casts: dict[int, torch.Tensor], swapped: list) -> None:
        for name, tensor in tensors.items():
            if dtype is not None and _is_floating(tensor) and tensor.dtype != dtype:
                cast = casts.get(id(tensor))
                if cast is None:
                    cast = casts[id(tensor)] = tensor.to(dtype)
                swapped.append((tensors, name, tensor, cast, version_of(cast)))
                tensors[name] = cast

    def leave(self, module: nn.Module, args: tuple, result: Any) -> Any:
        swapped, given = self._entered.pop()
        for tensors, name, tensor, cast, version in swapped:
            if tensors[name] is not cast:
                raise CaptureError(f"the step replaces {name!r} of a module that computes in another precision\n"
                                   f"  hint: write into it in place: self.{name}.copy_(...)")
            tensors[name] = tensor
            if version_of(cast) != version:  # a running mean
                with torch.no_grad():
                    tensor.copy_(cast)
        for own in self._modules:
            _follow(own)
        wanted = given if self._policy is None else self._policy.output
        return _cast(result, wanted)


def _follow(module: nn.Module) -> None:
    """A recurrent module has a list of its parameters beside them."""
    if isinstance(module, nn.RNNBase):
        refresh_flat_weights(module)


def _is_floating(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _cast(tree: Any, dtype: torch.dtype | None) -> Any:
    if dtype is None:
        return tree
    return pytree.tree_map(lambda x: x.to(dtype) if _is_floating(x) and x.dtype != dtype else x, tree)
