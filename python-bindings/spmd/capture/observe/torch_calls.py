"""Calls of PyTorch's functions: what is in their arguments beside tensors, to tell whether two of them are the same call."""
from __future__ import annotations

from typing import Any, Iterable

import torch
import torch.utils.checkpoint

from ...torch_api.autograd import top_saved_tensors_default_hooks
from ...torch_api.tracing import len_torch_dispatch_stack

_CPU, _TENSOR = "cpu", torch.Tensor
_CONSTANTS = {bool, int, str, type(None), torch.dtype, torch.device, torch.memory_format, torch.layout, type(Ellipsis)}
_SEQUENCES = {tuple, list, torch.Size}
COUNT_FROM_MEMORY = ("as_strided", "as_strided_")  # its beginning, by their names
# What they tell of a tensor follows from its form.
TELL_OF_FORM = {torch.Tensor.size, torch.Tensor.dim, torch.Tensor.ndimension, torch.Tensor.numel, torch.Tensor.nelement,
                 torch.Tensor.stride, torch.Tensor.is_floating_point, torch.Tensor.is_complex, torch.Tensor.is_contiguous,
                 torch.Tensor.element_size, torch.Tensor.__len__, torch.numel, torch.is_floating_point, torch.is_complex,
                 *(getattr(torch.Tensor, name).__get__ for name in (
                     "shape", "dtype", "device", "ndim", "layout", "requires_grad", "is_sparse", "is_cuda", "is_meta",
                     "is_quantized", "is_nested", "is_cpu", "itemsize", "nbytes"))}


def surroundings() -> tuple:
    """What functions depend on beside their arguments; first, whether gradients are wanted."""
    return (torch.is_grad_enabled(), torch.is_autocast_enabled(_CPU), torch.get_autocast_dtype(_CPU), torch.get_default_dtype(),
            torch.is_inference_mode_enabled(), *modes())


def modes() -> tuple:
    """Whose Python runs within functions: how many modes there are, and whether the user's hooks of what is saved for
    backward()."""
    hooks = top_saved_tensors_default_hooks(False)
    return len_torch_dispatch_stack(), hooks is not None and hooks[0].__module__ != torch.utils.checkpoint.__name__


def form_of(tensor: torch.Tensor) -> tuple:
    """What a function's results depend on, of a tensor that it does not read as numbers."""
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.requires_grad, tensor.device


def describe_call(args: tuple, kwargs: dict[str, Any], key: list[Any], tensors: list[torch.Tensor]) -> bool:
    """describe() of a call's arguments."""
    key.append(len(args))
    if not describe(args, key, tensors):
        return False
    if not kwargs:
        return True
    key += kwargs
    return describe(kwargs.values(), key, tensors)


def describe(values: Iterable[Any], key: list[Any], tensors: list[torch.Tensor]) -> bool:
    """Adds to `key` what is in arguments beside tensors; whether nothing else is."""
    for value in values:
        kind = type(value)
        if kind in _CONSTANTS:
            key += kind, value
        elif isinstance(value, _TENSOR):
            tensors.append(value)
            key.append(_TENSOR)
        elif kind is float:
            key.append(value.hex())
        elif kind in _SEQUENCES:
            key += kind, len(value)
            if not describe(value, key, tensors):
                return False
        elif kind is dict:
            key += dict, len(value), *value
            if not describe(value.values(), key, tensors):
                return False
        elif kind is slice:
            key.append(slice)
            if not describe((value.start, value.stop, value.step), key, tensors):
                return False
        else:
            return False
    return True


def has_lists(key: list[Any]) -> bool:
    """Whether what has such a key may change later."""
    return any(item is list or item is dict for item in key)


def replaced(value: Any, real: dict[int, torch.Tensor]) -> Any:
    """The arguments with others in the place of tensors, by their ids."""
    if isinstance(value, torch.Tensor):
        return real.get(id(value), value)
    if isinstance(value, dict):
        return {name: replaced(item, real) for name, item in value.items()}
    return sequence(type(value), [replaced(item, real) for item in value]) if isinstance(value, (list, tuple)) else value


def copied(value: Any) -> Any:
    """Arguments as they are now: lists among them may change."""
    return replaced(value, {})


def sequence(kind: type, items: list[Any]) -> Any:
    """Also a named tuple, and what torch.max() gives."""
    return kind(*items) if hasattr(kind, "_fields") else kind(items)
