"""Keys of tensors in weights files and checkpoints: "fc.weight", "optimizer/exp_avg/fc.weight", "rng/step"."""
from __future__ import annotations

from collections.abc import Sequence

from ..tensor_info import TensorInfo

_NAMED = 8


def key_of(info: TensorInfo) -> str:
    """The key of a tensor of the state in weights files and checkpoints."""
    if info.state in ("param", "buffer"):
        return info.name
    return f"{info.state}/{info.name}" if info.state in ("constant", "rng") else f"optimizer/{info.state}/{info.name}"


def name_in(key: str) -> str:
    """The name of the parameter or buffer in a key."""
    return key.split("/", 2)[2] if key.startswith("optimizer/") else key.split("/", 1)[1] if key.startswith("rng/") else key


def with_name(key: str, name: str) -> str:
    """The key with another name of the parameter or buffer."""
    return key[:len(key) - len(name_in(key))] + name


def place_of(key: str) -> tuple[str, str]:
    """Which state a key is of ("" for parameters and buffers), and of which tensor."""
    if key.startswith("rng/"):
        return "rng", key[4:]
    return tuple(key.split("/", 2)[1:]) if key.startswith("optimizer/") else ("", key)


def name_list(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" * (len(names) > _NAMED)
    return ", ".join(names[:_NAMED]) + more
