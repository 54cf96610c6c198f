"""What a step reaches without an argument."""
from __future__ import annotations

import dataclasses

import torch

from .closure_objects import ClosureObjects
from .held import Held


@dataclasses.dataclass
class Environment:
    """`held`: modules that get fakes; `reached`: all that was found; `excluded`: of tensors that no trace can go through, why and the
    hint, by id; `read_left`: tensors that earlier calls have left and that the step reads, by id."""

    held: Held
    reached: ClosureObjects
    excluded: dict[int, tuple[str, str]]
    read_left: dict[int, torch.Tensor] = dataclasses.field(default_factory=dict)
