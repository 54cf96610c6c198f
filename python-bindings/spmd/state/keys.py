"""Keys of tensors in weights files and checkpoints: "fc.weight", "optimizer/exp_avg/fc.weight", "rng/step"."""
from __future__ import annotations

from ..tensor_info import TensorInfo


def key_of(info: TensorInfo) -> str:
    """The key of a tensor of the state in weights files and checkpoints."""
    if info.state in ("param", "buffer"):
        return info.name
    return f"{info.state}/{info.name}" if info.state in ("constant", "rng") else f"optimizer/{info.state}/{info.name}"


def name_in(key: str) -> str:
    """The name of the parameter or buffer in a key."""
    return key.split("/", 2)[2] if key.startswith("optimizer/") else key.split("/", 1)[1] if key.startswith("rng/") else key


def place_of(key: str) -> tuple[str, str]:
    """Which state a key is of ("" for parameters and buffers), and of which tensor."""
    if key.startswith("rng/"):
        return "rng", key[4:]
    return tuple(key.split("/", 2)[1:]) if key.startswith("optimizer/") else ("", key)
