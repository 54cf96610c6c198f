"""The options of a compiled step, as the parts of a training read them; spmd.compile documents and checks them."""
from __future__ import annotations

import dataclasses
from typing import Any, Mapping

from ..compat.overrides import Overrides
from ..precision import Precision
from ..units.choice import UnitChoice
from .batch_sizes import Dynamic
from .initialization import Initialize


@dataclasses.dataclass(frozen=True)
class StepOptions:
    """How calls are captured.

    Attributes:
      batch_dims: which dim of a batch input counts samples, by its name; None: dim 0 of each.
      view: "global" or "local".
      keep_grads: the ranks keep gradients that the step clears.
      precision: in which the model computes; None: in the types of its parameters.
      dynamic: the sizes of batches that one program serves; None: one size for each program.
    """

    batch_dims: dict[str, int | None] | None
    view: str
    keep_grads: bool
    precision: Precision | None
    dynamic: Dynamic | None


@dataclasses.dataclass(frozen=True)
class CompileOptions:
    """What spmd-compile is called with.

    Attributes:
      words: words of its command line, except those of `units` and --ranks.
      units: the shard units.
      overrides: the user's code between capture and kernels.
      max_compiles: the most programs of a step.
    """

    words: tuple[str, ...]
    units: UnitChoice
    overrides: Overrides
    max_compiles: int


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """On which ranks programs run, and how.

    Attributes:
      ranks: how many ranks; None: one for each process.
      launcher: who started the processes, as for spmd.compile.
      trainer: arguments of Trainer: "batch", and "threads", "timeout" and "flight_record" where they are given.
      init: makes the values of modules on the meta device; None: their reset_parameters().
      check_finite: a loss that is not finite is an error.
    """

    ranks: int | None
    launcher: str | None
    trainer: Mapping[str, Any]
    init: Initialize | None
    check_finite: bool


@dataclasses.dataclass(frozen=True)
class TrainingOptions:
    """All options of a compiled step."""

    step: StepOptions
    compile: CompileOptions
    run: RunOptions
