"""Options of a shard unit: our names, and PyTorch's in their place."""
from __future__ import annotations

from typing import Any

import torch

ALLOWED = ("mode", "reshard_after_forward", "precision", "prefetch")
PYTORCH = ("sharding_strategy", "mixed_precision", "mp_policy", "backward_prefetch")
_DTYPES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16"}


def encode_options(options: dict[str, Any], place: str) -> dict[str, Any]:
    """Options as the library reads them. `place` says in errors where they were given.

    Raises:
      ValueError: for an unknown name, with the allowed ones, and for a value that has no meaning here.
    """
    encoded: dict[str, Any] = {}
    for name, value in options.items():
        if name == "mode":
            if value not in ("fully_shard", "replicate"):
                raise ValueError(f"{place}: mode is {value!r}; allowed: 'fully_shard', 'replicate'")
            encoded["mode"] = value
        elif name == "reshard_after_forward":
            encoded |= _reshard(value, place)
        elif name in ("precision", "mixed_precision", "mp_policy"):
            encoded["precision"] = _precision(value, place)
        elif name == "prefetch":
            if isinstance(value, bool) or value not in (0, 1):
                raise ValueError(f"{place}: prefetch is {value!r}; allowed: 0, 1")
            encoded["prefetch"] = value
        elif name == "backward_prefetch":
            # BACKWARD_POST gathers when the unit before is done with its gradients: not ahead of anything.
            encoded["prefetch"] = int(getattr(value, "name", None) == "BACKWARD_PRE")
        elif name == "sharding_strategy":
            encoded |= _strategy(value, place)
        else:
            raise ValueError(f"{place}: unknown option {name!r} of a shard unit; allowed: {', '.join(ALLOWED)}, and "
                             f"PyTorch's {', '.join(PYTORCH)}")
    return encoded


def exempt_classes(options: dict[str, Any]) -> tuple[type, ...] | None:
    """The classes that PyTorch's MixedPrecision leaves out; None when the options have none."""
    policy = options.get("mixed_precision")
    classes = getattr(policy, "_module_classes_to_ignore", None)
    return None if classes is None else tuple(classes)


def _reshard(value: Any, place: str) -> dict:
    if value is None:
        return {}
    if not isinstance(value, (bool, int)):
        raise ValueError(f"{place}: reshard_after_forward should be a bool or an int representing the group size to "
                         f"reshard to, not {value!r}")
    return {"reshard_after_forward": value}


def _strategy(value: Any, place: str) -> dict:
    known = {"FULL_SHARD": {"mode": "fully_shard", "reshard_after_forward": True},
             "SHARD_GRAD_OP": {"mode": "fully_shard", "reshard_after_forward": False},
             "NO_SHARD": {"mode": "replicate"}}
    name = getattr(value, "name", value)
    if name not in known:
        raise ValueError(f"{place}: sharding_strategy is {name}; supported: {', '.join(known)} (a hybrid needs a mesh "
                         "with two axes)")
    return known[name]


def _precision(value: Any, place: str) -> dict | None:
    """{"param": "bf16", ...} of a dict, of MixedPrecision or of MixedPrecisionPolicy; None for none."""
    if value is None:
        return None
    if isinstance(value, dict):
        given = dict(value)
    else:
        names = {"param": "param_dtype", "reduce": "reduce_dtype", "buffer": "buffer_dtype", "output": "output_dtype"}
        if not hasattr(value, "param_dtype"):
            raise ValueError(f"{place}: mixed precision is {value!r}; expected a dict, MixedPrecision or "
                             "MixedPrecisionPolicy")
        if not getattr(value, "cast_forward_inputs", True) and not hasattr(value, "buffer_dtype"):
            raise ValueError(f"{place}: cast_forward_inputs=False is not supported")
        if getattr(value, "keep_low_precision_grads", False):
            raise ValueError(f"{place}: keep_low_precision_grads is not supported")
        given = {ours: getattr(value, theirs, None) for ours, theirs in names.items()}
    return {name: _DTYPES.get(dtype, dtype) for name, dtype in given.items() if dtype is not None}
