"""What a step reaches without an argument."""
from __future__ import annotations

import dataclasses
from typing import Any

import torch

from .closure_objects import ClosureObjects
from .held import Held


@dataclasses.dataclass
class Environment:
    """`held`: modules that get fakes; `reached`: all that was found; `excluded`: of tensors that no trace can go through, why and the
    hint, by id; `read_left`: tensors that earlier calls have left and that the step reads, by id; `counted`: Python numbers that the
    step changes in optimizers (optimizer/counted.py); `unstepped`: the ids of optimizers whose step() is not called."""

    held: Held
    reached: ClosureObjects
    excluded: dict[int, tuple[str, str]]
    read_left: dict[int, torch.Tensor] = dataclasses.field(default_factory=dict)
    counted: list[Any] = dataclasses.field(default_factory=list)
    unstepped: set[int] = dataclasses.field(default_factory=set)
