"""Options of a shard unit: our names, and PyTorch's in their place."""
from __future__ import annotations

from typing import Any

from .precision import Precision
from .remarks import remark
from .torch_api.fsdp_options import HYBRID_SHARD_ZERO2

MODES = ("fully_shard", "shard_grad_op", "shard_optimizer", "hybrid", "replicate", "default")
ALLOWED = ("mode", "reshard_after_forward", "precision", "prefetch")
# Of FSDP's wrapper: what means nothing where a program is compiled ahead of time, with the values that ask for nothing.
MEANINGLESS = {
    "use_orig_params": "parameters are always the model's own",
    "device_id": "the target of the compiler says where a step runs",
    "limit_all_gathers": "when parameters are gathered is planned ahead (prefetch)",
    "forward_prefetch": "when parameters are gathered is planned ahead (prefetch)",
    "sync_module_states": "every rank begins with the values of one model",
    "cpu_offload": None, "process_group": None, "param_init_fn": None,
}
PYTORCH = ("sharding_strategy", "mixed_precision", "mp_policy", "backward_prefetch")
_PRECISION = ("precision", "mixed_precision", "mp_policy")


def encode_options(options: dict[str, Any], place: str, tells: bool = True) -> dict[str, Any]:
    """Options as the library reads them. `place` says in errors where they were given. `tells`: of what has no effect.

    Raises:
      ValueError: for an unknown name, with the allowed ones, and for a value that has no meaning here.
    """
    encoded: dict[str, Any] = {}
    for name, value in options.items():
        if name == "mode":
            if value not in MODES:
                raise ValueError(f"{place}: mode is {value!r}; allowed: {', '.join(map(repr, MODES))}")
            encoded["mode"] = value
        elif name == "reshard_after_forward":
            encoded |= _reshard(value, place)
        elif name in _PRECISION:
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
        elif name in MEANINGLESS:
            _take_meaningless(name, value, place, tells)
        else:
            raise ValueError(f"{place}: unknown option {name!r} of a shard unit; allowed: {', '.join(ALLOWED)}, and "
                             f"PyTorch's {', '.join(PYTORCH)}")
    return encoded


def exempt_classes(options: dict[str, Any]) -> tuple[type, ...] | None:
    """The classes that PyTorch's MixedPrecision leaves out; None when the options have none."""
    precision = precision_of(options, "options")
    return None if precision is None else precision.exempt


def _take_meaningless(name: str, value: Any, place: str, tells: bool) -> None:
    if MEANINGLESS[name] is not None:
        if tells:
            remark(f"{place}: {name} has no effect here: {MEANINGLESS[name]}")
    elif value is not None and getattr(value, "offload_params", True):
        hint = "spmd.compile(param_init_fn=…) takes it" if name == "param_init_fn" else "leave it out"
        raise ValueError(f"{place}: {name}={value!r} is not supported; {hint}")


_SAID_OTHERWISE = {"auto_wrap_policy": "policy=", "sharding_strategy": "mode=, and the options of a policy's units",
                   "mixed_precision": "precision=", "mp_policy": "precision=", "device_mesh": "mesh=",
                   "reshard_after_forward": "options=[\"--reshard-after-forward=…\"], or the options of a policy's units",
                   "backward_prefetch": "options=[\"--prefetch=…\"], or the options of a policy's units"}


def take_arguments_of_fsdp(arguments: dict[str, Any], place: str) -> None:
    """What a call of PyTorch's FSDP has besides: remarks of what means nothing here.

    Raises:
      TypeError: another argument, with the one to give.
      ValueError: one asks for what is not there.
    """
    for name, value in arguments.items():
        if name in _SAID_OTHERWISE:
            raise TypeError(f"{place}: {name} is {_SAID_OTHERWISE[name]} here")
        if name not in MEANINGLESS:
            raise TypeError(f"{place} got an unexpected keyword argument {name!r}")
        _take_meaningless(name, value, place, tells=True)


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
             "NO_SHARD": {"mode": "replicate"},
             "HYBRID_SHARD": {"mode": "hybrid", "reshard_after_forward": True},
             HYBRID_SHARD_ZERO2: {"mode": "hybrid", "reshard_after_forward": False}}
    name = getattr(value, "name", value)
    if name not in known:
        raise ValueError(f"{place}: sharding_strategy is {name}; supported: {', '.join(known)}")
    return known[name]


def precision_of(options: dict[str, Any], place: str) -> Precision | None:
    """The precision among options, in whose words it was."""
    given = [value for name, value in options.items() if name in _PRECISION]
    return Precision.of(given[-1], place, is_root=False) if given else None


def _precision(value: Any, place: str) -> dict | None:
    """{"param": "bf16", ...}; None for none."""
    precision = Precision.of(value, place, is_root=False)
    return None if precision is None else precision.encode()
