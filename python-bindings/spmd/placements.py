"""Parameters on the tensor axis of a mesh: placements of torch.distributed.tensor, and the command line's words for them."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def _word(pattern: str, placement: Any) -> str:
    """shard(0), shard(0,3) or replicate.

    Raises:
      TypeError: for anything that is no placement, and for partial ones, which no parameter is.
    """
    if isinstance(placement, str):
        return placement
    if hasattr(placement, "dim"):  # Shard, and _StridedShard, which has a factor
        parts = getattr(placement, "split_factor", 1)
        return f"shard({placement.dim})" if parts == 1 else f"shard({placement.dim},{parts})"
    if getattr(placement, "is_replicate", lambda: False)():
        return "replicate"
    raise TypeError(f"override_placements[{pattern!r}] is {placement!r}; expected Shard(dim) or Replicate() of "
                    "torch.distributed.tensor, or text as \"shard(0)\"")


def placement_text(placements: Any) -> str:
    """As for spmd-compile --override-placements: {pattern of names: placement}, or text."""
    if isinstance(placements, str):
        return placements
    if not isinstance(placements, Mapping):
        raise TypeError(f"override_placements is {placements!r}; expected a dict of placements by pattern of names")
    return ",".join(f"{pattern}={_word(pattern, placement)}" for pattern, placement in placements.items())
