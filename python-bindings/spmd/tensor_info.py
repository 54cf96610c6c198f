"""What there is to know of a tensor in an artifact or a checkpoint, its values aside."""
from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """A batch input (`state` "batch"), an output ("loss", "output"; `name` is its path in the result), or a tensor of
    the state ("param", "buffer", "constant", "exp_avg", ...). `shape` is the global one. `saved`: a tensor of the state is in
    checkpoints and state dicts (not: constants, `register_buffer(persistent=False)`)."""

    name: str
    state: str
    dtype: str
    shape: tuple[int, ...]
    aliases: tuple[str, ...] = ()
    saved: bool = True
