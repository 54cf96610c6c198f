"""The class of a tensor whose value the ranks hold: the first use of the value fetches it ([Note: live state] in
live_state.py)."""
from __future__ import annotations

import copy
import sys
from typing import Any, Callable

import torch

from ..offloaded import slots
from ..torch_api.tensors import METADATA, foreach_zero_, make_subclass
from ..torch_api.tracing import DisableTorchFunctionSubclass

_GETTERS = ("shape", "dtype", "device", "layout", "requires_grad", "is_leaf", "grad", "grad_fn", "ndim",
            "names", "is_cuda", "is_cpu", "is_meta", "is_sparse", "is_sparse_csr", "is_mkldnn", "is_quantized",
            "is_nested", "is_xla", "is_xpu", "is_mps", "is_maia", "is_mtia", "is_vulkan", "is_ipu", "itemsize",
            "nbytes", "retains_grad", "output_nr", *METADATA)
_METHODS = ("size", "dim", "stride", "numel", "nelement", "element_size", "is_contiguous", "is_floating_point",
            "is_complex", "is_signed", "is_inference", "get_device", "requires_grad_", "register_hook",
            "retain_grad", "__len__", "register_post_accumulate_grad_hook", "dim_order", "storage_offset",
            "ndimension")


def _metadata() -> set[Any]:
    """Functions of a tensor that do not touch its values; they leave it away."""
    found = {getattr(torch.Tensor, name).__get__ for name in _GETTERS if hasattr(torch.Tensor, name)}
    found |= {getattr(torch.Tensor, name) for name in _METHODS if hasattr(torch.Tensor, name)}
    found |= {torch.Tensor.grad.__set__, torch.Tensor.requires_grad.__set__}
    return found | {torch.numel, torch.is_floating_point, torch.is_complex, torch.is_tensor, torch.is_same_size}


_METADATA = _metadata()
_CLEARS = {torch.Tensor.zero_, foreach_zero_}
_PARAMETER_NEW = torch.nn.Parameter.__new__.__code__


def _torch_function(cls: type, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
    if func in _METADATA:
        with DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))
    for slot in slots((args, kwargs or {})):
        if func in _CLEARS and slot.can_clear:
            slot.come_back()  # zero_grad(set_to_none=False)
        else:
            slot.fetch()
    result = func(*args, **(kwargs or {}))
    if func is torch.Tensor.detach and sys._getframe(1).f_code is _PARAMETER_NEW:
        # Parameter(p) has seen the class of an offloaded tensor, for which detach() has to keep the class.
        return make_subclass(type(args[0]), result, False)
    return result


def _deepcopy(self: torch.Tensor, memo: dict) -> torch.Tensor:
    for slot in slots((self,)):
        slot.fetch()
    return copy.deepcopy(self, memo)


def _reduce_ex(self: torch.Tensor, protocol: int) -> Any:
    for slot in slots((self,)):
        slot.fetch()
    return self.__reduce_ex__(protocol)


_offloaded_classes: dict[type, type] = {}


def offloaded_class(kind: type) -> type:
    """The class that a tensor of class `kind` has while it is away."""
    if kind not in _offloaded_classes:
        _offloaded_classes[kind] = type(kind)(kind.__name__, (kind,), {
            "__module__": kind.__module__, "__doc__": "A tensor whose value the ranks of a compiled step hold.",
            "__torch_function__": classmethod(_torch_function), "__deepcopy__": _deepcopy, "__reduce_ex__": _reduce_ex})
    return _offloaded_classes[kind]
