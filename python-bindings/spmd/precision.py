"""Policies of mixed precision, in PyTorch's words and ours (docs/precision.md)."""
from __future__ import annotations

import dataclasses
from typing import Any

import torch

from .dtypes import TABLE
from .torch_api.fsdp_options import ignored_classes_of
from .torch_api.modules import BatchNorm

DTYPES = {dtype.name: getattr(torch, dtype.torch) for dtype in TABLE if dtype.is_floating}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_PARTS = ("param", "reduce", "grad", "buffer", "output", "master")
_BATCH_NORM = (BatchNorm,)


@dataclasses.dataclass(frozen=True)
class Precision:
    """A policy. Types that are None are those of the tensors themselves.

    Attributes:
      param: in which parameters are computed with, and gathered.
      reduce: in which gradients are added up over the ranks; None: in `param`.
      grad: in which reduced gradients of wider parameters are kept for the optimizer; None: in the parameters' type.
      buffer: in which floating buffers are computed with.
      output: to which a module's floating results are cast.
      master: in which the optimizer keeps and updates narrower parameters, which are its masters rounded.
      cast_inputs: a module's floating arguments are cast to `param`.
      exempt: classes of modules below that keep their own types: their arguments are cast to float32, and their results
        to what the arguments were.
    """

    param: torch.dtype | None = None
    reduce: torch.dtype | None = None
    grad: torch.dtype | None = None
    buffer: torch.dtype | None = None
    output: torch.dtype | None = None
    master: torch.dtype | None = None
    cast_inputs: bool = True
    exempt: tuple[type, ...] = ()

    @classmethod
    def of(cls, given: Any, place: str, is_root: bool = True) -> "Precision | None":
        """A policy from PyTorch's MixedPrecisionPolicy or MixedPrecision, from a dict, or from text like
        "param=bf16,reduce=f32". `place` says in errors where it was given.

        Raises:
          ValueError: for a name or a type that is unknown, and for what is not supported.
        """
        if given is None or isinstance(given, cls):
            return given
        if isinstance(given, (str, dict)):
            entries = given if isinstance(given, dict) else _entries(given, place)
            unknown = sorted(set(entries) - set(_PARTS))
            if unknown:
                raise ValueError(f"{place}: {unknown[0]!r} is no part of a precision; allowed: {', '.join(_PARTS)}")
            dtypes = {name: _dtype(value, place) for name, value in entries.items()}
            if dtypes.get("master") not in (None, torch.float32):
                raise ValueError(f"{place}: masters in {_NAMES[dtypes['master']]} are not supported; allowed: master=f32")
            return cls(**dtypes, exempt=_BATCH_NORM)
        if not hasattr(given, "param_dtype"):
            raise ValueError(f"{place}: mixed precision is {given!r}; expected MixedPrecisionPolicy, MixedPrecision, "
                             "a dict or text like 'param=bf16,reduce=f32'")
        of_fsdp1 = hasattr(given, "buffer_dtype")
        casts = getattr(given, "cast_forward_inputs", True)
        if of_fsdp1 and is_root:
            casts = casts or given.cast_root_forward_inputs
        dtypes = {ours: _dtype(getattr(given, f"{ours}_dtype", None), place)
                  for ours in ("param", "reduce", "buffer", "output")}
        if getattr(given, "keep_low_precision_grads", False):
            dtypes["grad"] = _kept(dtypes["param"], dtypes["reduce"], place)
        return cls(**dtypes, cast_inputs=casts, exempt=ignored_classes_of(given))

    @property
    def is_empty(self) -> bool:
        return not any(getattr(self, name) for name in _PARTS)

    def encode(self) -> dict[str, str]:
        """The types as step.json and plan files have them."""
        return {name: _NAMES[getattr(self, name)] for name in _PARTS if getattr(self, name) is not None}


def _kept(param: torch.dtype | None, reduce: torch.dtype | None, place: str) -> torch.dtype:
    """The type of gradients by FSDP1's keep_low_precision_grads: its documentation says the one that they are reduced in,
    its code casts them to that of the computation (FlatParamHandle.prepare_gradient_for_optim)."""
    if param is not None and reduce in (None, param):
        return param
    if param is None and reduce is None:
        raise ValueError(f"{place}: keep_low_precision_grads=True without a type that gradients could keep\n  hint: set "
                         "param_dtype, or omit keep_low_precision_grads")
    computed, reduced = (_NAMES[dtype or torch.float32] for dtype in (param, reduce))
    words = ",".join(f"{name}={_NAMES[dtype]}" for name, dtype in (("param", param), ("reduce", reduce)) if dtype is not None)
    raise ValueError(f"{place}: keep_low_precision_grads=True keeps gradients in reduce_dtype ({reduced}) by PyTorch's "
                     f"documentation, and in param_dtype ({computed}) by its code\n  hint: choose one: "
                     f"precision=\"{words},grad={reduced}\" or \"{words},grad={computed}\"")


def _entries(text: str, place: str) -> dict[str, str]:
    entries = [entry.partition("=") for entry in text.split(",")]
    for name, _, value in entries:
        if not name or not value:
            raise ValueError(f"{place}: {text!r} is no precision; expected text like 'param=bf16,reduce=f32'")
    return {name.strip(): value.strip() for name, _, value in entries}


def _dtype(value: Any, place: str) -> torch.dtype | None:
    if value is None or value in _NAMES:
        return value
    name = str(value).removeprefix("torch.")
    dtype = DTYPES.get(name) or getattr(torch, name, None)
    if dtype not in _NAMES:
        raise ValueError(f"{place}: {value!r} is no type of mixed precision; allowed: {', '.join(DTYPES)}")
    return dtype
