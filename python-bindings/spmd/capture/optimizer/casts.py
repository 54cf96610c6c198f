"""Mixed precision, as FSDP has it: parameters in one type in forward and backward, their masters in another.

While a module that has a policy runs, the parameters below it are replaced by casts of themselves, one each; the
gradients of all uses add up in the type of the cast, and autograd casts the sum to the master's type. So masters,
gradients and optimizer state stay as they are, and what the compiler finds is a graph with casts (docs/precision.md).
A function that backward() runs again computes with the casts that were in place at its first run (`casts_in_place`).
FSDP2: torch/distributed/fsdp/_fully_shard/_fsdp_state.py; FSDP1: torch/distributed/fsdp/_runtime_utils.py.
"""
from __future__ import annotations

import contextlib
import dataclasses
import threading
from typing import Any, Callable, ContextManager, Iterator

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


@dataclasses.dataclass(eq=False)
class _Swap:
    """`tensors[name]` is `cast`, which is made of `tensor`, while `module` runs; `version`: that of `cast` when it was put there."""

    module: nn.Module
    tensors: dict[str, torch.Tensor]
    name: str
    tensor: torch.Tensor
    cast: torch.Tensor
    version: int
    is_buffer: bool

    def put_in(self) -> None:
        self.version = version_of(self.cast)
        self.tensors[self.name] = self.cast

    def take_out(self) -> None:
        if self.tensors[self.name] is not self.cast:
            raise CaptureError(f"the step replaces {self.name!r} of a module that computes in another precision\n"
                               f"  hint: write into it in place: self.{self.name}.copy_(...)")
        self.tensors[self.name] = self.tensor
        if version_of(self.cast) != self.version:  # a running mean
            with torch.no_grad():
                self.tensor.copy_(self.cast)

    def again(self) -> _Swap:
        """For a second run. A buffer may have changed since the first run; the cast of a parameter is part of the graph."""
        with torch.no_grad():
            cast = self.tensor.to(self.cast.dtype) if self.is_buffer else self.cast
        return dataclasses.replace(self, cast=cast)


_thread = threading.local()  # `swaps`: the list of those that are in place


def _swaps() -> list[_Swap]:
    if not hasattr(_thread, "swaps"):
        _thread.swaps = []
    return _thread.swaps


def _take_out(swaps: list[_Swap]) -> None:
    for swap in reversed(swaps):
        swap.take_out()
        _swaps().remove(swap)
    for module in dict.fromkeys(swap.module for swap in swaps):
        _follow(module)


def casts_in_place() -> Callable[[], ContextManager[None]]:
    """Notes the casts that modules compute with now. While the result's context is entered, modules compute with them again."""
    noted = list(_swaps())

    @contextlib.contextmanager
    def entered() -> Iterator[None]:
        swaps = [swap.again() for swap in noted if swap.tensors[swap.name] is swap.tensor]
        for swap in swaps:
            swap.put_in()
            _swaps().append(swap)
        for module in dict.fromkeys(swap.module for swap in swaps):
            _follow(module)
        try:
            yield
        finally:
            _take_out(swaps)
    return entered


class _Region:
    """A module and those below it that have its precision."""

    def __init__(self, root: nn.Module, policy: Precision | None, beginnings: set[int]):
        self._policy, self._modules = policy, [root]
        for module in self._modules:
            self._modules += (child for child in module.children()
                              if id(child) not in beginnings and child not in self._modules)
        self._entered: list[tuple[list[_Swap], torch.dtype | None]] = []

    def enter(self, module: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        policy, given = self._policy, None
        swapped: list[_Swap] = []
        if policy is None:
            given = next((x.dtype for x in pytree.tree_leaves((args, kwargs)) if _is_floating(x)), None)
            wanted = torch.float32 if given in (torch.bfloat16, torch.float16) else None
        else:
            wanted = policy.param if policy.cast_inputs else None
            casts: dict[int, torch.Tensor] = {}
            for own in self._modules:
                self._swap(own, parameters_of(own), policy.param, casts, swapped)
                self._swap(own, buffers_of(own), policy.buffer, casts, swapped)
                _follow(own)
        self._entered.append((swapped, given))
        return _cast((args, kwargs), wanted)

    @staticmethod
    def _swap(module: nn.Module, tensors: dict, dtype: torch.dtype | None, casts: dict[int, torch.Tensor], swapped: list[_Swap]) -> None:
        for name, tensor in tensors.items():
            if dtype is not None and _is_floating(tensor) and tensor.dtype != dtype:
                cast = casts.get(id(tensor))
                if cast is None:
                    cast = casts[id(tensor)] = tensor.to(dtype)
                swapped.append(_Swap(module, tensors, name, tensor, cast, version_of(cast), tensors is buffers_of(module)))
                _swaps().append(swapped[-1])
                tensors[name] = cast

    def leave(self, module: nn.Module, args: tuple, result: Any) -> Any:
        swapped, given = self._entered.pop()
        _take_out(swapped)
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
