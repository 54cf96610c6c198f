"""What stands in the place of a step's inputs while it is traced."""
from __future__ import annotations

import dataclasses

import torch


@dataclasses.dataclass
class Input:
    """One graph input. `fake` is what is traced; `real` the user's value, None where the step starts from `init`."""

    kind: str  # param, buffer, state, hyper, rng, batch, constant
    name: str
    fake: torch.Tensor | None
    real: torch.Tensor | None = None
    state: str | None = None
    init: float | None = None
    group: int | None = None
    value: float | int | None = None
